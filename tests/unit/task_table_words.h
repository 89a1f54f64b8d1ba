/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for the task table of task_table_fixture.h: process 100 with the threads
 *101 and 102, and process 200.
 *
 *	run 0.5; run 0.5 12		an interval in which all threads used half of a CPU; twelve
 *	alone 200 0.6 30		intervals in which only process 200 ran
 *	idle 10				seconds in which none ran
 *	managed 100 101; unmanaged 200	threads
 *	exit 101; drain; lost		an event, which the task table reads, or never does
 */
#ifndef NM_TEST_ROSTER_WORDS_H
#define NM_TEST_ROSTER_WORDS_H

#include "task_table_fixture.h"

#include "../support/script.h"

WORD(run)
{
	for (unsigned i = 0; i < (step->nr_numbers > 1 ? U(1) : 1); i++)
		run_all(N(0));
}

WORD(alone)
{
	for (unsigned i = 0; i < (step->nr_numbers > 2 ? U(2) : 1); i++)
		run_one(U(0), U(0), N(1));
}

static inline bool is_managed(uint32_t tid)
{
	enum nm_eligibility eligibility = NM_ELIGIBILITY_SMALL;
	(void)nm_tasks_thread_eligibility(tasks, tid, &eligibility);
	return find_managed(tid) && eligibility == NM_ELIGIBILITY_MANAGED;
}

static inline void check_managed(const struct step *step, bool managed)
{
	for (unsigned i = 0; i < step->nr_numbers; i++)
		if (is_managed(U(i)) != managed)
			script_fail(step, "found thread %u%s managed", U(i), managed ? " not" : "");
}

static inline const struct nm_managed_thread *managed_of(const struct step *step)
{
	const struct nm_managed_thread *found = find_managed(U(0));
	if (!found)
		script_fail(step, "thread %u is no member", U(0));
	return found;
}

ACTION(idle, run_none(U(0)))
ACTION(sleep_ms, fake_sleep(fake, U(0)))
ACTION(managed, check_managed(step, true))
ACTION(unmanaged, check_managed(step, false))
ACTION(drain, drain())
ACTION(lost, fake->nr_events = 0)
ACTION(exit, fake_exit(fake, U(0)))
ACTION(kill, fake_kill(fake, U(0)))
ACTION(exec, fake_exec(fake, U(0)))
ACTION(clone, fake_clone(fake, U(0), U(1)))
ACTION(fork, fake_fork(fake, U(0), U(1)))
ACTION(process, fake_process(fake, U(0), 1))
ACTION(pin, fake_pin(fake, U(0), fake_cpus(U(1), U(2))))
ACTION(move, fake_move(fake, U(0), step->word[1]))
ACTION(name, snprintf(fake_get(fake, U(0))->comm, 16, "%s", step->word[1]))
ACTION(report_name, fake_notify(fake, NM_TASK_COMM, U(0), U(0), 0, 0))
ACTION(configure, nm_tasks_configure(tasks, topology, config))
ACTION(give_back, nm_tasks_give_back(tasks, U(0), start_of(U(0))))
ACTION(bar, nm_tasks_back_off(tasks, U(0), start_of(U(0)), U(1)))
ACTION(hold, nm_tasks_delay(tasks, U(0), start_of(U(0)), U(1)))
ACTION(recheck, nm_tasks_recheck(tasks, U(0), start_of(U(0))))
ACTION(reopen, nm_task_table_free(tasks), open_tasks())
QUANTITY(release, nm_tasks_release(tasks, U(0)))
ACTION(online, fake->online = fake_cpus(U(0), U(1)))
ACTION(calm, fake_calm(fake))

KNOB(rss_kb, fake_get(fake, U(0))->rss_kb)
KNOB(hugetlb_kb, fake_get(fake, U(0))->hugetlb_kb)
KNOB(uid, fake_get(fake, U(0))->uid)
KNOB(state, fake_get(fake, U(0))->state)
KNOB(scheduler, fake_get(fake, U(0))->policy)
NAMES(scheduler, {"fifo", SCHED_FIFO}, {"rr", SCHED_RR}, {"other", SCHED_OTHER},
      {"deadline", SCHED_DEADLINE})
