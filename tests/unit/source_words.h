/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for a source of samples on the machine of fake_perf.h. An event is its
 * kind, with an index if there are several: flops, flops.1.
 *
 *	intel; open; open		a machine with PEBS; the source, again
 *	set open_error clock = EIO	opening such an event fails; also list_error pmu
 *	enabled clock cpu1 = 1		also period, is_open; an event that is open is required
 *	load 0 0.5 1 nan		how busy CPUs are; the last value is that of the others
 *	cost 0.02 = 1; control 0.005	the cost of sampling, and whether it changes periods
 *	report flops EBUSY 4 held by	a problem of the status: kind, error, CPUs, words of it
 *	pass flops 0.5; starve flops	time, in which these events had a counter for a share of it
 */
#ifndef NM_TEST_SOURCE_WORDS_H
#define NM_TEST_SOURCE_WORDS_H

#include "../support/script.h"
#include "../support/source_fixture.h"

#define STARVED_LOOKS 3
#define INDIFFERENT 0.005 /* the cost at which periods do not change */

static struct fixture *f;
static struct seen seen;

static inline int open_words(void **state)
{
	int r = set_up(state);
	f = *state;
	seen = (struct seen){0};
	return r;
}

NAMES(kind, {"sideband", NM_EVENT_SIDEBAND}, {"clock", NM_EVENT_CLOCK}, {"cycles", NM_EVENT_CYCLES},
      {"minor", NM_EVENT_FAULT_MIN}, {"major", NM_EVENT_FAULT_MAJ}, {"loads", NM_EVENT_MEMORY},
      {"stores", NM_EVENT_STORE}, {"instructions", NM_EVENT_INSTRUCTIONS},
      {"flops", NM_EVENT_FLOPS}, {"dram", NM_EVENT_DRAM})
NAMES(memory, {"none", NM_MEMORY_NONE}, {"pebs", NM_MEMORY_PEBS}, {"ibs", NM_MEMORY_IBS},
      {"pmu", NM_MEMORY_PMU}, {"event", NM_MEMORY_EVENT})

/* ---- the machine ---- */

static inline enum nm_event_kind kind_of(const struct step *step)
{
	char name[32];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(step->word[0], "."), step->word[0]);
	return (enum nm_event_kind)script_value(step, "kind", name);
}

static inline unsigned index_of(const struct step *step)
{
	const char *index = strchr(step->word[0], '.');
	return index ? (unsigned)atoi(index + 1) : 0;
}

static inline enum nm_memory_source memory_of(const struct step *step)
{
	return (enum nm_memory_source)script_value(step, "memory", step->word[0]);
}

static inline struct fake_event *hardware(enum nm_event_kind kind, unsigned index, int cpu)
{
	for (int fd = 0; fd < FAKE_FDS; fd++) {
		struct fake_event *event = &f->fake->events[fd];
		if (event->open && event->kind == kind && event->index == index &&
		    event->cpu == cpu)
			return event;
	}
	return NULL;
}

static inline struct fake_event *find_event(const struct step *step)
{
	return hardware(kind_of(step), index_of(step), (int)N(0));
}

static inline struct fake_event *event_of(const struct step *step)
{
	struct fake_event *event = find_event(step);
	if (!event)
		script_fail(step, "it is not open");
	return event;
}

static inline void add(enum nm_memory_source source, enum nm_event_kind kind, unsigned index,
		       uint16_t unit)
{
	struct nm_event_list *list = &f->fake->hardware[source];
	list->words[list->count++] = (struct nm_event_word){
		.kind = kind, .index = index, .unit = unit, .period_multiple = 1};
}

static inline void add_amounts(enum nm_memory_source source)
{
	add(source, NM_EVENT_INSTRUCTIONS, 0, 1);
	add(source, NM_EVENT_FLOPS, 0, 1);
	add(source, NM_EVENT_FLOPS, 1, 8);
	add(source, NM_EVENT_DRAM, 0, 64);
	add(source, NM_EVENT_DRAM, 1, 64);
	struct nm_event_list *list = &f->fake->hardware[source];
	list->words[list->count - 1].remote = true;
}

