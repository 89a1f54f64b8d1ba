/* SPDX-License-Identifier: MIT */
/*
 * Runs one life after another, in each of which another call fails. The outcome of each must be
 * valid, and is added up per operation and error. Each such pair runs in a separate process. There
 * are two lives: several policies in turn, and policy "auto" from start to end. Include cmocka.h
 * first.
 */
#ifndef NM_TEST_ORDEAL_SWEEP_H
#define NM_TEST_ORDEAL_SWEEP_H

#include "ordeal_cases.h"
#include "ordeal_fixture.h"

/*
 * N calls of each operation and error are tried in each of the two lives, from the first to the
 * last at equal distances, and as many permanent failures. NM_ORDEAL=5 tries five times as many,
 * NM_ORDEAL=all each one.
 */
#define SWEEP_CALLS 8U
#define SWEEP_LASTING 3U
#define SWEEP_COMPLAINTS 5U

/* Outcome for one operation and error. */
struct outcome {
	unsigned lives, complaints;
	struct messages found; /* outcome and log messages of the daemon */
};

/* A life without failures. */
struct sweep_life {
	const char *policy; /* as ordeal.only */
	struct messages usual; /* usual log messages */
	unsigned calls[GATE_OPS];
};

#define SWEEP_LIVES 2U
struct sweep {
	struct outcome of[ORDEAL_CASES][CASE_ERRORS];
	struct sweep_life lives[SWEEP_LIVES];
	unsigned failed; /* pairs */
};

static struct sweep *sweep; /* shared with the children */
static const struct sweep_life *sweep_usual; /* of the current life */
static unsigned sweep_usual_fds;