KNOB(pool_kb, fake->pool_kb)
KNOB(now_ns, fake->now_ns)
KNOB(moving, moving_tid)
KNOB(policy, config->threads.policy)
NAMES(policy, {"auto", NM_POLICY_AUTO}, {"lbma", NM_POLICY_LBMA}, {"balance", NM_POLICY_BALANCE})
KNOB(page_policy, config->pages.policy)
NAMES(page_policy, {"none", NM_PAGES_NONE}, {"watch", NM_PAGES_WATCH})
KNOB(min_cpu_percent, config->targets.min_cpu_percent)
KNOB(min_rss_mb, config->targets.min_rss_mb)
QUANTITY(processes_off, nm_tasks_counts(tasks).processes_off)
QUANTITY(processes_observed, nm_tasks_counts(tasks).processes_observed)
QUANTITY(opens, fake->calls[FAKE_OPEN])
QUANTITY(statuses, fake->statuses)
QUANTITY(long_statuses, fake->long_statuses)
QUANTITY(ticks, fake_get(fake, U(0))->start_ticks)

QUANTITY(is_managed, find_managed(U(0)) != NULL)
QUANTITY(pid_of, managed_of(step)->pid)
QUANTITY(start_ticks, managed_of(step)->start_ticks)
QUANTITY(original, fake_from_bitmap(managed_of(step)->original))
QUANTITY(unrestricted, managed_of(step)->unrestricted)
QUANTITY(everywhere, managed_of(step)->everywhere)
QUANTITY(adopted_ns, managed_of(step)->adopted_ns)
QUANTITY(backoff_until, managed_of(step)->backoff_until)
QUANTITY(never_moves, managed_of(step)->backoff_until == UINT64_MAX)
QUANTITY(delayed_until, managed_of(step)->delayed_until)
QUANTITY(only_watched, managed_of(step)->only_watched)
QUANTITY(started_ns, managed_of(step)->process->started_ns)
QUANTITY(cpu_share, managed_of(step)->process->cpu_share)
QUANTITY(rss_bytes, managed_of(step)->process->rss_bytes)
QUANTITY(process_uid, managed_of(step)->process->uid)
QUANTITY(is_process, nm_tasks_process(tasks, U(0)) != NULL)
QUANTITY(threads_known, nm_tasks_counts(tasks).threads_known)
QUANTITY(threads_managed, nm_tasks_counts(tasks).threads_managed)
QUANTITY(processes_known, nm_tasks_counts(tasks).processes_known)
QUANTITY(processes_managed, nm_tasks_counts(tasks).processes_managed)

static inline void add_target(const struct step *step, struct nm_target_list *list)
{
	char *text = strdup(step->word[1]);
	list->items = reallocarray(list->items, list->count + 1, sizeof(*list->items));
	assert_non_null(list->items);
	struct nm_target *target = &list->items[list->count++];
	*target = (struct nm_target){0};
	if (strcmp(step->word[0], "command") == 0)
		target->command = text;
	else if (strcmp(step->word[0], "unit") == 0)
		target->unit = text;
	else
		*target = (struct nm_target){
			.user = text, .has_uid = true, .uid = (uint32_t)atoi(text)};
}

/* targets include = ( { command = "prog*" } ): a configuration of this section alone */
WORD(targets)
{
	char text[500];
	struct nm_config_errors errors = {0};
	struct nm_config *changed = NULL;
	snprintf(text, sizeof(text), "targets: { %s };", step_rest(step));
	if (nm_config_parse("test", text, strlen(text), &errors, &changed) < 0)
		script_fail(step, "it is no configuration");
	nm_tasks_configure(tasks, topology, changed);
	nm_config_free(config);
	config = changed;
}

/* include command prog1*, unit db@*.service, or user 0 */
ACTION(include, add_target(step, &config->targets.include))
ACTION(exclude, add_target(step, &config->targets.exclude))

/* The name of its process. */
TEXT(named, managed_of(step)->process->comm)

#endif
