/* SPDX-License-Identifier: MIT */
/*
 * Each call of the mover fails, or hangs in the worker, which then returns -ETIMEDOUT: once, for
 * each call of the life of a batch in turn, and permanently from some call on. The outcome of the
 * batch is compared with the expectation, of which docs/failures.md has a row: test_mover_failing
 * --print >> docs/failures.md
 */
#include "../support/test.h"

#include "mover_fixture.h"

#define PAGES 500U /* several calls */
#define ROUNDS 400U
#define ROUND_MS 50U
#define CALLS_MOST 40U /* of a kind in one life; each of them fails in turn */
#define ERRORS 9U

enum outcome { ALL_MOVED, SOME_MOVED, NONE_MOVED, WAITS, OUTCOMES };

static const char *const outcomes[] = {
	[ALL_MOVED] = "every page is moved, though later",
	[SOME_MOVED] = "the batch comes back with what was moved, and the error",
	[NONE_MOVED] = "the batch comes back with nothing moved, and the error",
	[WAITS] = "the batch waits, or comes back, to be tried again",
};

#define MAY(outcome) (1U << (outcome))
#define MAY_NOT_MOVE (MAY(ALL_MOVED) | MAY(NONE_MOVED) | MAY(WAITS))

static const struct expectation {
	enum fake_op call;
	const char *name, *what;
	unsigned once, lasting; /* MAY() */
	int errors[ERRORS + 1]; /* ends with 0 */
} expectations[] = {
	{FAKE_OPEN,
	 "open_directory (mover)",
	 "opens the directory of the process",
	 MAY_NOT_MOVE | MAY(SOME_MOVED),
	 MAY_NOT_MOVE | MAY(SOME_MOVED),
	 {ENOENT, EACCES, EMFILE, ENOMEM}},
	{FAKE_MAPPINGS,
	 "mappings_read (mover)",
	 "reads a part of maps and numa_maps",
	 MAY_NOT_MOVE,
	 MAY(NONE_MOVED) | MAY(WAITS),
	 {ESRCH, EACCES, EPERM, EIO, ENOMEM, EAGAIN, ESTALE, ETIMEDOUT, EALREADY}},
	{FAKE_UNITS,
	 "units_move (mover)",
	 "queries the nodes of pages, migrates them, and queries what became of it",
	 MAY_NOT_MOVE | MAY(SOME_MOVED),
	 MAY(NONE_MOVED) | MAY(WAITS),
	 {ESRCH, EPERM, EACCES, ENOMEM, EAGAIN, EPROTO, ETIMEDOUT, EALREADY, ECANCELED}},
	{FAKE_RANGES,
	 "ranges_move (mover)",
	 "searches the pages of a process, and migrates them",
	 MAY_NOT_MOVE | MAY(SOME_MOVED),
	 MAY(NONE_MOVED) | MAY(WAITS),
	 {ESRCH, EPERM, EACCES, ENOMEM, EAGAIN, EPROTO, ETIMEDOUT, EALREADY, ECANCELED}},
};

/* One life: the batch, and the call that fails. */
static struct life {
	bool whole;    /* its batch is of a whole process, not of pages */
	bool deferred; /* successful calls are answered asynchronously */
	enum fake_op call;
	unsigned fail_at; /* 0: none */
	int error;
	bool lasting;
} life;

static unsigned calls[FAKE_OPS]; /* of each kind, in the last life */

/* ---- lives ---- */

static struct nm_page_batch *make_batch(void)
{
	struct nm_page_batch *batch = fake_batch(life.whole ? 0 : PAGES);
	batch->bulk = life.whole;
	batch->to = 1;
	return batch;
}

static unsigned pages_on_target(const struct test *test)
{
	unsigned count = 0;
	for (size_t page = 0; page < FAKE_PAGES; page++)
		count += test->memory->node[page] == 1;
	return count;
}

static struct nm_page_batch *wait_for(struct test *test)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		nm_mover_work(test->mover);
		struct nm_page_batch *done = fake_done(test->mover);
		if (done)
			return done;
		test->fake->now_ns += ROUND_MS * NM_NSEC_PER_MSEC;
	}
	return NULL;
}

static enum outcome outcome_of(const struct nm_page_batch *batch)
{
	unsigned moved = life.whole ? (unsigned)batch->moved : 0;
	for (size_t i = 0; i < batch->count; i++)
		moved += batch->steps[i].fate == NM_PAGE_FATE_MOVED;
	if (moved == PAGES)
		return ALL_MOVED;
	if (batch->error == -ESTALE && moved == 0)
		return WAITS;
	return moved ? SOME_MOVED : NONE_MOVED;
}

/* The pages are where the batch reports them, and a dropped batch has an error. */
static void assert_batch_matches_pages(const struct test *test, const struct nm_page_batch *batch)
{
	bool failed = batch->error < 0 || life.whole;
	if (life.whole)
		assert_int_equal(batch->moved, pages_on_target(test));
	for (size_t i = 0; i < batch->count; i++) {
		const struct nm_page_step *step = &batch->steps[i];
		int on = test->memory->node[(step->address - FAKE_BASE) / FAKE_SMALL];
		if (step->fate == NM_PAGE_FATE_MOVED)
			assert_int_equal(on, 1);
		failed = failed || step->fate != NM_PAGE_FATE_UNTRIED;
	}
	assert_true(failed);
}

