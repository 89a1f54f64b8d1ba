/* SPDX-License-Identifier: MIT */
/* Hardware sources on a fake machine: selection, the meaning of samples, and reports. */
#define SET_UP open_words
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "source_words.h"

static void name_pmu(void)
{
	strcpy(f->config.sampling.pmu, "numalab/period=97/");
	add(NM_MEMORY_PMU, NM_EVENT_MEMORY, 0, 0);
	f->fake->hardware[NM_MEMORY_PMU].words[0].period = 97;
}

ACTION(name_pmu, name_pmu())
ACTION(name_event, strcpy(f->config.sampling.event, "MEM_LOAD_RETIRED:L3_MISS"))
ACTION(add_event, add(NM_MEMORY_EVENT, NM_EVENT_MEMORY, 0, 0))
ACTION(add_ibs, add(NM_MEMORY_IBS, NM_EVENT_MEMORY, 0, 0))
ACTION(add_amounts, add_amounts(NM_MEMORY_NONE))

/* ---- selection ---- */

/* Side-band, clock, loads with leader, stores, five amounts; page faults would not add up. */
SCRIPT(pebs_with_all_amounts,
       "intel; set with_leader = 1; open; memory = pebs; accesses = 1; runs = 1; problems = 0",
       "has_instructions = 1; has_flops = 1; has_dram = 1; memory_period = 1009; open_count = 40",
       "name = clock+pebs+instructions+flops+dram; is_open minor cpu0 = 0; enabled loads cpu0 = 1",
       "enabled loads cpu3 = 1; period loads cpu0 = 1009; period loads cpu3 = 1009",
       "period stores cpu0 = 100003; period stores cpu3 = 100003",
       "period instructions cpu0 = 20000003; period instructions cpu3 = 20000003")

/* Its periods are of 16 each. */
SCRIPT(ibs_is_used_without_pebs,
       "amd; open; memory = ibs; problems = 0; period loads cpu2 = 262144; cost 0.015 = 1",
       "period loads cpu2 = 524288")

SCRIPT(a_named_event_has_priority,
       "intel; name_pmu; open; name = clock+pmu; period loads cpu0 = 97; has_instructions = 0",
       "has_dram = 0")

SCRIPT(page_faults_are_the_last_fallback,
       "open; name = clock+faults; memory_period = 0; problems = 0")

SCRIPT(amounts_beside_page_faults, "add_amounts; open; name = clock+faults+instructions+flops+dram")

SCRIPT(software_only_if_asked,
       "intel; set source = faults; open; name = clock+faults; open_count = 16")

SCRIPT(a_requested_answer_is_missed,
       "intel; set source = ibs; open; report loads ENOENT 1 page faults are used",
       "name = clock+faults+instructions+flops+dram")

SCRIPT(a_misspelt_pmu_is_reported,
       "amd; name_pmu; set list_error pmu = EINVAL; open; report loads EINVAL 1 sampling.event",
       "memory = ibs")

SCRIPT(an_older_libpfm4_is_reported,
       "intel; set open_error loads = ENOPKG; open; report loads ENOPKG 1 libpfm4; memory = none")

/* Only if it is configured. */
SCRIPT(a_named_event_before_the_tables,
       "intel; add_event; open; memory = pebs; name_event; open; memory = event; problems = 0",
       "set source = pebs; open; memory = pebs")

SCRIPT(a_misspelt_event_is_reported,
       "intel; name_event; add_event; set list_error event = ENOPKG; open; memory = pebs",
       "report loads ENOPKG 1 sampling.event unknown")

/* Another program holds the counters: page faults are used until it releases them. */
SCRIPT(a_counter_held_by_another_program_is_awaited,
       "intel; set never_runs loads = 1; open; memory = none; problems = 1; has_instructions = 1",
       "name = clock+faults+instructions+flops+dram; report loads EBUSY 1 held by another",
       "enabled minor cpu0 = 1; set never_runs loads = 0; control 0.005; memory = pebs",
       "problems = 0; is_open minor cpu0 = 0")

WORD(pmu_is_held)
{
	f->fake->hardware[NM_MEMORY_PMU].words[0].index = 7;
	f->fake->busy_index = 7;
}

SCRIPT(running_counters_precede_held_ones,
       "intel; name_pmu; add_ibs; pmu_is_held; open; memory = pebs; is_open minor cpu0 = 0")

