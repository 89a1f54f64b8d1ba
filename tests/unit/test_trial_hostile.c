/* SPDX-License-Identifier: MIT */
/* The control group, whose processes see their arm and act on it. */
#define SET_UP setup
#define TEAR_DOWN teardown
#include "../support/test.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "policy/trial.h"

#define SECOND NM_NSEC_PER_SEC
#define DAY (24 * 3600 * SECOND)
#define LN2 0.69314718055994531

static uint32_t next_pid;

static int setup(void **state)
{
	struct nm_trial *trial;
	next_pid = 0;
	nm_trial_new(1, &trial);
	nm_trial_configure(trial, 0.5, 0.05);
	*state = trial;
	return 0;
}

static int teardown(void **state)
{
	nm_trial_free(*state);
	return 0;
}

struct owner {
	uint64_t domain;
	uint32_t uid;
	const char *comm;
};

/* Draws a process, which is a unit of its own. */
static enum nm_trial_answer draw(struct nm_trial *trial, const struct owner *owner, uint64_t now_ns)
{
	next_pid++;
	const struct nm_trial_candidate one = {.pid = next_pid,
					       .parent = 1000000 + next_pid,
					       .start_ticks = next_pid,
					       .domain = owner->domain,
					       .uid = owner->uid,
					       .comm = owner->comm,
					       .takes_part = true};
	return nm_trial_draw(trial, &one, now_ns);
}

static void end_after(struct nm_trial *trial, uint32_t pid, uint64_t now_ns, double seconds)
{
	uint64_t ran_ns = (uint64_t)(seconds * (double)SECOND);
	nm_trial_thread_ended(trial, pid, ran_ns, now_ns + ran_ns);
	nm_trial_process_ended(trial, pid, now_ns + ran_ns);
}

/* Runs units that take these times in their arms. */
static void run(struct nm_trial *trial, const struct owner *owner, unsigned units, double managed_s,
		double alone_s)
{
	for (unsigned i = 0; i < units; i++) {
		bool alone = draw(trial, owner, SECOND) == NM_TRIAL_LEAVE;
		end_after(trial, next_pid, SECOND, alone ? alone_s : managed_s);
	}
}

/* The domain of cron, of php-fpm and of slurmstepd contains several users. */
/* SECURITY: control-group */
TEST(a_user_bars_no_program_of_another)
{
	struct nm_trial *trial = *state;
	const struct owner attacker = {7, 1000, "php"}, victim = {7, 1001, "php"};
	const struct nm_trial_program *lost = NULL;
	for (unsigned i = 0; i < 2000 && !lost; i++) {
		run(trial, &attacker, 1, 3, 2);
		lost = nm_trial_next_loss(trial);
	}
	assert_non_null(lost);
	assert_int_equal(lost->uid, attacker.uid);
	assert_int_equal(draw(trial, &attacker, 100 * SECOND), NM_TRIAL_BARRED);
	for (unsigned i = 0; i < 100; i++)
		assert_int_not_equal(draw(trial, &victim, 100 * SECOND), NM_TRIAL_BARRED);
}

/* 10 % faster for others. */
/* SECURITY: control-group */
TEST(a_user_counts_for_a_factor_of_two_at_most)
{
	struct nm_trial *trial = *state;
	const struct owner attacker = {1, 1000, "a"};
	const struct owner others[] = {{2, 0, "b"}, {3, 0, "c"}, {4, 0, "d"}};
	struct nm_trial_difference found;
	for (size_t i = 0; i < NM_ARRAY_SIZE(others); i++)
		run(trial, &others[i], 60, 9, 10);
	run(trial, &attacker, 60, 500, 0.01);
	assert_true(nm_trial_result(trial, NM_TRIAL_TODAY, NM_TRIAL_CPU, &found));
	assert_true(found.mean < (LN2 + 2 * log(0.9)) / 3 + 1e-9);
	run(trial, &(struct owner){5, 1000, "a"}, 60, 0.01, 500);
	assert_true(nm_trial_result(trial, NM_TRIAL_TODAY, NM_TRIAL_CPU, &found));
	assert_true(fabs(found.mean) < LN2);
}

static double difference_of_sums(const struct nm_trial *trial, enum nm_trial_measure measure)
{
	struct nm_trial_sum managed = nm_trial_sums(trial, measure, NM_TRIAL_TREATED);
	struct nm_trial_sum alone = nm_trial_sums(trial, measure, NM_TRIAL_CONTROL);
	return managed.sum / managed.n - alone.sum / alone.n;
}

/* Of metrics, from which a fleet computes its difference. */
/* SECURITY: control-group */
TEST(a_user_counts_for_a_factor_of_two_in_the_sums)
{
	struct nm_trial *trial = *state;
	const struct owner attacker = {1, 1000, "a"}, other = {2, 0, "b"};
	run(trial, &other, 400, 9, 10);
	assert_true(fabs(difference_of_sums(trial, NM_TRIAL_CPU) - log(0.9)) < 1e-6);
	run(trial, &attacker, 4000, 500, 0.01);
	assert_true(difference_of_sums(trial, NM_TRIAL_CPU) <= LN2 + 1e-9);
}

