// SPDX-License-Identifier: MIT
// SECURITY: bus-answers, document-text
/* A document as numa-migrctl gets it from the bus: all tables and lines are printed without control
 * characters. */
#include "../../src/ctl/cell.h"
#include "../../src/ctl/ctl.h"
#include "fuzz.h"

static void require_printable(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		FUZZ_REQUIRE(text[i] == '\n' || (unsigned char)text[i] >= 0x20);
}

/* Also what no table shows. */
static void require_clean(json_t *value, bool has_lines)
{
	const char *name, *text = json_string_value(value);
	size_t index;
	json_t *member;
	uint32_t code;

	for (size_t at = 0, size; text && text[at]; at += size) {
		size = nm_utf8_decode(text + at, strlen(text + at), &code);
		FUZZ_REQUIRE(size > 0 && (nm_is_printable(code) || (has_lines && code == '\n')));
	}
	json_array_foreach(value, index, member)
	{
		require_clean(member, false);
	}
	json_object_foreach(value, name, member)
	{
		json_t *key = json_string(name);
		require_clean(key, false);
		json_decref(key);
		require_clean(member, strcmp(name, "fields") == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct nm_table *const tables[] = {&nm_node_table, &nm_process_table,
						 &nm_thread_table, &nm_decision_table};
	const struct nm_style style = {.utf8 = true};
	nm_auto(json_decrefp) json_t *document = NULL;
	nm_autofree char *text = NULL;
	size_t length = 0;

	if (nm_ctl_parse_document((const char *)data, size, &document) < 0)
		return 0;
	require_clean(document, false);
	FILE *out = open_memstream(&text, &length);
	FUZZ_REQUIRE(out);
	nm_ctl_print_lines(out, &style, json_object_get(document, "status"));
	for (size_t i = 0; i < NM_ARRAY_SIZE(tables); i++) {
		const json_t *rows = nm_ctl_rows(document, tables[i]);
		nm_table_print(out, &style, tables[i], rows);
		(void)nm_ctl_find_row(rows, "pid", 1);
	}
	FUZZ_REQUIRE(fclose(out) == 0);
	require_printable(text, length);
	return 0;
}