/* A refused source is not requested again in each interval. */
SCRIPT(a_fallback_source_may_be_refused,
       "intel; set never_runs loads = 1; set open_error minor = EMFILE; open",
       "report minor EMFILE 4 LimitNOFILE=", "each 5: control 0.005",
       "report minor EMFILE 4 LimitNOFILE=; is_open major cpu0 = 1")

SCRIPT(privileges_are_reported,
       "intel; set open_error loads = EACCES; set open_error stores = EACCES; open",
       "report loads EACCES 1 numa-migrd-helper.socket")

/* A source of loads works without its stores. */
SCRIPT(stores_may_be_missing,
       "intel; set open_error stores = EINVAL; open; memory = pebs; is_open stores cpu0 = 0",
       "report stores EINVAL 1 unavailable")

/* A missing event is not a problem. */
SCRIPT(unavailable_metrics,
       "intel; set never_runs flops = 1; set open_error dram = ENOENT; open; problems = 1",
       "has_instructions = 1; has_flops = 0; has_dram = 0; report flops EBUSY 1 held by another")

SCRIPT(a_cpu_that_differs,
       "intel; open; set cpu_error 3 = ENODEV; open; cpus_open = 3; set cpu_error 3 = 0; retarget",
       "is_open dram.1 cpu3 = 1; problems = 0")

/* ---- the meaning of a sample ---- */

/* The periods are the first primes from the suitable ones up. */
SCRIPT(samples_carry_their_amounts,
       "intel; open; amount instructions = 20000003; keep one = amount flops",
       "amount flops.1 = one*8; amount dram = 32000576; remote dram = 0; remote dram.1 = 1",
       "access; last_latency = 33; last_level = l1")

ACTION(share, event_of(step)->enabled_ns += 1000000;
       event_of(step)->running_ns += (uint64_t)(N(1) * 1000000))

SCRIPT(shared_counters_count_for_more,
       "intel; open; cost 0.005 = 0; amount instructions = 20000003",
       "share instructions cpu1 0.25; cost 0.005 = 0; amount instructions = 80000012",
       "share instructions cpu1 1; cost 0.005 = 0; amount instructions = 20000003")

/* Periods are primes: the first ones from the eightfold of the suitable ones up. */
SCRIPT(events_are_sampled_less_while_the_source_rests,
       "intel; open; rest 1; amount instructions in 160000000..160000100", "each 8: control 0",
       "amount instructions in 160000000..160000100; rest 0; amount instructions = 20000003")

/* Two samples, and six that were lost. */
WORD(lose)
{
	struct record_ring ring = fake_ring(f->fake, 1);
	record_run(&ring, id_of(step, 1), 10, 11, 1);
	record_run(&ring, id_of(step, 1), 10, 11, 1);
	record_lost(&ring, id_of(step, 1), 4);
	record_lost_samples(&ring, id_of(step, 1), 2);
	fake_publish(f->fake, 1, &ring);
	drain(f, &seen);
}

WORD(taken_per_seen)
{
	unsigned nr_cpus;
	const double *taken = nm_source_taken_per_seen(f->source, &nr_cpus);
	assert_int_equal(nr_cpus, CPUS);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		if (taken[cpu] != N(cpu))
			script_fail(step, "CPU %u has %g", cpu, taken[cpu]);
}

QUANTITY(last_amount, seen.last.amount)

/* Lost records count for the interval in which they were lost, on that CPU only, and double the
 * periods. */
SCRIPT(lost_records_are_reported_per_cpu,
       "intel; open; lose instructions; last_amount = 20000003; taken_per_seen 1 4 1 1",
       "taken_per_seen 1 1 1 1; cost 0.005 = 1; keep p = period instructions cpu0",
       "amount instructions = p")

SCRIPT(cost_raises_all_periods,
       "intel; open; keep before = period loads cpu3; cost 0.5 = 1; keep least = before*2",
       "period loads cpu3 >= least-20; keep dram = period dram cpu1; amount dram = dram*64",
       "each 40: control 0", "period loads cpu3 = before; memory_period = before")

/* While it may be waiting for its turn, nothing is reported; a recurrence is. */
SCRIPT(a_stopped_counter_is_reported_once,
       "intel; open; news = 0; pass flops.1 1; pass flops.1 0; pass flops.1 0; has_flops = 1",
       "news = 0; pass flops.1 0; has_flops = 0; has_instructions = 1",
       "report flops EBUSY 4 nmi_watchdog; news = 1; first_over = 0; first_kind = flops",
       "first_news ~ on CPU 0 and 3 more; starve flops.1; news = 0; pass flops.1 0.5",
       "has_flops = 1; problems = 0; news = 1; first_over = 1; first_news ~ counting again",
       "news = 0; starve flops.1; news = 1")

