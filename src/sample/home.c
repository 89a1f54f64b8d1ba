/* SPDX-License-Identifier: MIT */
#include "home.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 4096U /* power of two */
#define WAITING_MAX 512U
#define PROCESSES_MAX 64U /* queried at the same time; the node stays unknown for further
			   * processes */
#define PARKED_INTERVALS 2U /* time limit of an answer */
#define PAGE_SHIFT 12
#define VALID_INTERVALS 8U

struct slot {
	uint64_t page;
	uint32_t pid;
	uint32_t home; /* as in nm_sample */
	uint32_t age;
};

/* Samples of one process that wait for the nodes of their pages. */
struct parked {
	uint64_t ticket; /* 0: not used */
	uint32_t age;	 /* time of the query */
	unsigned count;
	struct nm_sample *samples;
};

struct nm_homes {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	struct nm_sample_sink inner;
	uint32_t age;
	unsigned waiting_count;
	struct nm_sample waiting[WAITING_MAX];
	struct parked parked[PROCESSES_MAX]; /* in the order of their queries */
	unsigned parked_count;
	struct slot slots[SLOTS];
	bool has_slots[SLOTS]; /* by pid, modulo: a process with this remainder may have slots */
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
	if (!homes)
		return;
	for (unsigned i = 0; i < homes->parked_count; i++) {
		homes->platform->ops->memory_cancel(homes->platform, homes->parked[i].ticket);
		free(homes->parked[i].samples);
	}
	free(homes);
}

void nm_homes_age(struct nm_homes *homes)
{
	homes->age++;
}

void nm_homes_renumber(struct nm_homes *homes)
{
	memset(homes->slots, 0, sizeof(homes->slots)); /* no process */
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

static void pass_on(const struct nm_homes *homes, struct nm_sample *sample)
{
	homes->inner.on_sample(homes->inner.context, sample);
}

static void on_sample(void *context, struct nm_sample *sample)
{
	struct nm_homes *homes = context;

	if (__builtin_expect(sample->physical_address || !sample->address || !sample->pid, true)) {
		pass_on(homes, sample);
		return;
	}
	const struct slot *slot = slot_of(homes, sample->pid, sample->address);
	if (is_answer(homes, slot, sample->pid, sample->address)) {
		sample->page_node = slot->home;
		pass_on(homes, sample);
		return;
	}
	if (homes->waiting_count == WAITING_MAX)
		nm_homes_flush(homes);
	homes->waiting[homes->waiting_count++] = *sample;
}

/* Matches one thread, or the whole process if its first thread ends. */
static bool is_of(const struct nm_sample *sample, const struct nm_task_event *ended)
{
	return ended->tid == ended->pid ? sample->pid == ended->pid : sample->tid == ended->tid;
}

static void release_waiting(struct nm_homes *homes, const struct nm_task_event *ended)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < homes->waiting_count; i++)
		if (is_of(&homes->waiting[i], ended))
			pass_on(homes, &homes->waiting[i]);
		else
			homes->waiting[kept++] = homes->waiting[i];
	homes->waiting_count = kept;
}

/* A task that ends is dropped after its samples. */
static void release(struct nm_homes *homes, const struct nm_task_event *ended)
{
	release_waiting(homes, ended);
	for (unsigned i = 0; i < homes->parked_count; i++) {
		struct parked *parked = &homes->parked[i];
		for (unsigned k = 0; k < parked->count; k++) {
			if (parked->samples[k].tid == 0 || !is_of(&parked->samples[k], ended))
				continue;
			pass_on(homes, &parked->samples[k]);
			parked->samples[k].tid = 0;
		}
	}
}

/* The number was reused, or the process has new memory. */
static void forget_process(struct nm_homes *homes, uint32_t pid)
{
	if (!homes->has_slots[pid % SLOTS])
		return;
	homes->has_slots[pid % SLOTS] = false;
	for (unsigned i = 0; i < SLOTS; i++)
		if (homes->slots[i].pid == pid)
			homes->slots[i] = (struct slot){0};
		else if (homes->slots[i].pid && homes->slots[i].pid % SLOTS == pid % SLOTS)
			homes->has_slots[pid % SLOTS] = true;
}