/* A machine with PEBS, and one with IBS. */
static inline void intel(void)
{
	add(NM_MEMORY_PEBS, NM_EVENT_MEMORY, 0, 0);
	add(NM_MEMORY_PEBS, NM_EVENT_STORE, 0, 0);
	add_amounts(NM_MEMORY_PEBS);
	add_amounts(NM_MEMORY_IBS);
	add_amounts(NM_MEMORY_NONE);
}

ACTION(intel, intel())

WORD(amd)
{
	add_amounts(NM_MEMORY_PEBS);
	add(NM_MEMORY_IBS, NM_EVENT_MEMORY, 0, 0);
	f->fake->hardware[NM_MEMORY_IBS].words[0].period_multiple = 16;
	add_amounts(NM_MEMORY_IBS);
	add_amounts(NM_MEMORY_NONE);
}

/* A machine with the counter "cycles", which may be held by another program. */
ACTION(cycles, f->fake->max_khz = "2000000";
       f->fake->cycles_running_ns = step->nr_numbers ? (uint64_t)N(0) * NM_NSEC_PER_MSEC : 0)
ACTION(isolate, hwloc_bitmap_clr(f->topology->usable, U(0)))
ACTION(isolate_all, hwloc_bitmap_zero(f->topology->usable))
KNOB(source, f->config.sampling.source)
NAMES(source, {"none", NM_SOURCE_NONE}, {"faults", NM_SOURCE_FAULTS}, {"pebs", NM_SOURCE_PEBS},
      {"ibs", NM_SOURCE_IBS})
KNOB(open_error, f->fake->open_error[kind_of(step)])
KNOB(list_error, f->fake->list_error[memory_of(step)])
KNOB(cpu_error, f->fake->cpu_error[U(0)])
KNOB(never_runs, f->fake->never_runs[kind_of(step)])
KNOB(opens_allowed, f->fake->opens_allowed)
KNOB(map_most, f->fake->map_most)
KNOB(map_error, f->fake->map_error)
KNOB(running_ns, f->fake->cycles_running_ns)
KNOB(with_leader, f->fake->with_leader)
QUANTITY(page_size, f->page)
QUANTITY(rings, f->fake->map_count)
QUANTITY(ring_bytes, fake_ring(f->fake, (int)N(0)).size)

/* ---- the source ---- */

WORD(open)
{
	nm_source_free(NM_TAKE(f->source));
	open_source(f);
}

/* refused EACCES: it cannot be opened; "why" is its message */
WORD(refused)
{
	nm_source_free(NM_TAKE(f->source));
	int r = try_open(f);
	if (r != (int)script_value(step, "error", step->word[0]) || f->source)
		script_fail(step, "found %s", script_show("error", r));
}

TEXT(why, f->error)
ACTION(retarget, nm_source_retarget(f->source, f->topology))
ACTION(thin, nm_source_thin(f->source, U(0)))
ACTION(rest, nm_source_rest(f->source, U(0)))

static inline void follow_load(const struct step *step)
{
	double busy[CPUS];
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		busy[cpu] = cpu < step->nr_numbers ? N(cpu) : busy[cpu - 1];
	nm_source_follow_load(f->source, busy, CPUS);
}

ACTION(load, follow_load(step))
ACTION(control, nm_source_control_cost(f->source, N(0)))
QUANTITY(cost, nm_source_control_cost(f->source, N(0)))

static inline const struct nm_source_status *status(void)
{
	return nm_source_status(f->source);
}

