/* SPDX-License-Identifier: MIT */
#include "home.h"

#include <stdlib.h>
#include <sys/types.h>

#define SLOTS 4096U /* power of two */
#define WAITING_MAX 512U
#define PROCESSES_MAX 64U /* asked about in one flush; the rest stays unknown */
#define PAGE_SHIFT 12
#define VALID_INTERVALS 8U

struct slot {
	uint64_t page;
	uint32_t pid;
	uint32_t home; /* as in nm_sample */
	uint32_t age;
};

struct nm_homes {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	struct nm_sample_sink inner;
	uint32_t age;
	unsigned waiting_count;
	struct nm_sample waiting[WAITING_MAX];
	struct slot slots[SLOTS];
};

struct nm_homes *nm_homes_new(struct nm_platform *platform)
{
	struct nm_homes *homes = calloc(1, sizeof(*homes));

	if (!homes)
		return NULL;
	homes->platform = platform;
	homes->age = VALID_INTERVALS + 1; /* empty slots are old */
	return homes;
}

void nm_homes_free(struct nm_homes *homes)
{
	free(homes);
}

void nm_homes_age(struct nm_homes *homes)
{
	homes->age++;
}

static struct slot *slot_of(struct nm_homes *homes, uint32_t pid, uint64_t address)
{
	uint64_t mixed = (address >> PAGE_SHIFT ^ (uint64_t)pid << 32) * 0x9e3779b97f4a7c15ULL;

	return &homes->slots[mixed >> 52 & (SLOTS - 1)];
}

static bool is_answer(const struct nm_homes *homes, const struct slot *slot, uint32_t pid,
		      uint64_t address)
{
	return slot->pid == pid && slot->page == address >> PAGE_SHIFT &&
	       homes->age - slot->age <= VALID_INTERVALS;
}

static void pass_on(const struct nm_homes *homes, const struct nm_sample *sample)
{
	homes->inner.on_sample(homes->inner.context, sample);
}

static void on_sample(void *context, const struct nm_sample *sample)
{
	struct nm_homes *homes = context;

	if (__builtin_expect(sample->physical_address || !sample->address || !sample->pid, true)) {
		pass_on(homes, sample);
		return;
	}
	const struct slot *slot = slot_of(homes, sample->pid, sample->address);
	if (is_answer(homes, slot, sample->pid, sample->address)) {
		struct nm_sample known = *sample;
		known.home = slot->home;
		pass_on(homes, &known);
		return;
	}
	if (homes->waiting_count == WAITING_MAX)
		nm_homes_flush(homes);
	homes->waiting[homes->waiting_count++] = *sample;
}

static void on_task(void *context, const struct nm_task_event *event)
{
	const struct nm_homes *homes = context;

	homes->inner.on_task(homes->inner.context, event);
}

struct nm_sample_sink nm_homes_sink(struct nm_homes *homes, const struct nm_topology *topology,
				    const struct nm_sample_sink *inner)
{
	homes->topology = topology;
	homes->inner = *inner;
	return (struct nm_sample_sink){
		.context = homes, .on_sample = on_sample, .on_task = on_task};
}

static int by_process(const void *one, const void *other)
{
	const struct nm_sample *a = one, *b = other;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Asks about the samples [first, end), all of one process; what has no answer stays unknown. */
static void ask(struct nm_homes *homes, unsigned first, unsigned end)
{
	struct nm_platform *platform = homes->platform;
	uint64_t addresses[WAITING_MAX] = {0};
	int nodes[WAITING_MAX];
	uint32_t pid = homes->waiting[first].pid;
	unsigned count = end - first;

	for (unsigned i = 0; i < count; i++)
		addresses[i] = homes->waiting[first + i].address >> PAGE_SHIFT << PAGE_SHIFT;
	if (platform->ops->pages_where(platform, (pid_t)pid, count, addresses, nodes) < 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		struct nm_sample *sample = &homes->waiting[first + i];
		int node = nodes[i] < 0
				   ? -1
				   : nm_topology_node_index(homes->topology, (unsigned)nodes[i]);
		sample->home = node < 0 ? 0 : (uint32_t)node + 1;
		*slot_of(homes, pid, sample->address) =
			(struct slot){.page = sample->address >> PAGE_SHIFT,
				      .pid = pid,
				      .home = sample->home,
				      .age = homes->age};
	}
}

void nm_homes_flush(struct nm_homes *homes)
{
	unsigned count = homes->waiting_count, processes = 0;

	qsort(homes->waiting, count, sizeof(homes->waiting[0]), by_process);
	for (unsigned first = 0, end; first < count && processes < PROCESSES_MAX;
	     first = end, processes++) {
		end = first + 1;
		while (end < count && homes->waiting[end].pid == homes->waiting[first].pid)
			end++;
		ask(homes, first, end);
	}
	homes->waiting_count = 0;
	for (unsigned i = 0; i < count; i++)
		pass_on(homes, &homes->waiting[i]);
}
