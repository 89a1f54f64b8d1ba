/* SPDX-License-Identifier: MIT */
/* The ticks of the daemon on the model: they decide, are deterministic, and leave no files. */
#include "../support/test.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include <sys/wait.h>
#include <unistd.h>

#include "../model/sim.h"
#include "fixture.h"
#include "numa-migrd/base.h"
#include "sim_fixture.h"

static struct nm_config *config_of(const char *text)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_config *config = NULL;
	if (nm_config_parse("test", text, strlen(text), &errors, &config) < 0)
		fail_msg("%s", errors.text[0]);
	config->journal.level = NM_JOURNAL_ERROR;
	return config;
}

static struct nm_simulated run_into(FILE *decisions, const char *machine_name, const char *program,
				    unsigned threads, const char *policy, uint64_t seed)
{
	struct nm_sim_machine *machine = machine_named(machine_name);
	struct nm_sim_workload workload = {.limit_s = 60};
	struct nm_sim_options options = {.seed = seed};
	struct nm_config *config = policy ? config_of(policy) : NULL;
	struct nm_simulated done;
	struct nm_sim_program *added = add_program(&workload, program, threads);
	added->phases[0].giga = 1e5;
	added->touch = NM_SIM_TOUCH_MASTER;
	assert_int_equal(nm_simulate(machine, &workload, &options, config, decisions, &done), 0);
	nm_config_free(config);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
	return done;
}

static struct nm_simulated run(const char *machine_name, const char *program, unsigned threads,
			       const char *policy, uint64_t seed)
{
	return run_into(NULL, machine_name, program, threads, policy, seed);
}

#define BEST "threads: { policy = \"imar2\"; }; pages: { policy = \"exclusivity\"; };"

TEST(test_no_decisions_without_a_daemon)
{
	struct nm_simulated done = run("ring-4x10", "stream", 20, NULL, 1);
	assert_int_equal(done.decisions, 0);
	assert_int_equal(done.figures.masks_set, 0);
	assert_int_equal(done.figures.pages_moved, 0);
	assert_true(done.figures.time_s >= 60);
}

TEST(test_every_policy_runs)
{
	static const char *const policies[] = {
		"threads: { policy = \"lbma-paper\"; };",
		"threads: { policy = \"imar2-paper\"; };",
		"threads: { policy = \"auto\"; };",
		"threads: { policy = \"lbma\"; };",
		"threads: { policy = \"imar2\"; };",
		"threads: { policy = \"kmaf\"; };",
		("threads: { policy = \"balance\"; }; "
		 "parameters: { threads: { selection = \"dtas\"; }; };"),
		"threads: { policy = \"none\"; }; pages: { policy = \"exclusivity\"; };",
		BEST,
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies); i++) {
		struct nm_simulated done = run("x7550-4x8", "stencil", 48, policies[i], 2);
		assert_true(done.intervals >= 59);
		assert_true(done.figures.most_node_use <= 1 + 1e-9);
	}
}

/* As in the loop of the daemon, an interval ends early only while a process waits for a home. */
TEST(test_auto_keeps_the_interval)
{
	struct nm_simulated done =
		run("x7550-4x8", "stencil", 48, "threads: { policy = \"auto\"; };", 2);
	assert_in_range(done.intervals, 59, 90);
}

/* Memory written by one thread of a program larger than a node moves to the threads that use it,
 * through the mover and at simulated times. */
TEST(test_pages_move_to_their_threads)
{
	struct nm_simulated alone = run("mesh-4x20", "stream", 40, NULL, 3);
	struct nm_simulated done = run("mesh-4x20", "stream", 40, BEST, 3);
	assert_true(done.figures.pages_moved > 0);
	assert_true(done.figures.local_accesses / done.figures.accesses >
		    alone.figures.local_accesses / alone.figures.accesses);
}

TEST(test_twice_the_same)
{
	struct nm_simulated first = run("ring-4x10", "sp", 30, BEST, 7);
	struct nm_simulated second = run("ring-4x10", "sp", 30, BEST, 7);
	struct nm_simulated other = run("ring-4x10", "sp", 30, BEST, 8);
	assert_true(first.digest == second.digest);
	assert_int_equal(first.decisions, second.decisions);
	assert_true(first.figures.accesses == second.figures.accesses);
	assert_true(first.digest != other.digest);
}

/* A single rule changes the digest, and without decisions it is that of no lines. */
TEST(test_digest_depends_on_decisions)
{
	static const char *const policies[] = {
		"threads: { policy = \"none\"; };",
		"threads: { policy = \"auto\"; };",
		"threads: { policy = \"imar2\"; };",
		"threads: { policy = \"lbma\"; };",
		"threads: { policy = \"none\"; }; pages: { policy = \"exclusivity\"; };",
	};
	uint64_t digests[NM_ARRAY_SIZE(policies)];
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies); i++) {
		digests[i] = run("ring-4x10", "sp", 8, policies[i], 7).decisions_digest;
		for (size_t k = 0; k < i; k++)
			assert_true(digests[i] != digests[k]);
	}
	assert_true(digests[0] == NM_HASH_START);
}

/* Each decision has a line, and the digest covers all of them. */
TEST(test_digest_is_of_the_lines)
{
	FILE *lines = tmpfile();
	uint64_t digest = NM_HASH_START, decisions = 0;
	char line[1024];
	assert_non_null(lines);
	struct nm_simulated done =
		run_into(lines, "ring-4x10", "sp", 8, "threads: { policy = \"imar2\"; };", 7);
	rewind(lines);
	while (fgets(line, sizeof(line), lines)) {
		size_t length = strcspn(line, "\n");
		line[length] = '\0';
		digest = nm_hash_add(digest, line, length + 1);
		decisions += strncmp(line, "decision ", strlen("decision ")) == 0;
	}
	assert_true(decisions > 0);
	assert_int_equal(decisions, done.decisions);
	assert_true(digest == done.decisions_digest);
	assert_int_equal(fclose(lines), 0);
}

/* The ledger is in memory, so a killed run would leave no files either. */
TEST(test_simulation_leaves_no_files)
{
	char root[FIXTURE_PATH];
	unsigned entries = 0;
	fixture_make(root, sizeof(root));
	assert_int_equal(setenv("TMPDIR", root, 1), 0);
	pid_t child = fork();
	if (child == 0) {
		(void)run("ring-4x10", "stream", 30, "threads: { policy = \"lbma-paper\"; };", 1);
		(void)raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	DIR *directory = opendir(root);
	assert_non_null(directory);
	while (readdir(directory))
		entries++;
	closedir(directory);
	assert_int_equal(entries, 2); /* "." and ".." */
	assert_int_equal(unsetenv("TMPDIR"), 0);
	fixture_remove(root);
}

RUN_TESTS()