/* Units that outlive their window have no value: who lets only those of one arm do so adds to the
 * other one alone. */
/* SECURITY: control-group */
TEST(units_of_one_arm_move_no_sum)
{
	struct nm_trial *trial = *state;
	const struct owner attacker = {1, 1000, "a"}, other = {2, 0, "b"};
	run(trial, &other, 400, 9, 10);
	for (unsigned i = 0; i < 2000; i++) {
		bool alone = draw(trial, &attacker, SECOND) == NM_TRIAL_LEAVE;
		if (!alone || i < 20)
			end_after(trial, next_pid, SECOND, alone ? 0.01 : 590);
	}
	nm_trial_end_windows(trial, SECOND + NM_TRIAL_WINDOW_NS, NULL, NULL);
	double found = difference_of_sums(trial, NM_TRIAL_CPU);
	assert_true(found <= 1e-9 && found >= log(0.9) - 1e-9);
}

/* SECURITY: control-group */
TEST(one_domain_leaves_processes_to_others)
{
	struct nm_trial *trial = *state;
	const struct owner attacker = {1, 1000, "a"}, other = {2, 0, "b"};
	const struct nm_trial_process *processes;
	for (unsigned i = 0; i < 2 * NM_TRIAL_PROCESSES_MOST; i++)
		(void)draw(trial, &attacker, SECOND);
	assert_int_equal(nm_trial_processes(trial, &processes), NM_TRIAL_PROCESSES_MOST / 2);
	(void)draw(trial, &other, SECOND);
	assert_true(nm_trial_has(trial, next_pid));
}

/* Draws a process of program "pN", which ends at once. */
static void draw_numbered(struct nm_trial *trial, uint64_t domain, uint32_t uid, unsigned number,
			  uint64_t now_ns)
{
	char comm[32];
	(void)snprintf(comm, sizeof(comm), "p%u", number);
	(void)draw(trial, &(struct owner){domain, uid, comm}, now_ns);
	end_after(trial, next_pid, now_ns, 0.01);
}

static bool is_known(const struct nm_trial *trial, uint64_t domain, uint32_t uid, unsigned number)
{
	char comm[32];
	(void)snprintf(comm, sizeof(comm), "p%u", number);
	return nm_trial_program(trial, domain, uid, comm) != NULL;
}

/* SECURITY: control-group */
TEST(the_program_drawn_longest_ago_makes_room)
{
	struct nm_trial *trial = *state;
	struct nm_trial_program *const *programs;
	const unsigned most = NM_TRIAL_PROGRAMS_MOST / 2;
	for (unsigned i = 0; i < 100; i++)
		draw_numbered(trial, 2, 0, i, SECOND);
	for (unsigned i = 0; i < 3 * most; i++)
		draw_numbered(trial, 1, 1000, i, 2 * SECOND + i);
	assert_in_range(nm_trial_programs(trial, &programs), most, most + 100);
	assert_true(is_known(trial, 1, 1000, 3 * most - 1)); /* the newest */
	assert_false(is_known(trial, 1, 1000, 0));
	for (unsigned i = 0; i < 100; i++)
		assert_true(is_known(trial, 2, 0, i));
}

/* Sums since the start do not shrink with the table. */
TEST(the_sums_keep_programs_that_made_room)
{
	struct nm_trial *trial = *state;
	run(trial, &(struct owner){1, 1000, "b"}, 400, 9, 10);
	double before = nm_trial_sums(trial, NM_TRIAL_CPU, NM_TRIAL_TREATED).n;
	for (unsigned i = 0; i < NM_TRIAL_PROGRAMS_MOST; i++)
		draw_numbered(trial, 1, 1000, i, 20 * SECOND + i);
	assert_null(nm_trial_program(trial, 1, 1000, "b"));
	assert_true(nm_trial_sums(trial, NM_TRIAL_CPU, NM_TRIAL_TREATED).n == before);
	assert_true(fabs(difference_of_sums(trial, NM_TRIAL_CPU) - log(0.9)) < 1e-6);
}

/* Users of one domain share its half, and do not erase each other's results. */
/* SECURITY: control-group */
TEST(a_user_erases_no_results_of_another)
{
	struct nm_trial *trial = *state;
	for (unsigned i = 0; i < 10; i++)
		draw_numbered(trial, 1, 1001, i, SECOND);
	for (unsigned i = 0; i < 2 * NM_TRIAL_PROGRAMS_MOST; i++)
		draw_numbered(trial, 1, 1000, i, 2 * SECOND + i);
	for (unsigned i = 0; i < 10; i++)
		assert_true(is_known(trial, 1, 1001, i));
	draw_numbered(trial, 1, 1001, 99, DAY / 2);
	assert_true(is_known(trial, 1, 1001, 99));
}

