/* SPDX-License-Identifier: MIT */
/* Units of the control group. Half of the units are control, unless a script changes that. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/script.h"
#include "policy/trial.h"

#define SECOND NM_NSEC_PER_SEC

static struct nm_trial *trial;
static struct nm_trial_difference found;
static const struct nm_trial_program *lost;
static uint64_t now_ns;
static uint32_t next_pid, released[16];
static unsigned nr_released, nr_left;

static int set_up(void **state)
{
	(void)state;
	nr_released = nr_left = 0;
	now_ns = 0;
	next_pid = 1;
	lost = NULL;
	nm_trial_new(1, &trial);
	nm_trial_configure(trial, 0.5, 0.05);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_trial_free(trial);
	return 0;
}

/* ---- words ---- */

KNOB(released, nr_released)
KNOB(left, nr_left)

static void set_seconds(double seconds)
{
	now_ns = (uint64_t)(seconds * 1e9 + 0.5);
}

/* at 599.5: seconds from the beginning; pass 3: from now on */
ACTION(at, set_seconds(N(0)))
ACTION(pass, now_ns += (uint64_t)N(0) * SECOND)
ACTION(share, nm_trial_configure(trial, N(0), 0.05))
ACTION(raise, nm_trial_raise(trial, N(0), now_ns, U(1) * SECOND))
ACTION(lower, nm_trial_lower(trial, now_ns))
ACTION(day, nm_trial_follow_day(trial, (int)U(0)))
ACTION(forget, nm_trial_forget(trial))
ACTION(thread_ends, nm_trial_thread_ended(trial, U(0), U(1) * SECOND, now_ns))
ACTION(read, nm_trial_read(trial, U(0), U(1) * SECOND))
ACTION(end, nm_trial_process_ended(trial, U(0), now_ns))

static enum nm_trial_answer draw(uint32_t pid, uint32_t parent, const char *comm, unsigned cpu_s)
{
	const struct nm_trial_candidate one = {.pid = pid,
					       .parent = parent,
					       .start_ticks = pid,
					       .domain = 7,
					       .comm = comm,
					       .cpu_ns = cpu_s * SECOND,
					       .takes_part = true};
	const enum nm_trial_answer answer = nm_trial_draw(trial, &one, now_ns);
	nr_left += answer == NM_TRIAL_LEAVE;
	return answer;
}

static enum nm_trial_answer draw_new(const char *comm)
{
	next_pid++;
	return draw(next_pid, 100000 + next_pid, comm, 0);
}

/* draw job 5 9 3 = leave: a process, its parent and its CPU seconds until now, or new ones */
QUANTITY(draw, step->nr_numbers == 0
		       ? draw_new(step->word[0])
		       : draw(U(0), U(1), step->word[0], step->nr_numbers > 2 ? U(2) : 0))
QUANTITY(answer, nm_trial_answer(trial, U(0), step->nr_numbers > 1 ? U(1) : U(0), now_ns))
#define ANSWERS                                                                                    \
	{"unknown", NM_TRIAL_UNKNOWN}, {"decide", NM_TRIAL_DECIDE}, {"leave", NM_TRIAL_LEAVE},     \
	{                                                                                          \
		"barred", NM_TRIAL_BARRED                                                          \
	}
NAMES(draw, ANSWERS)
NAMES(answer, ANSWERS)
QUANTITY(first_pid, 200000) /* of those that a script numbers */

/* draws job 40: of new processes; `left` is the number of those that are control */
WORD(draws)
{
	nr_left = 0;
	for (unsigned i = 0; i < U(0); i++)
		(void)draw_new(step->word[0]);
}

/* Draws until the answer is this: keep p = drawn leave service */
static uint32_t draw_until(const struct step *step)
{
	while (draw_new(step->word[1]) !=
	       (enum nm_trial_answer)script_value(step, "draw", step->word[0]))
		;
	return next_pid;
}

QUANTITY(drawn, draw_until(step))

static void run_unit(unsigned treated_s, unsigned control_s)
{
	const uint64_t from_ns = now_ns;
	const enum nm_trial_answer answer = draw_new("job");
	assert_int_not_equal(answer, NM_TRIAL_BARRED);
	const uint64_t ran_ns = (answer == NM_TRIAL_LEAVE ? control_s : treated_s) * SECOND;
	nm_trial_thread_ended(trial, next_pid, ran_ns, from_ns + ran_ns);
	nm_trial_process_ended(trial, next_pid, from_ns + ran_ns);
}

