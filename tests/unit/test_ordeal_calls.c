/* SPDX-License-Identifier: MIT */
/*
 * Every call of a whole life fails, with each error that is plausible, once and for good. Nothing
 * is lost or left behind, and what becomes of the daemon is what docs/failures.md says:
 *
 *     test_ordeal_calls --print > docs/failures.md
 *
 * An operation's name as argument tries only that one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <ctype.h>

#include "ordeal_sweep.h"

static const char *only; /* this operation is tried; NULL: all are */

static void try_all(void)
{
	unsigned lives = 0;
	for (size_t i = 0; i < ORDEAL_CASES; i++)
		for (unsigned k = 0; k < CASE_ERRORS && ordeal_cases[i].errors[k]; k++) {
			if (only && strcmp(only, ordeal_cases[i].name) != 0)
				continue;
			sweep_pair(&ordeal_cases[i], k);
			lives += sweep->of[i][k].lives;
		}
	fprintf(stderr, "%u lives\n", lives);
}

static void nothing_is_lost_or_left(void **state)
{
	(void)state;
	try_all();
	assert_int_equal(sweep->failed, 0);
}

/* ---- the document ---- */

static const char title[] =
	"# When calls fail, or hang\n\n"
	"What becomes of numa-migrd(8) when a call to the machine fails.\n"
	"`tests/unit/test_ordeal_calls.c` lets each call of a whole life of the daemon fail on a "
	"made-up machine, by each error\nthat is plausible, once, and in other lives from some call "
	"on for good. The life has moves under leases, a fork and an exec\nbelow one, steering by "
	"attribute, a pause, reloads to each policy, an owner who pins a thread, and a release. It is "
	"run\nwith one policy after another, and with policy `auto` from start to end.\n\n"
	"What *should* happen stands in `tests/unit/ordeal_cases.h`: how the daemon may end, in "
	"which words it may speak of it,\nand whether it must. Each life is held against that; and "
	"after each no memory, file, event or mapping is lost; every\nmask is its owner's again, or "
	"in the ledger, and then `--restore` gives it back; and a daemon that ends has said why.\n"
	"The tables have what was found, the words of the journal cut short, with N for numbers and "
	"E for the error: by\n8 calls of each kind, spread over each of the two lives, and 100 for "
	"memory; `NM_ORDEAL=5` tries five times as many, `NM_ORDEAL=all` each.\n\n"
	"What takes another process's lock on its memory map is asked of numa-migrd-worker(8); "
	"there a call can also hang, and no\nanswer comes. The mover's thread asks it likewise: "
	"its calls are at the end.\n\n"
	"\"Goes on\" alone: the failure is nothing that an administrator could do anything about, "
	"and it is not told.\n";

/* The text of a row but for its errors. */
static void row_begin(char *ret, size_t size, const struct ordeal_case *of, const char *found)
{
	snprintf(ret, size, "| %s | %s |", of->name, found);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Every outcome of an operation once, in the order of their texts. */
static unsigned outcomes_of(size_t i, struct told *ret)
{
	ret->count = 0;
	for (unsigned k = 0; k < CASE_ERRORS && ordeal_cases[i].errors[k]; k++)
		for (unsigned n = 0; n < sweep->of[i][k].found.count; n++)
			told_add(ret, sweep->of[i][k].found.text[n]);
	qsort(ret->text, ret->count, sizeof(*ret->text), by_text);
	return ret->count;
}

static void print_row(size_t i, const char *found)
{
	char row[TOLD_BYTES + 64];
	const char *between = " ";
	row_begin(row, sizeof(row), &ordeal_cases[i], found);
	fputs(row, stdout);
	for (unsigned k = 0; k < CASE_ERRORS && ordeal_cases[i].errors[k]; k++) {
		if (!told_has(&sweep->of[i][k].found, found))
			continue;
		printf("%s%s", between, strerrorname_np(ordeal_cases[i].errors[k]));
		between = ", ";
	}
	printf(" |\n");
}

static void print_case(size_t i)
{
	static struct told outcomes;
	const struct ordeal_case *of = &ordeal_cases[i];
	printf("\n## %s\n\nWhere %s.\nThen %s.\nMay it hang? %c%s.\n", of->name, of->what,
	       of->then, toupper(of->waits[0]), of->waits + 1);
	printf("Expected: it goes on%s%s%s.\n\n", of->ends & MAY_END ? ", or ends" : "",
	       of->ends & MAY_NOT_START ? ", or does not start" : "",
	       of->ends & IS_TOLD ? "; where each such call fails, it says so" : "");
	printf("| operation | outcome | errors |\n|---|---|---|\n");
	for (unsigned n = 0, count = outcomes_of(i, &outcomes); n < count; n++)
		print_row(i, outcomes.text[n]);
}

static int print_document(void)
{
	try_all();
	fputs(title, stdout);
	for (size_t i = 0; i < ORDEAL_CASES; i++)
		print_case(i);
	return ferror(stdout) || sweep->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Fewer calls are tried than for the document: what was found must be there. */
static void assert_documented(const char *document, size_t i, unsigned k, const char *found)
{
	char row[TOLD_BYTES + 64];
	const char *name = strerrorname_np(ordeal_cases[i].errors[k]);
	row_begin(row, sizeof(row), &ordeal_cases[i], found);
	const char *place = strstr(document, row);
	const char *end = place ? strchr(place, '\n') : NULL;
	const char *error = place ? strstr(place + strlen(row), name) : NULL;
	if (!end || !error || error > end)
		fail_msg("docs/failures.md lacks, for %s: %s", name, row);
}

static void what_becomes_of_it_is_documented(void **state)
{
	static char document[1 << 18];
	(void)state;
	FILE *file = fopen(NM_SOURCE_DIR "/docs/failures.md", "r");
	assert_non_null(file);
	size_t length = fread(document, 1, sizeof(document) - 1, file);
	fclose(file);
	assert_true(length < sizeof(document) - 1);
	for (size_t i = 0; i < ORDEAL_CASES; i++)
		for (unsigned k = 0; k < CASE_ERRORS && ordeal_cases[i].errors[k]; k++)
			for (unsigned n = 0; n < sweep->of[i][k].found.count; n++)
				assert_documented(document, i, k, sweep->of[i][k].found.text[n]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_or_left),
		cmocka_unit_test(what_becomes_of_it_is_documented),
	};
	umask(022);
	sweep_begin();
	bool print = argc > 1 && strcmp(argv[1], "--print") == 0;
	only = argc > 1 && !print ? argv[1] : NULL;
	int r = print ? print_document() : cmocka_run_group_tests(tests, NULL, NULL);
	sweep_end();
	return r;
}
