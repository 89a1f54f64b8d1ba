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

enum call { OPEN_DIRECTORY, MAPPINGS_READ, UNITS_MOVE, RANGES_MOVE, CALLS };

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
	const char *name, *what;
	unsigned once, lasting; /* MAY() */
	int errors[ERRORS + 1]; /* ends with 0 */
} expectations[] = {
	[OPEN_DIRECTORY] = {"open_directory (mover)",
			    "opens the directory of the process",
			    MAY_NOT_MOVE | MAY(SOME_MOVED),
			    MAY_NOT_MOVE | MAY(SOME_MOVED),
			    {ENOENT, EACCES, EMFILE, ENOMEM}},
	[MAPPINGS_READ] = {"mappings_read (mover)",
			   "reads a part of maps and numa_maps",
			   MAY_NOT_MOVE,
			   MAY(NONE_MOVED) | MAY(WAITS),
			   {ESRCH, EACCES, EPERM, EIO, ENOMEM, EAGAIN, ESTALE, ETIMEDOUT,
			    EALREADY}},
	[UNITS_MOVE] = {"units_move (mover)",
			"queries the nodes of pages, migrates them, and queries what became of it",
			MAY_NOT_MOVE | MAY(SOME_MOVED),
			MAY(NONE_MOVED) | MAY(WAITS),
			{ESRCH, EPERM, EACCES, ENOMEM, EAGAIN, EPROTO, ETIMEDOUT, EALREADY,
			 ECANCELED}},
	[RANGES_MOVE] = {"ranges_move (mover)",
			 "searches the pages of a process, and migrates them",
			 MAY_NOT_MOVE | MAY(SOME_MOVED),
			 MAY(NONE_MOVED) | MAY(WAITS),
			 {ESRCH, EPERM, EACCES, ENOMEM, EAGAIN, EPROTO, ETIMEDOUT, EALREADY,
			  ECANCELED}},
};

/* ---- a mover whose calls fail ---- */

static struct failing {
	const struct nm_platform_ops *below;
	unsigned calls[CALLS];
	enum call call;
	unsigned fail_at; /* 0: none */
	int error;
	bool lasting;
	bool deferred; /* successful calls are answered asynchronously */
	enum batch_kind {
		STEPS,
		WHOLE,
		KINDS
	} kind; /* kind of batch: of pages, or of a whole process */
} failing;

static int check_call(enum call call)
{
	unsigned number = ++failing.calls[call];
	if (call != failing.call || failing.fail_at == 0 || number < failing.fail_at ||
	    (number > failing.fail_at && !failing.lasting))
		return 0;
	return -failing.error;
}

static int open_directory(struct nm_platform *platform, int directory, const char *path)
{
	int r = check_call(OPEN_DIRECTORY);
	return r < 0 ? r : failing.below->open_directory(platform, directory, path);
}

static int mappings_read(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 const struct nm_mappings_order *order, struct nm_mappings_piece *ret,
			 uint64_t *ret_held_ns)
{
	int r = check_call(MAPPINGS_READ);
	return r < 0 ? r
		     : failing.below->mappings_read(platform, tid, start_ticks, order, ret,
						    ret_held_ns);
}

static int units_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
		      const struct nm_units_order *order, struct nm_units_moved *ret)
{
	int r = check_call(UNITS_MOVE);
	return r < 0 ? r : failing.below->units_move(platform, tid, start_ticks, order, ret);
}

static int ranges_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
		       const struct nm_ranges_order *order, struct nm_ranges_moved *ret)
{
	int r = check_call(RANGES_MOVE);
	return r < 0 ? r : failing.below->ranges_move(platform, tid, start_ticks, order, ret);
}

static void wrap(struct test *test, struct nm_platform_ops *ops)
{
	failing.below = test->fake->platform.ops;
	*ops = *failing.below;
	ops->open_directory = open_directory;
	ops->mappings_read = mappings_read;
	ops->units_move = units_move;
	ops->ranges_move = ranges_move;
	test->fake->platform.ops = ops;
}

/* ---- lives ---- */

static struct nm_page_batch *make_batch(void)
{
	struct nm_page_batch *batch = fake_batch(failing.kind ? 0 : PAGES);
	batch->bulk = failing.kind != STEPS;
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
	unsigned moved = failing.kind ? (unsigned)batch->moved : 0;
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
	bool failed = batch->error < 0 || failing.kind != STEPS;
	if (failing.kind)
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
	struct nm_platform_ops ops;
	void *state = NULL;
	assert_int_equal(set_up(&state), 0);
	struct test *test = state;
	for (size_t page = PAGES; page < FAKE_PAGES; page++)
		test->memory->node[page] = -ENOENT;
	test->memory->found_most = PAGES / 3; /* several searches */
	snprintf(test->memory->numa_maps, FAKE_TEXT,
		 "%" PRIx64 " default anon=500 N0=%u kernelpagesize_kB=4\n", FAKE_BASE, 1U << 20);
	wrap(test, &ops);
	memset(failing.calls, 0, sizeof(failing.calls));
	start(test);
	test->memory->deferred = failing.deferred;
	enum outcome outcome = WAITS;
	for (unsigned tries = 0; tries < 20 && outcome == WAITS; tries++) {
		assert_int_equal(nm_mover_submit(test->mover, make_batch()), 0);
		nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = wait_for(test);
		assert_true(batch || failing.kind);
		if (!batch) /* it waits in the mover */
			break;
		assert_batch_matches_pages(test, batch);
		outcome = outcome_of(batch);
		test->fake->now_ns += NM_NSEC_PER_SEC;
	}
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

static void try_call(enum call call, unsigned k, bool lasting, unsigned fail_at)
{
	const struct expectation *expected = &expectations[call];
	failing.call = call;
	failing.fail_at = fail_at;
	failing.error = expected->errors[k];
	failing.lasting = lasting;
	enum outcome outcome = live();
	if (!(allowed(expected, lasting, fail_at) & MAY(outcome)))
		fail_msg("%s%s, call %u%s, %s: %s", expected->name,
			 failing.kind ? " of a whole process" : "", fail_at,
			 lasting ? " from then on" : "", strerrorname_np(failing.error),
			 outcomes[outcome]);
}

/* Returns true if the kind of batch uses the call. */
static bool is_used(enum batch_kind kind, enum call call)
{
	if (call == UNITS_MOVE || call == RANGES_MOVE)
		return call == (kind == WHOLE ? RANGES_MOVE : UNITS_MOVE);
	return true;
}

static void try_each(enum batch_kind kind)
{
	unsigned calls[CALLS];
	failing.fail_at = 0;
	failing.kind = kind;
	assert_int_equal(live(), ALL_MOVED);
	memcpy(calls, failing.calls, sizeof(calls));
	for (enum call call = 0; call < CALLS; call++) {
		assert_int_equal(calls[call] > 0, is_used(kind, call));
		assert_true(calls[call] < CALLS_MOST);
		for (unsigned k = 0; expectations[call].errors[k]; k++)
			for (unsigned at = 1; at <= calls[call]; at++) {
				try_call(call, k, false, at);
				try_call(call, k, true, at);
			}
	}
}

static void try_all(void)
{
	for (enum batch_kind kind = STEPS; kind < KINDS; kind++)
		for (unsigned i = 0; i < 2; i++) {
			failing.deferred = i > 0;
			try_each(kind);
		}
}

TEST(only_failures_are_reported)
{
	try_all();
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
	for (enum call call = 0; call < CALLS; call++)
		print_row(out, &expectations[call]);
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