/* run 200 3 2: units of a process of "job", whose seconds are those if treated, and otherwise */
WORD(run)
{
	nr_left = 0;
	for (unsigned i = 0; i < U(0); i++)
		run_unit(U(1), U(2));
}

/* lose 3 2: the same until the program is found to be slower */
WORD(lose)
{
	while (!(lost = nm_trial_next_loss(trial)))
		run_unit(U(0), U(1));
	assert_string_equal(lost->comm, "job");
	assert_null(nm_trial_next_loss(trial));
}

static void on_released(void *context, uint32_t pid)
{
	(void)context;
	released[nr_released++] = pid;
}

ACTION(end_windows, nm_trial_end_windows(trial, now_ns, on_released, NULL))
QUANTITY(released_pid, released[U(0)])
QUANTITY(barred_s, (double)(lost->barred_until_ns - now_ns) / 1e9)
ACTION(before_end_of_bar, now_ns = lost->barred_until_ns - 1)
ACTION(end_of_bar, now_ns = lost->barred_until_ns)
QUANTITY(retried, nm_trial_next_retry(trial, now_ns) != NULL)
QUANTITY(extended, nm_trial_extend(trial, N(0), U(1) * SECOND))
QUANTITY(is_on, nm_trial_is_on(trial, now_ns))

/* ---- results ---- */

static struct nm_trial_sum sum_of(const struct step *step, enum nm_trial_span span)
{
	const enum nm_trial_measure measure =
		step_has(step, "elapsed") ? NM_TRIAL_ELAPSED : NM_TRIAL_CPU;
	const struct nm_trial_program *program = nm_trial_program(trial, 7, 0, step->word[0]);
	struct nm_trial_sum sum = {0};
	for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++) {
		sum.n += program->sums[span][measure][arm].n;
		sum.sum += program->sums[span][measure][arm].sum;
	}
	return sum;
}

/* The finished units of a program in both arms, and their geometric mean. */
QUANTITY(units, sum_of(step, NM_TRIAL_TODAY).n)
QUANTITY(evidence, sum_of(step, NM_TRIAL_EVIDENCE).n)
QUANTITY(mean_s, exp(sum_of(step, NM_TRIAL_TODAY).sum / sum_of(step, NM_TRIAL_TODAY).n))
QUANTITY(compared, nm_trial_program_result(nm_trial_program(trial, 7, 0, "job"), NM_TRIAL_TODAY,
					   NM_TRIAL_CPU, &found))
QUANTITY(raised_result, nm_trial_result(trial, NM_TRIAL_RAISED, NM_TRIAL_CPU, &found))
QUANTITY(change, exp(found.mean))
QUANTITY(raised_units, found.units[NM_TRIAL_CONTROL] + found.units[NM_TRIAL_TREATED])
QUANTITY(all_units, nm_trial_sums(trial, NM_TRIAL_CPU, NM_TRIAL_CONTROL).n +
			    nm_trial_sums(trial, NM_TRIAL_CPU, NM_TRIAL_TREATED).n)

static const char *describe(void)
{
	static char text[NM_TRIAL_TEXT_BYTES];
	nm_trial_describe(&found, text, sizeof(text));
	return text;
}

TEXT(description, describe())

/* accesses raised of 5, or of both: in the arm of a process, or in both */
static struct nm_trial_conditions conditions(const struct step *step)
{
	const enum nm_trial_span span = step_has(step, "raised") ? NM_TRIAL_RAISED : NM_TRIAL_TODAY;
	const struct nm_trial_conditions *control =
						 nm_trial_conditions(trial, span, NM_TRIAL_CONTROL),
					 *treated =
						 nm_trial_conditions(trial, span, NM_TRIAL_TREATED);
	if (!step_has(step, "both"))
		return nm_trial_answer(trial, U(0), U(0), now_ns) == NM_TRIAL_LEAVE ? *control
										    : *treated;
	return (struct nm_trial_conditions){
		control->accesses + treated->accesses, control->near + treated->near,
		control->distance + treated->distance, control->ran_s + treated->ran_s,
		control->waited_s + treated->waited_s};
}

QUANTITY(accesses, conditions(step).accesses)
QUANTITY(near, conditions(step).near)
QUANTITY(distance, conditions(step).distance)
QUANTITY(ran_s, conditions(step).ran_s)
QUANTITY(waited_s, conditions(step).waited_s)

static const struct nm_trial_conditions seen = {
	.accesses = 10, .near = 4, .distance = 16, .ran_s = 2, .waited_s = 0.5};