static void on_task(void *context, const struct nm_task_event *event)
{
	struct nm_homes *homes = context;
	bool ended = event->kind == NM_TASK_EXIT || event->kind == NM_TASK_EXEC;

	if (ended)
		release(homes, event);
	if (ended && event->tid == event->pid)
		forget_process(homes, event->pid);
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
	return NM_COMPARE(a->pid, b->pid) ?: NM_COMPARE(a->time_ns, b->time_ns);
}

static void learn(struct nm_homes *homes, struct nm_sample *sample, int number)
{
	int node = number < 0 ? -1 : nm_topology_node_index(homes->topology, (unsigned)number);

	sample->page_node = node < 0 ? 0 : (uint32_t)node + 1;
	*slot_of(homes, sample->pid, sample->address) =
		(struct slot){.page = sample->address >> PAGE_SHIFT,
			      .pid = sample->pid,
			      .home = sample->page_node,
			      .age = homes->age};
	homes->has_slots[sample->pid % SLOTS] = true;
}

static void pass_on_parked(struct nm_homes *homes, struct parked *parked, const int *nodes)
{
	for (unsigned i = 0; i < parked->count; i++) {
		if (parked->samples[i].tid == 0)
			continue;
		if (nodes)
			learn(homes, &parked->samples[i], nodes[i]);
		pass_on(homes, &parked->samples[i]);
	}
	free(parked->samples);
}

/* Returns true if the samples were passed on, with their nodes or, after a time limit, without. */
static bool settle_samples(struct nm_homes *homes, struct parked *parked)
{
	struct nm_platform *platform = homes->platform;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r = platform->ops->memory_poll(platform, parked->ticket, &answer);

	if (r == -EAGAIN && homes->age - parked->age < PARKED_INTERVALS)
		return false;
	if (r == -EAGAIN)
		platform->ops->memory_cancel(platform, parked->ticket);
	pass_on_parked(homes, parked, answer.count == parked->count ? answer.nodes : NULL);
	return true;
}

static void settle_parked(struct nm_homes *homes)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < homes->parked_count; i++)
		if (!settle_samples(homes, &homes->parked[i]))
			homes->parked[kept++] = homes->parked[i];
	homes->parked_count = kept;
}

/* Queries the samples [first, end), all of one process. */
static int query_samples(struct nm_homes *homes, unsigned first, unsigned end)
{
	struct nm_platform *platform = homes->platform;
	uint64_t addresses[WAITING_MAX] = {0};
	const struct nm_memory_query question = {.kind = NM_MEMORY_QUERY_WHERE,
						 .pid = homes->waiting[first].pid,
						 .count = end - first,
						 .addresses = addresses};
	struct parked parked = {.age = homes->age, .count = end - first};

	if (homes->parked_count == PROCESSES_MAX)
		return -EAGAIN;
	for (unsigned i = first; i < end; i++)
		addresses[i - first] = homes->waiting[i].address >> PAGE_SHIFT << PAGE_SHIFT;
	parked.samples = calloc(parked.count, sizeof(*parked.samples));
	if (!parked.samples)
		return -ENOMEM;
	memcpy(parked.samples, &homes->waiting[first], parked.count * sizeof(*parked.samples));
	int r = platform->ops->memory_query(platform, &question, &parked.ticket);
	if (r < 0) {
		free(parked.samples);
		return r;
	}
	homes->parked[homes->parked_count++] = parked;
	return 0;
}

static void ask_all(struct nm_homes *homes)
{
	unsigned count = homes->waiting_count;

	qsort(homes->waiting, count, sizeof(homes->waiting[0]), by_process);
	for (unsigned first = 0, end; first < count; first = end) {
		end = first + 1;
		while (end < count && homes->waiting[end].pid == homes->waiting[first].pid)
			end++;
		if (query_samples(homes, first, end) < 0)
			for (unsigned i = first; i < end; i++)
				pass_on(homes, &homes->waiting[i]);
	}
	homes->waiting_count = 0;
}

/* Answers make room first; the last call handles answers that arrive at once. */
void nm_homes_flush(struct nm_homes *homes)
{
	settle_parked(homes);
	ask_all(homes);
	settle_parked(homes);
}