/* Those of containers that are gone would fill the table for good. */
TEST(programs_of_yesterday_make_room_for_others)
{
	struct nm_trial *trial = *state;
	for (unsigned domain = 1; domain <= 40; domain++)
		for (unsigned i = 0; i < 2000; i++)
			draw_numbered(trial, domain, 0, i, SECOND);
	for (unsigned i = 0; i < 500; i++)
		draw_numbered(trial, 99, 0, i, 2 * DAY);
	for (unsigned i = 0; i < 500; i++)
		assert_true(is_known(trial, 99, 0, i));
}

/* A parent whose children have any number of names, for ten minutes. */
/* SECURITY: unit-programs */
TEST(a_unit_has_few_programs)
{
	struct nm_trial *trial = *state;
	struct nm_trial_program *const *programs;
	unsigned parts = 0;
	(void)draw(trial, &(struct owner){1, 1000, "parent"}, SECOND);
	uint32_t parent = next_pid;
	for (unsigned i = 0; i < 1000; i++) {
		char comm[32];
		(void)snprintf(comm, sizeof(comm), "child%u", i);
		const struct nm_trial_candidate one = {.pid = 5000 + i,
						       .parent = parent,
						       .start_ticks = 1,
						       .domain = 1,
						       .uid = 1000,
						       .comm = comm,
						       .takes_part = true};
		(void)nm_trial_draw(trial, &one, 2 * SECOND);
		nm_trial_process_ended(trial, one.pid, 3 * SECOND);
	}
	size_t count = nm_trial_programs(trial, &programs);
	for (size_t i = 0; i < count; i++)
		parts += programs[i]->parts;
	assert_int_equal(parts, NM_TRIAL_PARTS_MOST);
}

/* Work whose results are awaited is not dropped under it. */
TEST(programs_with_units_stay)
{
	struct nm_trial *trial = *state;
	(void)draw(trial, &(struct owner){1, 1000, "waiting"}, SECOND);
	uint32_t pid = next_pid;
	for (unsigned i = 0; i < NM_TRIAL_PROGRAMS_MOST; i++)
		draw_numbered(trial, 1, 1000, i, 2 * SECOND + i);
	assert_non_null(nm_trial_program(trial, 1, 1000, "waiting"));
	end_after(trial, pid, SECOND, 100);
	const struct nm_trial_program *program = nm_trial_program(trial, 1, 1000, "waiting");
	assert_true(program->sums[NM_TRIAL_ALWAYS][NM_TRIAL_CPU][NM_TRIAL_CONTROL].n +
			    program->sums[NM_TRIAL_ALWAYS][NM_TRIAL_CPU][NM_TRIAL_TREATED].n ==
		    1);
}

/* Not only the processes that start afterwards. */
TEST(running_processes_of_a_retried_program_are_managed_again)
{
	struct nm_trial *trial = *state;
	const struct owner owner = {1, 0, "job"};
	const struct nm_trial_program *lost = NULL;
	(void)draw(trial, &owner, SECOND);
	uint32_t older = next_pid;
	nm_trial_end_windows(trial, SECOND + NM_TRIAL_WINDOW_NS, NULL, NULL);
	for (unsigned i = 0; i < 2000 && !lost; i++) {
		run(trial, &owner, 1, 3, 2);
		lost = nm_trial_next_loss(trial);
	}
	assert_non_null(lost);
	uint64_t until_ns = lost->barred_until_ns;
	assert_int_equal(draw(trial, &owner, until_ns - 1), NM_TRIAL_BARRED);
	assert_int_equal(nm_trial_answer(trial, older, older, until_ns - 1), NM_TRIAL_BARRED);
	assert_null(nm_trial_next_retry(trial, until_ns - 1));
	assert_ptr_equal(nm_trial_next_retry(trial, until_ns), lost);
	assert_null(nm_trial_next_retry(trial, until_ns));
	assert_int_equal(nm_trial_answer(trial, older, older, until_ns), NM_TRIAL_DECIDE);
	assert_int_equal(nm_trial_answer(trial, next_pid, next_pid, until_ns), NM_TRIAL_DECIDE);
}

/* They would measure themselves. */
TEST(programs_of_the_service_take_no_part)
{
	struct nm_trial *trial = *state;
	const char *const names[] = {"numa-migrd", "numa-migrctl", "numa-migrd-work",
				     "numa-migrd-help"};
	nm_trial_configure(trial, 1, 0.05);
	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++)
		assert_int_equal(draw(trial, &(struct owner){1, 0, names[i]}, SECOND),
				 NM_TRIAL_DECIDE);
	assert_int_equal(draw(trial, &(struct owner){1, 0, "numactl"}, SECOND), NM_TRIAL_LEAVE);
}

RUN_TESTS()
