/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>

#include "numa-migrd/file.h"
#include "report.h"

#define MAX_BYTES ((size_t)1 << 20)

int nm_config_load_text(const char *path, struct nm_config_errors *errors, struct nm_config **ret,
			char **ret_text)
{
	struct nm_report report = {.file = path, .errors = errors};
	nm_autofree char *text = malloc(MAX_BYTES + 1);
	if (!text)
		return -ENOMEM;
	int length = nm_read_text(AT_FDCWD, path, text, MAX_BYTES + 1);
	if (length >= 0) {
		int r = nm_config_parse(path, text, (size_t)length, errors, ret);
		if (r == 0)
			*ret_text = NM_TAKE(text);
		return r;
	}
	nm_report_error(&report, 0, "cannot be read: %s%s", strerrordesc_np(-length),
			length == -EFBIG ? " (at most 1 MiB)" : "");
	return report.out_of_memory ? -ENOMEM : length;
}

int nm_config_load(const char *path, struct nm_config_errors *errors, struct nm_config **ret)
{
	nm_autofree char *text = NULL;
	return nm_config_load_text(path, errors, ret, &text);
}
