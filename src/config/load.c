/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "numa-migrd/file.h"
#include "report.h"

#define MAX_BYTES ((size_t)1 << 20)

static void report_unread(struct nm_report *report, int error)
{
	switch (error) {
	case -ELOOP:
		nm_report_error(report, 0,
				"is a symbolic link; put the file itself there, so that it is "
				"clear who can write it");
		break;
	case -EMEDIUMTYPE:
		nm_report_error(report, 0, "is not a plain file");
		break;
	case -EPERM:
		nm_report_error(report, 0,
				"others can write it, or it is another user's: it must belong to "
				"root, or to the user of numa-migrd, and be writable by its owner "
				"only (chown root FILE; chmod go-w FILE)");
		break;
	default:
		nm_report_error(report, 0, "cannot be read: %s%s", strerrordesc_np(-error),
				error == -EFBIG ? " (at most 1 MiB)" : "");
	}
}

int nm_config_load_text(const char *path, struct nm_config_errors *errors, struct nm_config **ret,
			char **ret_text)
{
	struct nm_report report = {.file = path, .errors = errors};
	nm_autofree char *text = malloc(MAX_BYTES + 1);
	if (!text)
		return -ENOMEM;
	int length = nm_read_trusted(path, text, MAX_BYTES + 1);
	if (length < 0) {
		report_unread(&report, length);
		return report.out_of_memory ? -ENOMEM : length;
	}
	int r = nm_config_parse(path, text, (size_t)length, errors, ret);
	if (r == 0)
		*ret_text = NM_TAKE(text);
	return r;
}

int nm_config_load(const char *path, struct nm_config_errors *errors, struct nm_config **ret)
{
	nm_autofree char *text = NULL;
	return nm_config_load_text(path, errors, ret, &text);
}