ACTION(observe, nm_trial_observe(trial, U(0), &seen))

/* ---- draws ---- */

SCRIPT(the_share_is_that_of_the_setting,
       "share 0.05; draws job 4000; left in 140..260; share 0; is_on = 0",
       "each 100: draw job = decide")

SCRIPT(units_of_another_share_are_no_evidence,
       "run 10 1 1; share 0.5; evidence job = 10; share 0.4; evidence job = 0; units job = 10")

SCRIPT(a_process_is_drawn_once, "keep p = first_pid",
       "each 50: answer p = unknown; keep arm = draw job p p+100000; answer p = arm; "
       "answer p p+1 = unknown; keep p = p+1")

/* Each is one unit: two processes of "a" are one value. */
SCRIPT(children_and_siblings_share_an_arm, "keep p = first_pid",
       "each 25: keep arm = draw a p 9; draw child p+1 p = arm; pass 599; draw a p+2 9 = arm; "
       "end p; end p+1; end p+2; pass 69401; keep p = p+100; "
       "keep arm = draw b p 9; draw child p+1 p = arm; pass 599; draw b p+2 9 = arm; "
       "end p; end p+1; end p+2; pass 69401; keep p = p+100",
       "units a = 25; units child = 50; mean_s a elapsed in 2.44744..2.44745")

static unsigned count_different(unsigned pairs)
{
	unsigned count = 0;
	for (uint32_t pid = 100; pid <= pairs * 100; pid += 100)
		count += draw(pid, pid + 9, "a", 0) != draw(pid + 1, pid + 9, "b", 0);
	return count;
}

/* Of pairs of siblings whose commands are different. */
QUANTITY(different, count_different(U(0)))

SCRIPT(siblings_with_other_commands_do_not, "different 50 in 10..40")

SCRIPT(control_ends_after_ten_minutes,
       "keep p = drawn leave service; at 599.999999999; end_windows; released = 0",
       "answer p = leave; at 600; end_windows; released = 1; released_pid 0 = p; answer p = decide",
       /* Its children take no part, and neither does it again. */
       "keep c = first_pid", "each 50: draw child c p = decide; keep c = c+1",
       "at 1200; end p; units service = 0")

/* The reading includes the thread that ended before. */
SCRIPT(cpu_time_is_read_and_credited,
       "at 100; keep arm = draw job 5 1 3; at 101; thread_ends 5 2; read 5 9; at 104",
       "thread_ends 5 1; at 110; end 5; units job = 1; mean_s job cpu = 7; mean_s job elapsed = 4")

SCRIPT(a_process_that_outlives_the_window_does_not_count,
       "keep arm = draw job 5 1; read 5 500; at 600; end_windows; at 601; end 5; units job = 0")

SCRIPT(virtual_machines_take_no_part, "each 20: draw qemu-system-x86 = decide")

/* A unit of overlapping jobs ends, too. */
SCRIPT(siblings_join_a_unit_for_ten_minutes,
       "keep p = first_pid; pass 300; keep arm = draw job p 9",
       "each 39: pass 300; keep arm = draw job p+1 9; pass 1; end p; keep p = p+1",
       "units job in 18..20")

SCRIPT(a_day_begins_without_results,
       "day 7; run 99 1 1; day 7; units job = 99; day 8; units job = 0")

SCRIPT(forgotten_processes_have_no_value,
       "keep arm = draw job 1 9; keep arm = draw job 2 9; forget; pass 1; end 1; units job = 0",
       "answer 2 = unknown")

/* A domain gets one more program if it has fewer than are left free. */
TEST(one_domain_cannot_use_all_programs)
{
	char comm[32];
	struct nm_trial_candidate one = {
		.start_ticks = 1, .domain = 7, .comm = comm, .takes_part = true};
	for (uint32_t i = 1; i <= 5000; i++) {
		(void)snprintf(comm, sizeof(comm), "p%u", i);
		one.pid = i;
		(void)nm_trial_draw(trial, &one, 0);
		nm_trial_process_ended(trial, i, 0);
	}
	struct nm_trial_program *const *programs;
	assert_int_equal(nm_trial_programs(trial, &programs), NM_TRIAL_PROGRAMS_MOST / 2);
	one.domain = 8;
	(void)nm_trial_draw(trial, &one, 0);
	assert_non_null(nm_trial_program(trial, 8, 0, comm));
}

/* ---- conditions ---- */

