/* SPDX-License-Identifier: MIT */
/*
 * Every call of a whole life fails with each plausible error, once and permanently. No data is lost
 * and no resources leak; the outcome is one of ordeal_cases.h, and docs/failures.md has its rows,
 * as test_ordeal_calls --print shows them. The name of an operation as argument selects only
 * that one, and 2/3 the second of three parts.
 */
#include "../support/test.h"

#include "ordeal_sweep.h"

static const char *only; /* only this operation is tried; NULL: all */
/* Of the operations, every parts-th one is tried: they take longer than all other tests. */
static unsigned part = 1, parts = 1;

static bool is_selected(size_t operation)
{
	if (only)
		return strcmp(only, ordeal_cases[operation].name) == 0;
	return operation % parts == part - 1;
}

static void try_all(void)
{
	unsigned lives = 0;
	for (size_t i = 0; i < ORDEAL_CASES; i++)
		for (unsigned k = 0; is_selected(i) && k < CASE_ERRORS && ordeal_cases[i].errors[k];
		     k++) {
			sweep_pair(&ordeal_cases[i], k);
			lives += sweep->of[i][k].lives;
		}
	fprintf(stderr, "%u lives\n", lives);
	assert_true(lives > 0);
}

TEST(every_call_may_fail)
{
	try_all();
	assert_int_equal(sweep->failed, 0);
}

/* ---- the document ---- */

static const char title[] =
	"# When calls fail, or hang\n\n"
	"No failure of a call, once or permanently, leaves an affinity narrowed that is not in the "
	"ledger, leaks memory or files, or\nends the service without an entry in the journal. No "
	"call of "
	"the daemon waits for the memory map of another process; it\nwaits for the helper for 0.5 "
	"s for "
	"each message, and for journald and the disk until the watchdog ends it.\n\n"
	"`test_ordeal_calls` lets each call fail in two whole lives of the daemon on a made-up "
	"machine, "
	"with each error, once and\nfrom some call on; `test_worker_hangs` and `76-held-lock` let "
	"calls "
	"hang. The expected outcomes are in\n`tests/unit/ordeal_cases.h`. `test_ordeal_calls "
	"--print` and "
	"`test_mover_failing --print` print the first two tables.\n\n"
	"## Calls of the daemon\n\n"
	"Outcome: c, the service continues; e, it may end; s, it may fail to start; l, it logs a "
	"permanent failure. Bound –: it waits\nfor short locks of the kernel only.\n\n"
	"| operation | call | consequence | outcome | waits for | bound | errors |\n"
	"|---|---|---|---|---|---|---|\n";

static void row_of(const struct ordeal_case *of, char *ret, size_t size)
{
	size_t used = (size_t)snprintf(ret, size, "| %s | %s | %s | c%s%s%s | %s | %s |", of->name,
				       of->what, of->then, of->ends & MAY_END ? " e" : "",
				       of->ends & MAY_NOT_START ? " s" : "",
				       of->ends & IS_LOGGED ? " l" : "", of->waits, of->bound);
	for (unsigned k = 0; k < CASE_ERRORS && of->errors[k] && used < size; k++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s", k ? ", " : " ",
					 strerrorname_np(of->errors[k]));
	assert_true(used + 3 < size);
	strcat(ret, " |\n");
}

static int print_document(void)
{
	char row[1024];
	fputs(title, stdout);
	for (size_t i = 0; i < ORDEAL_CASES; i++) {
		row_of(&ordeal_cases[i], row, sizeof(row));
		fputs(row, stdout);
	}
	return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

TEST(each_operation_has_its_row)
{
	static char document[1 << 16];
	char row[1024];
	FILE *file = fopen(NM_SOURCE_DIR "/docs/failures.md", "re");
	assert_non_null(file);
	size_t length = fread(document, 1, sizeof(document) - 1, file);
	(void)fclose(file);
	assert_true(length < sizeof(document) - 1);
	for (size_t i = 0; i < ORDEAL_CASES; i++) {
		row_of(&ordeal_cases[i], row, sizeof(row));
		if (!strstr(document, row))
			fail_msg("docs/failures.md lacks: %s", row);
	}
}

int main(int argc, char **argv)
{
	umask(022);
	sweep_begin();
	bool print = argc > 1 && strcmp(argv[1], "--print") == 0;
	if (argc > 1 && !print && sscanf(argv[1], "%u/%u", &part, &parts) != 2)
		only = argv[1];
	assert_true(parts > 0);
	int r = print ? print_document() : RUN_REGISTERED(NULL, NULL);
	sweep_end();
	return r;
}
