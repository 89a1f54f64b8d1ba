/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "ctl.h"

int nm_ctl_close_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	perror("numa-migrctl: standard output");
	return EXIT_FAILURE;
}

int nm_ctl_print_json(const json_t *document)
{
	if (!document) {
		(void)fprintf(stderr, "numa-migrctl: %s\n", strerror(ENOMEM));
		return EXIT_FAILURE;
	}
	(void)json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	(void)fputc('\n', stdout);
	return nm_ctl_close_output();
}

int nm_ctl_print_document(const char *name, json_t *value)
{
	nm_auto(json_decrefp) json_t *document =
		json_pack("{siso}", "version", NM_CTL_JSON_VERSION, name, value);
	return nm_ctl_print_json(document);
}

int nm_ctl_print_pair(const char *name, const json_t *value, const char *second_name,
		      const json_t *second_value)
{
	nm_auto(json_decrefp) json_t *document =
		json_pack("{sisOsO}", "version", NM_CTL_JSON_VERSION, name, value, second_name,
			  second_value);
	return nm_ctl_print_json(document);
}