/* Afterwards the process is decided about. */
SCRIPT(conditions_are_those_of_the_arm,
       "keep arm = draw job 5 1; observe 5; observe 5; observe 6; accesses of 5 = 20",
       "near of 5 = 8; distance of 5 = 32; ran_s of 5 = 4; waited_s of 5 = 1; accesses of both = "
       "20",
       "accesses raised of both = 0; at 600; end_windows; observe 5; accesses of both = 20",
       "day 365; accesses of both = 20; day 0; accesses of both = 0")

/* Of two threads on nodes, and of one whose node is not known. */
WORD(observe_threads)
{
	unsigned distances[] = {10, 30, 30, 20};
	const struct nm_topology topology = {.nr_nodes = 2, .distance = distances};
	const uint32_t fresh[] = {4, 6};
	const struct nm_sampled_thread threads[] = {
		{.pid = 5, .stats.main_node = 0, .stats.fresh = fresh},
		{.pid = 5, .stats.main_node = 1, .stats.fresh = fresh},
		{.pid = 5, .stats.main_node = -1, .stats.fresh = fresh}};
	nm_trial_observe_threads(trial, threads, 3, &topology);
}

/* The distance is 4 + 6 × 30 / 20 + 4 × 30 / 10 + 6. */
SCRIPT(accesses_are_near_on_the_node_of_the_thread,
       "keep arm = draw job 5 1; observe_threads; accesses of 5 = 20; near of 5 = 10",
       "distance of 5 = 31")

/* A period that was interrupted does not count in the next one. */
SCRIPT(conditions_of_a_trial_are_its_own,
       "raise 0.5 3600; keep arm = draw job 5 1; observe 5; accesses raised of 5 = 10; pass 1",
       "raise 0.5 3600; observe 5; accesses raised of both = 0")

/* ---- results ---- */

/* Those that end are not typical then. */
SCRIPT(programs_that_often_outlive_the_window_are_not_compared,
       "run 100 1 1; compared = 1; draws job 20; at 600; end_windows; compared = 0")

#define LOST(from, to)                                                                             \
	"lose 3 2; barred_s in " from ".." to                                                      \
	"; before_end_of_bar; draw job = barred; retried = 0; "                                    \
	"draw other in 1..2; end_of_bar; retried = 1; retried = 0"

SCRIPT(a_slower_program_is_tried_again_after_longer_times, "at 1", LOST("86400", "86403"),
       LOST("172800", "172803"), LOST("345600", "345603"), LOST("691200", "691203"),
       LOST("1382400", "1382403"), LOST("2592000", "2592003"), LOST("2592000", "2592003"))

/* Also those that were decided about until then. */
SCRIPT(processes_of_a_slower_program_are_left_alone,
       "keep p = drawn decide job; lose 3 2; at 3; answer p = barred")

/* Later it is no longer slower, but these are too few to exclude a loss. Once that is excluded, the
 * usual share applies. */
SCRIPT(half_of_a_program_that_was_slower_is_control,
       "lose 3 2; share 0.05; at 172800; run_varied 100; left in 30..70; run 2000 2 2; run 400 2 2",
       "left in 1..60")

WORD(run_varied)
{
	nr_left = 0;
	for (unsigned i = 0; i < U(0); i++)
		run_unit(2 + i % 3, 2 + i % 3);
}

/* Draws end ten minutes before it does. */
SCRIPT(a_raised_share_has_results_of_its_own,
       "share 0; raise 0.5 3600; at 3599; is_on = 1; at 10; run 200 1 2; at 3001",
       "each 50: draw job = decide",
       "at 3600; is_on = 0; raised_result = 1; change = 0.5; raised_units = 200; units job = 0",
       "all_units = 200")

/* Of another share the results would not be comparable. */
SCRIPT(a_raised_share_is_extended,
       "share 0; raise 0.5 3600; extended 0.25 7200 = EBUSY; extended 0.5 1800 = 0; at 3599",
       "is_on = 1; at 3600; is_on = 0; at 0; extended 0.5 7200 = 0; at 7199; is_on = 1")

SCRIPT(an_interrupted_unit_does_not_count,
       "raise 0.5 3600; at 1; keep arm = draw job 1 9; at 2; lower; at 3; end 1",
       "raised_result = 0; raised_units = 0; units job = 0")

SCRIPT(units_are_shown_before_they_can_be_compared,
       "raise 1 3600; at 1; run 2 1 1; raised_result = 0",
       "description ~ no comparison: 0 managed units and 2 left alone")

RUN_TESTS()