/* Retries as the daemon does, for a limited time. */
static enum outcome live(void)
{
	void *state = NULL;
	assert_int_equal(set_up(&state), 0);
	struct test *test = state;
	for (size_t page = PAGES; page < FAKE_PAGES; page++)
		test->memory->node[page] = -ENOENT;
	test->memory->found_most = PAGES / 3; /* several searches */
	snprintf(test->memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=500 N0=%u kernelpagesize_kB=4\n", FAKE_BASE, 1U << 20);
	memset(test->fake->calls, 0, sizeof(test->fake->calls));
	if (life.fail_at)
		fake_fail(test->fake, life.call, life.fail_at, life.lasting ? UINT_MAX : 1,
			  life.error);
	start(test);
	test->memory->deferred = life.deferred;
	enum outcome outcome = WAITS;
	for (unsigned tries = 0; tries < 20 && outcome == WAITS; tries++) {
		assert_int_equal(nm_mover_submit(test->mover, make_batch()), 0);
		nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = wait_for(test);
		assert_true(batch || life.whole);
		if (!batch) /* it waits in the mover */
			break;
		assert_batch_matches_pages(test, batch);
		outcome = outcome_of(batch);
		test->fake->now_ns += NM_NSEC_PER_SEC;
	}
	memcpy(calls, test->fake->calls, sizeof(calls));
	assert_int_equal(tear_down(&state), 0);
	return outcome;
}

/* If the first call and all later ones fail, no page moves; otherwise some may have moved
 * before. */
static unsigned allowed(const struct expectation *expected, bool lasting, unsigned fail_at)
{
	if (lasting && fail_at == 1)
		return expected->lasting;
	return expected->once | expected->lasting | MAY(SOME_MOVED);
}

static void try_call(const struct expectation *expected, int error, bool lasting, unsigned fail_at)
{
	life = (struct life){life.whole, life.deferred, expected->call, fail_at, error, lasting};
	const enum outcome outcome = live();
	if (!(allowed(expected, lasting, fail_at) & MAY(outcome)))
		fail_msg("%s%s, call %u%s, %s: %s", expected->name,
			 life.whole ? " of a whole process" : "", fail_at,
			 lasting ? " from then on" : "", strerrorname_np(error), outcomes[outcome]);
}

/* Returns true if the batch uses the call. */
static bool is_used(enum fake_op call)
{
	return call != (life.whole ? FAKE_UNITS : FAKE_RANGES);
}

static void try_each(bool whole, bool deferred)
{
	unsigned count[FAKE_OPS];
	life = (struct life){.whole = whole, .deferred = deferred};
	assert_int_equal(live(), ALL_MOVED);
	memcpy(count, calls, sizeof(count));
	EACH_ROW(row, expectations)
	{
		CHECK(row, (count[row->call] > 0) == is_used(row->call));
		CHECK(row, count[row->call] < CALLS_MOST);
		for (unsigned k = 0; row->errors[k]; k++)
			for (unsigned at = 1; at <= count[row->call]; at++) {
				try_call(row, row->errors[k], false, at);
				try_call(row, row->errors[k], true, at);
			}
	}
}

TEST(only_failures_are_reported)
{
	for (unsigned i = 0; i < 4; i++)
		try_each(i / 2, i % 2);
}

/* ---- the document ---- */

static const char title[] =
	"\n## Calls of the mover\n\n"
	"Workers make these calls; each has 2 s, after which the worker is replaced. ETIMEDOUT: "
	"the call hangs; EALREADY: the\ncall hangs already for this process, or for as many "
	"processes of its user as are allowed; ECANCELED: a newer numa-migrd\nruns. Outcome of one "
	"failure: m, all pages are migrated later; p, some pages, and the error is returned; n, no "
	"page, and\nthe error; w, the batch is tried again. If a request to a worker fails "
	"permanently, the outcome is n or w.\n\n"
	"| operation | call | outcome | errors |\n|---|---|---|---|\n";

static void print_row(FILE *out, const struct expectation *of)
{
	fprintf(out, "| %s | %s |%s%s%s%s |", of->name, of->what,
		of->once & MAY(ALL_MOVED) ? " m" : "", of->once & MAY(SOME_MOVED) ? " p" : "",
		of->once & MAY(NONE_MOVED) ? " n" : "", of->once & MAY(WAITS) ? " w" : "");
	for (unsigned k = 0; of->errors[k]; k++)
		fprintf(out, "%s%s", k ? ", " : " ", strerrorname_np(of->errors[k]));
	fprintf(out, " |\n");
}

static void print_document(FILE *out)
{
	fputs(title, out);
	EACH_ROW(row, expectations)
	print_row(out, row);
}

TEST(each_operation_has_its_row)
{
	static char document[1 << 16];
	char *rows = NULL;
	size_t size;
	FILE *out = open_memstream(&rows, &size);
	assert_non_null(out);
	print_document(out);
	assert_int_equal(fclose(out), 0);
	FILE *file = fopen(NM_SOURCE_DIR "/docs/failures.md", "re");
	assert_non_null(file);
	document[fread(document, 1, sizeof(document) - 1, file)] = '\0';
	(void)fclose(file);
	assert_non_null(strstr(document, rows));
	free(rows);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--print") == 0) {
		print_document(stdout);
		return 0;
	}
	return RUN_REGISTERED(NULL, NULL);
}
