/* SPDX-License-Identifier: MIT */
/* Arguments, messages and output: the parts that all commands share. */
#include <string.h>
#include <sysexits.h>

#include "ctl.h"

/* ---- arguments ---- */

int nm_ctl_wrong_usage(const char *what, const char *which)
{
	(void)fprintf(stderr, "numa-migrctl: %s%s%s\nTry: numa-migrctl --help\n", what,
		      which ? ": " : "", which ? which : "");
	return EX_USAGE;
}

int nm_ctl_fail(const char *file, const char *why)
{
	(void)fprintf(stderr, "numa-migrctl: %s: %s\n", file, why);
	return EXIT_FAILURE;
}

bool nm_ctl_number(const char *word, uint64_t least, uint64_t most, uint64_t *ret)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(word, &end, 10);
	if (errno != 0 || *end != '\0' || word[0] < '0' || word[0] > '9')
		return false;
	if (value < least || value > most)
		return false;
	*ret = value;
	return true;
}

int nm_ctl_pid(const char *word, uint32_t *ret)
{
	uint64_t value;
	if (!nm_ctl_number(word, 1, INT32_MAX, &value))
		return nm_ctl_wrong_usage("not a process id", word);
	*ret = (uint32_t)value;
	return EXIT_SUCCESS;
}

/* ---- output ---- */

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
	/* ASCII: the owner of the bus name may send any text, also to a terminal. */
	(void)json_dumpf(document, stdout,
			 JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
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
	nm_auto(json_decrefp) json_t *document = json_pack(
		"{sisOsO}", "version", NM_CTL_JSON_VERSION, name, value, second_name, second_value);
	return nm_ctl_print_json(document);
}

int nm_ctl_done(const struct nm_ctl *ctl, const char *result)
{
	if (ctl->json)
		(void)printf("{\"version\": %d, \"result\": \"%s\"}\n", NM_CTL_JSON_VERSION,
			     result);
	return nm_ctl_close_output();
}