static inline void sweep_begin(void)
{
	sweep = mmap(NULL, sizeof(*sweep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	assert_true(sweep != MAP_FAILED);
	ordeal_set_out();
	sweep->lives[1].policy = "auto";
	for (unsigned i = 0; i < SWEEP_LIVES; i++) {
		struct sweep_life *life = &sweep->lives[i];
		ordeal.only = life->policy;
		ordeal_anew();
		assert_int_equal(ordeal_live(), EXIT_SUCCESS);
		life->usual = ordeal.messages;
		memcpy(life->calls, gate.calls, sizeof(gate.calls));
	}
}

static inline void sweep_end(void)
{
	ordeal_end();
	munmap(sweep, sizeof(*sweep));
}

static inline const char *sweep_leak(void)
{
	const struct world *world = ordeal.world;
	if (gate.nr_live)
		return "memory is lost";
	if (fake_open_fds(world->fake))
		return "a directory stays open";
	if (world->perf.open_count)
		return "an event stays open";
	if (world->perf.map_count)
		return "a ring stays mapped";
	if (fake_asked.open)
		return "a question is neither answered nor forgotten";
	if (fake_mover.alive || fake_mover.nr_waiting)
		return "the mover stays";
	return ordeal_fds() != sweep_usual_fds ? "a file stays open" : NULL;
}

static inline bool sweep_logged_reason(void)
{
	for (unsigned i = 0; i < ordeal.messages.count; i++)
		if (!reported_has(&sweep_usual->usual, ordeal.messages.text[i]))
			return true;
	return false;
}

/* Affinities may remain changed if they are recorded. */
static inline const char *sweep_recover(void)
{
	if (!ordeal_there_is("moves"))
		return fake_trace(ordeal.world->fake) ? "an affinity is left, and no record" : NULL;
	if (ordeal_restore() != EXIT_SUCCESS)
		return "--restore fails afterwards";
	if (fake_trace(ordeal.world->fake))
		return "--restore leaves an affinity";
	if (ordeal_there_is("moves"))
		return "--restore leaves the record";
	return sweep_leak();
}

/* Returns the fault of the last life, or NULL. */
static inline const char *sweep_judge(int status)
{
	const char *leak = sweep_leak();
	if (leak)
		return leak;
	if (status == EXIT_SUCCESS && !ordeal.stopped)
		return "it ended in peace and did not stop";
	if (status != EXIT_SUCCESS && !sweep_logged_reason())
		return "it exited without logging a reason";
	return sweep_recover();
}

/* Returns true if the message is one of the expected ones. */
static inline bool sweep_may_log(const struct ordeal_case *of, const char *text)
{
	for (unsigned i = 0; of->says[i]; i++)
		if (strncmp(text, of->says[i], strlen(of->says[i])) == 0)
			return true;
	return false;
}

/* Returns a deviation of this life from the table of cases, or NULL. */
static inline const char *sweep_unexpected(const struct ordeal_case *of, int status)
{
	unsigned ends = status == EXIT_SUCCESS ? 0 : ordeal.started ? MAY_END : MAY_NOT_START;
	bool messages = false;
	if (ends & ~of->ends)
		return ends == MAY_END ? "it is not to end" : "it is to start";
	for (unsigned i = 0; i < ordeal.messages.count; i++) {
		if (reported_has(&sweep_usual->usual, ordeal.messages.text[i]))
			continue;
		messages = true;
		if (!sweep_may_log(of, ordeal.messages.text[i]))
			return ordeal.messages.text[i];
	}
	return of->ends & IS_LOGGED && gate.lasting && gate.fail_at == 1 && !messages
		       ? "it is not logged"
		       : NULL;
}

/* No failure ends a life before it is stopped, and a single failure does not silently stop
 * moves. */
static inline const char *sweep_halt(void)
{
	if (!ordeal.started)
		return NULL;
	if (ordeal.exits)
		return "it did not live to its end";
	if (gate.lasting || ordeal.refused || sweep_logged_reason())
		return NULL;
	return ordeal.moved == 0 || ordeal.homes == 0 ? "it makes no more moves" : NULL;
}

static inline const char *sweep_end_of(int status)
{
	if (status == EXIT_SUCCESS)
		return "goes on";
	return ordeal.started ? "ends" : "does not start";
}

static inline void sweep_count(struct outcome *outcome, int status)
{
	char line[MESSAGES_BYTES + 32];
	bool silent = true;
	outcome->lives++;
	for (unsigned i = 0; i < ordeal.messages.count; i++) {
		if (reported_has(&sweep_usual->usual, ordeal.messages.text[i]))
			continue;
		silent = false;
		snprintf(line, sizeof(line), "%s: %s", sweep_end_of(status),
			 ordeal.messages.text[i]);
		reported_add(&outcome->found, line);
	}
	if (silent)
		reported_add(&outcome->found, sweep_end_of(status));
}

static inline void sweep_complain(struct outcome *outcome, const struct ordeal_case *of,
				  const char *wrong)
{
	if (outcome->complaints++ < SWEEP_COMPLAINTS)
		fprintf(stderr, "%s, %s, call %u, %s%s: %s\n",
			ordeal.only ? ordeal.only : "all policies", of->name, gate.fail_at,
			strerrorname_np(gate.error), gate.lasting ? " from then on" : "", wrong);
	memset(gate.live, 0, sizeof(gate.live));
	gate.nr_live = 0;
	memset(&ordeal.world->perf.events, 0, sizeof(ordeal.world->perf.events));
	ordeal.world->perf.open_count = ordeal.world->perf.map_count = 0;
	sweep_usual_fds = ordeal_fds();
}

static inline void sweep_try(const struct ordeal_case *of, int error, bool lasting, unsigned call,
			     struct outcome *outcome)
{
	ordeal_anew();
	gate.fail_op = of->op;
	gate.fail_at = call;
	gate.error = error;
	gate.lasting = lasting;
	int status = ordeal_live();
	gate.fail_at = call;
	sweep_count(outcome, status);
	const char *wrong = sweep_unexpected(of, status);
	if (!wrong)
		wrong = sweep_halt();
	if (!wrong)
		wrong = sweep_judge(status);
	gate.fail_at = call;
	if (wrong)
		sweep_complain(outcome, of, wrong);
}

static inline unsigned sweep_most(unsigned few, unsigned calls)
{
	const char *wanted = getenv("NM_ORDEAL");
	if (wanted && strcmp(wanted, "all") == 0)
		return calls;
	unsigned most = few * (wanted && atoi(wanted) > 0 ? (unsigned)atoi(wanted) : 1);
	return most < calls ? most : calls;
}

static inline void sweep_spread(const struct ordeal_case *of, int error, bool lasting,
				struct outcome *ret)
{
	unsigned calls = sweep_usual->calls[of->op];
	unsigned most = sweep_most(lasting ? SWEEP_LASTING : SWEEP_CALLS, calls);
	for (unsigned i = 0; i < most; i++)
		sweep_try(of, error, lasting, 1 + i * calls / most, ret);
}

static inline void sweep_lives(const struct ordeal_case *of, int error, struct outcome *ret)
{
	sweep_usual_fds = ordeal_fds();
	for (unsigned i = 0; i < SWEEP_LIVES; i++) {
		sweep_usual = &sweep->lives[i];
		ordeal.only = sweep_usual->policy;
		sweep_spread(of, error, false, ret);
		sweep_spread(of, error, true, ret);
	}
}

/* Runs all lives of one operation and error. */
static inline void sweep_pair(const struct ordeal_case *of, unsigned k)
{
	struct outcome *outcome = &sweep->of[of - ordeal_cases][k];
	int status;
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* Instead of the handler of cmocka: a fault must end this process. */
		(void)signal(SIGSEGV, SIG_DFL);
		(void)signal(SIGABRT, SIG_DFL);
		(void)signal(SIGBUS, SIG_DFL);
		(void)signal(SIGFPE, SIG_DFL);
		sweep_lives(of, of->errors[k], outcome);
		_exit(outcome->complaints > 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s, %s: died by signal %d after %u lives\n", of->name,
			strerrorname_np(of->errors[k]), WTERMSIG(status), outcome->lives);
	sweep->failed++;
}

#endif
