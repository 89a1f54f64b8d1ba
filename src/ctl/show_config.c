/* SPDX-License-Identifier: MIT */
/* The effective configuration, with the file of each value. */
#include <string.h>
#include <unistd.h>

#include "cell.h"
#include "ctl.h"
#include "numa-migrd/config.h"

static const struct nm_field fields[] = {
	{.name = "name", .head = "SETTING", .left = true},
	{.name = "value", .head = "VALUE", .left = true},
	{.name = "place", .head = "FROM", .left = true},
};
static const struct nm_table table = {
	.name = "settings", .fields = fields, .count = NM_ARRAY_SIZE(fields)};

/* Parameters only if a file contains them: they are for research. */
json_t *nm_ctl_config_rows(const struct nm_config *config)
{
	json_t *rows = nm_must(json_array());
	struct nm_config_value value;
	for (size_t i = 0; nm_config_show(config, i, &value); i++) {
		char name[128], text[2 * sizeof(value.text)];
		if (value.parameter && !value.place)
			continue;
		(void)snprintf(name, sizeof(name), "%s%s%s%s", value.parameter ? "parameters." : "",
			       value.group, value.group[0] ? "." : "", value.name);
		(void)nm_escape(text, sizeof(text), value.text, strlen(value.text));
		nm_must_do(json_array_append_new(
			rows, nm_must(json_pack("{ssssss}", "name", name, "value", text, "place",
						value.place ? value.place : "default"))));
	}
	return rows;
}

int nm_ctl_show_config(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	const struct nm_config_files files = {
		.path = NM_CONFIG_FILE, .folder = NM_CONFIG_FOLDER, .may_be_missing = true};
	(void)words;
	int r = nm_config_load(&files, geteuid(), &errors, &config);
	for (size_t i = 0; i < errors.count; i++)
		(void)fprintf(stderr, "numa-migrctl: %s\n", errors.text[i]);
	if (r < 0)
		return r == -EACCES ? NM_CTL_NOT_ALLOWED : EXIT_FAILURE;
	json_t *rows = nm_ctl_config_rows(config);
	if (ctl->json)
		return nm_ctl_print_document(table.name, rows);
	nm_table_print(stdout, &ctl->style, &table, rows);
	json_decref(rows);
	return nm_ctl_close_output();
}