WORD(starve_cpu2)
{
	hardware(NM_EVENT_DRAM, 1, 2)->enabled_ns += 1000000;
	hardware(NM_EVENT_MEMORY, 0, 2)->enabled_ns += 1000000;
	(void)nm_source_control_cost(f->source, INDIFFERENT);
}

/* A thread on this CPU would seem to do nothing; the other CPUs are still useful. */
SCRIPT(one_starved_cpu_is_enough, "intel; open", "each 4: starve_cpu2",
       "has_dram = 0; report dram EBUSY 1 on CPU 2:",
       "memory = pebs; is_open minor cpu2 = 1; is_open minor cpu1 = 0")

/* A counter that waits while its CPU is offline is not starved. */
SCRIPT(a_counter_of_an_offline_cpu_is_not_starved, "intel; open", "each 9: control 0.005",
       "has_flops = 1; has_instructions = 1; problems = 0")

SCRIPT(page_faults_replace_starved_accesses,
       "intel; open; keep n = open_count; pass loads 1; starve loads; memory = none; accesses = 1",
       "enabled minor cpu3 = 1; enabled major cpu3 = 1; news = 1; pass loads 0.01; memory = pebs",
       "is_open minor cpu3 = 0; open_count = n; remote dram.1 = 1")

SCRIPT(the_clock_replaces_starved_cycles, "cycles 99; open", "each 4: pass cycles 0",
       "enabled clock cpu1 = 1; runs = 1", "report cycles EBUSY 4 counter held by",
       "each 10: load 0",
       "enabled clock cpu1 = 0; set running_ns = 99001000; pass cycles 0; is_open clock cpu1 = 0",
       "runs = 1")

/* Multiplexing would wake an idle CPU repeatedly; one without a counter stays enabled, to detect
 * when it counts again. */
SCRIPT(multiplexed_counters_stop_on_idle_cpus, "intel; open; pass flops 1", "each 5: load 0 1 0 0",
       "enabled flops cpu0 = 1",
       "pass flops 0.5; load 0 1 0 0; enabled flops cpu0 = 0; enabled loads cpu2 = 0",
       "enabled flops cpu1 = 1", "each 5: control 0.005", "has_flops = 1; load 0.2 1 0 0",
       "enabled flops cpu0 = 1; enabled flops cpu3 = 0; starve dram", "each 5: load 0 1 0 0",
       "enabled dram cpu0 = 1")

ACTION(enable_ns, event_of(step)->enabled_ns = (uint64_t)N(1))

/* Cycles ran for 25 % of the time, accesses for 0.1 %: their weight is the largest possible. */
SCRIPT(shared_accesses_and_runs_weigh_more,
       "intel; cycles 100; open; control 0.005; enable_ns cycles cpu1 400",
       "set running_ns = 100000100; pass loads 0.001; weight cycles = 1024; access",
       "last_weight = 65535")

/* Refused rings are reported once, for any number of hotplug events: the trial's, and CPU 3's. The
 * error of a ring is not that of the stores. */
SCRIPT(permanent_refusals_are_reported_once,
       "intel; set open_error stores = EINVAL; open; set cpu_error 3 = EIO; open; news = 2",
       "retarget; news = 0; set cpu_error 3 = 0; retarget; news = 0; problems = 1",
       "report stores EINVAL 1 unavailable")

/* If any single call fails, there is still a source and nothing leaks. */
TEST(any_single_failure)
{
	intel();
	f->fake->with_leader = true;
	open_source(f);
	unsigned calls = f->fake->calls;
	for (unsigned n = 1; n <= calls;
	     n += 3) { /* each opening has one or two trials of 100 ms */
		f->source = (nm_source_free(f->source), NULL);
		assert_int_equal(f->fake->open_count, 0);
		f->fake->calls = 0;
		f->fake->fail_call = n;
		f->fake->fail_call_error = -EIO;
		open_source(f);
		assert_true(status()->cpus_open >= CPUS - 1);
		assert_true(status()->accesses);
		assert_true(status()->problem_count > 0);
	}
}

RUN_TESTS()