TEXT(name, status()->name)
QUANTITY(memory, status()->memory)
QUANTITY(runs, status()->runs)
QUANTITY(accesses, status()->accesses)
QUANTITY(has_cycles, status()->has_cycles)
QUANTITY(has_instructions, status()->has_instructions)
QUANTITY(has_flops, status()->has_flops)
QUANTITY(has_dram, status()->has_dram)
QUANTITY(cpus_open, status()->cpus_open)
QUANTITY(clock_period, status()->clock_period)
QUANTITY(fault_period, status()->fault_period)
QUANTITY(memory_period, status()->memory_period)
QUANTITY(run_sample_ns, status()->run_sample_ns)
QUANTITY(lost, status()->counts.lost)
QUANTITY(corrupt, status()->counts.corrupt)
QUANTITY(samples, status()->counts.samples)
QUANTITY(problems, status()->problem_count)
QUANTITY(held_back, nm_source_is_held_back(f->source))
QUANTITY(open_count, f->fake->open_count)
QUANTITY(is_open, find_event(step) != NULL)
QUANTITY(enabled, event_of(step)->enabled)
QUANTITY(period, event_of(step)->period)

WORD(report)
{
	const char *words = strstr(step->text, step->word[2]) + strlen(step->word[2]);
	if (!has_report(f, (int)script_value(step, "error", step->word[1]), kind_of(step),
			(unsigned)atoi(step->word[2]), words + strspn(words, " ")))
		script_fail(step, "found %zu problems, the first: %s", status()->problem_count,
			    status()->problem_count ? status()->problems[0].text : "-");
}

/* ---- time ---- */

static inline void pass(enum nm_event_kind kind, unsigned index, double share)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct fake_event *event = hardware(kind, index, cpu);
		event->enabled_ns += 1000000;
		event->running_ns += (uint64_t)(share * 1000000);
	}
	(void)nm_source_control_cost(f->source, INDIFFERENT);
}

ACTION(pass, pass(kind_of(step), index_of(step), N(0)))

WORD(starve)
{
	for (unsigned look = 0; look < STARVED_LOOKS; look++)
		pass(kind_of(step), index_of(step), 0);
}

static struct nm_source_problem first_news;

static inline size_t news(void)
{
	size_t count;
	const struct nm_source_problem *all = nm_source_news(f->source, &count);
	if (count > 0)
		first_news = all[0];
	return count;
}

/* The number of reports; of the first one its text, and whether the problem is over. */
QUANTITY(news, news())
TEXT(first_news, first_news.text)
QUANTITY(first_over, first_news.over)
QUANTITY(first_kind, first_news.kind)
NAMES(first_kind, {"flops", NM_EVENT_FLOPS})

/* ---- samples ---- */

static inline uint64_t id_of(const struct step *step, int cpu)
{
	const struct fake_event *event = hardware(kind_of(step), index_of(step), cpu);
	if (!event)
		script_fail(step, "it is not open");
	return 1000 + (uint64_t)(event - f->fake->events);
}

/* Drains one sample of an amount on CPU 1. */
static inline const struct nm_sample *sample_of(const struct step *step)
{
	struct record_ring ring = fake_ring(f->fake, 1);
	record_run(&ring, id_of(step, 1), 10, 11, 1);
	fake_publish(f->fake, 1, &ring);
	assert_int_equal(drain(f, &seen), 1);
	return &seen.last;
}

QUANTITY(amount, sample_of(step)->amount)
QUANTITY(remote, sample_of(step)->remote)
QUANTITY(weight, sample_of(step)->weight)

/* Drains one load from the first-level cache, of 33 cycles. */
WORD(access)
{
	struct record_ring ring = fake_ring(f->fake, 1);
	const struct fake_event *event = hardware(NM_EVENT_MEMORY, 0, 1);
	record_memory(&ring,
		      &(struct record_access){.id = 1000 + (uint64_t)(event - f->fake->events),
					      .tid = 5,
					      .address = 0x1000,
					      .weight = 33,
					      .data_src = 0x229080142U});
	fake_publish(f->fake, 1, &ring);
	assert_int_equal(drain(f, &seen), 1);
}

QUANTITY(last_latency, seen.last.latency_cycles)
QUANTITY(last_level, seen.last.level)
NAMES(last_level, {"l1", NM_LEVEL_L1})
QUANTITY(last_weight, seen.last.weight)

#endif
