/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include <math.h>
#include <stdio.h>

/* A file may contain any values: those outside these limits are ignored. */
#define SANE_LEAST 1e-9
#define SANE_MOST 1e18
#define INTERVAL_S_MOST 86400.0
/* Value of the presence, in addition to CPU time. */
#define PRESENCE_S 1e-6

double nm_census_sane(double value)
{
	return isfinite(value) && value >= SANE_LEAST ? fmin(value, SANE_MOST) : 0;
}

double nm_census_seconds(const struct nm_recorded_interval *about)
{
	return fmin((double)about->length_ns / 1e9, INTERVAL_S_MOST);
}

/*
 * An id that was reused by another process is another thread. Returns -ERANGE for an impossible id.
 */
static int find_or_add(struct nm_seen_table *table, uint32_t id, uint32_t pid, struct nm_seen **ret)
{
	uint32_t at = nm_tidmap_get(table->by_id, id);
	if (at != NM_TIDMAP_NONE && table->items[at].pid == pid) {
		*ret = &table->items[at];
		return 0;
	}
	int r = NM_RESERVE(table->items, table->room, table->count);
	if (r == 0)
		r = nm_tidmap_set(table->by_id, id, (uint32_t)table->count);
	if (r < 0)
		return r;
	*ret = &table->items[table->count++];
	**ret = (struct nm_seen){.id = id, .pid = pid};
	return 0;
}

const struct nm_seen *nm_seen_find(const struct nm_seen_table *table, uint32_t id)
{
	uint32_t at = nm_tidmap_get(table->by_id, id);
	return at == NM_TIDMAP_NONE ? NULL : &table->items[at];
}

static void see_interval(struct nm_census *census, const struct nm_recorded_interval *about)
{
	census->interval_s = nm_census_seconds(about);
	uint64_t length_ns = (uint64_t)(census->interval_s * 1e9);
	uint64_t begin_ns = about->time_ns > length_ns ? about->time_ns - length_ns : 0;
	if (census->intervals == 0 || begin_ns < census->first_ns)
		census->first_ns = begin_ns;
	if (about->time_ns > census->last_ns)
		census->last_ns = about->time_ns;
	census->intervals++;
}

/* Impossible ids are ignored. */
static int see_thread(struct nm_census *census, const struct nm_recorded_thread *thread)
{
	struct nm_seen *known, *process;
	double busy_s = nm_census_sane(thread->run_share) * census->interval_s + PRESENCE_S;
	int r = find_or_add(&census->threads, thread->tid, thread->pid, &known);
	if (r < 0)
		return r == -ERANGE ? 0 : r;
	known->busy_s += busy_s;
	r = find_or_add(&census->processes, thread->pid, thread->pid, &process);
	if (r < 0)
		return r == -ERANGE ? 0 : r;
	process->busy_s += busy_s;
	return 0;
}

static int see_process(struct nm_census *census, const struct nm_recorded_process *process)
{
	struct nm_seen *known;
	int r = find_or_add(&census->processes, process->pid, process->pid, &known);
	if (r < 0)
		return r == -ERANGE ? 0 : r;
	(void)snprintf(known->comm, sizeof(known->comm), "%s", process->comm);
	return 0;
}

static int see(struct nm_census *census, const struct nm_recorded *record)
{
	int r = 0;
	switch (record->kind) {
	case NM_RECORDED_INTERVAL:
		see_interval(census, &record->about);
		break;
	case NM_RECORDED_THREADS:
		for (size_t i = 0; r == 0 && i < record->threads.count; i++)
			r = see_thread(census, &record->threads.items[i]);
		break;
	case NM_RECORDED_PROCESSES:
		for (size_t i = 0; r == 0 && i < record->processes.count; i++)
			r = see_process(census, &record->processes.items[i]);
		break;
	case NM_RECORDED_DECISION:
		census->decisions += !nm_decision_is_to_home(&record->decision);
		break;
	default:
		break;
	}
	return r;
}

int nm_census_take(struct nm_recording *recording, struct nm_census *ret)
{
	struct nm_recorded record;
	*ret = (struct nm_census){0};
	int r = nm_tidmap_new(&ret->threads.by_id);
	if (r == 0)
		r = nm_tidmap_new(&ret->processes.by_id);
	nm_recording_rewind(recording);
	nm_recording_only(recording, 1U << NM_RECORDED_INTERVAL | 1U << NM_RECORDED_THREADS |
					     1U << NM_RECORDED_PROCESSES |
					     1U << NM_RECORDED_DECISION);
	while (r == 0 && (r = nm_recording_next(recording, &record)) > 0)
		r = see(ret, &record);
	return r;
}

void nm_census_clear(struct nm_census *census)
{
	free(census->threads.items);
	free(census->processes.items);
	nm_tidmap_free(census->threads.by_id);
	nm_tidmap_free(census->processes.by_id);
	*census = (struct nm_census){0};
}
