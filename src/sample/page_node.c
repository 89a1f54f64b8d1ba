/* SPDX-License-Identifier: MIT */
#include "page_node.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 4096U	   /* shared: newest; power of two */
#define WAITING_MAX 512U   /* shared: first */
#define PROCESSES_MAX 64U  /* shared: first; queried at a time, others stay unknown */
#define BATCH_INTERVALS 2U /* time limit of an answer */
#define PAGE_SHIFT 12
#define VALID_INTERVALS 8U

struct slot {
	uint64_t page;
	uint32_t pid;
	uint32_t page_node; /* as in nm_sample */
	uint32_t age;
};

/* Samples of one process that wait for the nodes of their pages. */
struct batch {
	uint64_t query_id; /* 0: not used */
	uint32_t age;	 /* time of the query */
	unsigned count;
	struct nm_sample *samples;
};

struct nm_page_nodes {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	struct nm_sample_sink inner;
	uint32_t age;
	unsigned waiting_count;
	struct nm_sample waiting[WAITING_MAX];
	struct batch batches[PROCESSES_MAX]; /* in the order of their queries */
	unsigned nr_batches;
	struct slot slots[SLOTS];
	bool has_slots[SLOTS]; /* by pid, modulo: a process with this remainder may have slots */
};

struct nm_page_nodes *nm_page_nodes_new(struct nm_platform *platform)
{
	struct nm_page_nodes *page_nodes = nm_must(calloc(1, sizeof(*page_nodes)));

	page_nodes->platform = platform;
	page_nodes->age = VALID_INTERVALS + 1; /* empty slots are old */
	return page_nodes;
}

void nm_page_nodes_free(struct nm_page_nodes *page_nodes)
{
	if (!page_nodes)
		return;
	for (unsigned i = 0; i < page_nodes->nr_batches; i++) {
		page_nodes->platform->ops->memory_cancel(page_nodes->platform,
							 page_nodes->batches[i].query_id);
		free(page_nodes->batches[i].samples);
	}
	free(page_nodes);
}

void nm_page_nodes_age(struct nm_page_nodes *page_nodes)
{
	page_nodes->age++;
}

void nm_page_nodes_clear(struct nm_page_nodes *page_nodes)
{
	memset(page_nodes->slots, 0, sizeof(page_nodes->slots)); /* no process */
}

static struct slot *slot_of(struct nm_page_nodes *page_nodes, uint32_t pid, uint64_t address)
{
	uint64_t mixed = (address >> PAGE_SHIFT ^ (uint64_t)pid << 32) * 0x9e3779b97f4a7c15ULL;

	return &page_nodes->slots[mixed >> 52 & (SLOTS - 1)];
}

static bool is_valid(const struct nm_page_nodes *page_nodes, const struct slot *slot, uint32_t pid,
		     uint64_t address)
{
	return slot->pid == pid && slot->page == address >> PAGE_SHIFT &&
	       page_nodes->age - slot->age <= VALID_INTERVALS;
}

static void forward(const struct nm_page_nodes *page_nodes, struct nm_sample *sample)
{
	page_nodes->inner.on_sample(page_nodes->inner.context, sample);
}

static void on_sample(void *context, struct nm_sample *sample)
{
	struct nm_page_nodes *page_nodes = context;

	if (__builtin_expect(sample->physical_address || !sample->address || !sample->pid, true)) {
		forward(page_nodes, sample);
		return;
	}
	const struct slot *slot = slot_of(page_nodes, sample->pid, sample->address);
	if (is_valid(page_nodes, slot, sample->pid, sample->address)) {
		sample->page_node = slot->page_node;
		forward(page_nodes, sample);
		return;
	}
	if (page_nodes->waiting_count == WAITING_MAX)
		nm_page_nodes_flush(page_nodes);
	page_nodes->waiting[page_nodes->waiting_count++] = *sample;
}

/* Matches one thread, or the whole process if its first thread ends. */
static bool is_of_task(const struct nm_sample *sample, const struct nm_task_event *ended)
{
	return ended->tid == ended->pid ? sample->pid == ended->pid : sample->tid == ended->tid;
}

/* A task that ends is dropped after its samples. */
static void forward_of_task(struct nm_page_nodes *page_nodes, const struct nm_task_event *ended)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < page_nodes->waiting_count; i++)
		if (is_of_task(&page_nodes->waiting[i], ended))
			forward(page_nodes, &page_nodes->waiting[i]);
		else
			page_nodes->waiting[kept++] = page_nodes->waiting[i];
	page_nodes->waiting_count = kept;
	for (unsigned i = 0; i < page_nodes->nr_batches; i++) {
		struct batch *batch = &page_nodes->batches[i];
		for (unsigned k = 0; k < batch->count; k++) {
			if (batch->samples[k].tid == 0 || !is_of_task(&batch->samples[k], ended))
				continue;
			forward(page_nodes, &batch->samples[k]);
			batch->samples[k].tid = 0;
		}
	}
}

/* The number was reused, or the process has new memory. */
static void drop_process(struct nm_page_nodes *page_nodes, uint32_t pid)
{
	if (!page_nodes->has_slots[pid % SLOTS])
		return;
	page_nodes->has_slots[pid % SLOTS] = false;
	for (unsigned i = 0; i < SLOTS; i++)
		if (page_nodes->slots[i].pid == pid)
			page_nodes->slots[i] = (struct slot){0};
		else if (page_nodes->slots[i].pid &&
			 page_nodes->slots[i].pid % SLOTS == pid % SLOTS)
			page_nodes->has_slots[pid % SLOTS] = true;
}

static void on_task(void *context, const struct nm_task_event *event)
{
	struct nm_page_nodes *page_nodes = context;
	bool ended = event->kind == NM_TASK_EXIT || event->kind == NM_TASK_EXEC;

	if (ended)
		forward_of_task(page_nodes, event);
	if (ended && event->tid == event->pid)
		drop_process(page_nodes, event->pid);
	page_nodes->inner.on_task(page_nodes->inner.context, event);
}

struct nm_sample_sink nm_page_nodes_sink(struct nm_page_nodes *page_nodes,
					 const struct nm_topology *topology,
					 const struct nm_sample_sink *inner)
{
	page_nodes->topology = topology;
	page_nodes->inner = *inner;
	return (struct nm_sample_sink){
		.context = page_nodes, .on_sample = on_sample, .on_task = on_task};
}

static int by_process(const void *one, const void *other)
{
	const struct nm_sample *a = one, *b = other;
	return NM_COMPARE(a->pid, b->pid) ?: NM_COMPARE(a->time_ns, b->time_ns);
}

static void store_node(struct nm_page_nodes *page_nodes, struct nm_sample *sample, int number)
{
	int node = number < 0 ? -1 : nm_topology_node_index(page_nodes->topology, (unsigned)number);

	sample->page_node = node < 0 ? 0 : (uint32_t)node + 1;
	*slot_of(page_nodes, sample->pid, sample->address) =
		(struct slot){.page = sample->address >> PAGE_SHIFT,
			      .pid = sample->pid,
			      .page_node = sample->page_node,
			      .age = page_nodes->age};
	page_nodes->has_slots[sample->pid % SLOTS] = true;
}

/* Returns true if the samples were passed on, with their nodes or, after a time limit, without. */
static bool poll_batch(struct nm_page_nodes *page_nodes, struct batch *batch)
{
	struct nm_platform *platform = page_nodes->platform;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r = platform->ops->memory_poll(platform, batch->query_id, &answer);

	if (r == -EAGAIN && page_nodes->age - batch->age < BATCH_INTERVALS)
		return false;
	if (r == -EAGAIN)
		platform->ops->memory_cancel(platform, batch->query_id);
	const int *nodes = answer.count == batch->count ? answer.nodes : NULL;
	for (unsigned i = 0; i < batch->count; i++) {
		if (batch->samples[i].tid == 0)
			continue;
		if (nodes)
			store_node(page_nodes, &batch->samples[i], nodes[i]);
		forward(page_nodes, &batch->samples[i]);
	}
	free(batch->samples);
	return true;
}

static void poll_batches(struct nm_page_nodes *page_nodes)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < page_nodes->nr_batches; i++)
		if (!poll_batch(page_nodes, &page_nodes->batches[i]))
			page_nodes->batches[kept++] = page_nodes->batches[i];
	page_nodes->nr_batches = kept;
}

/* Queries the samples [first, end), all of one process. */
static int query_samples(struct nm_page_nodes *page_nodes, unsigned first, unsigned end)
{
	struct nm_platform *platform = page_nodes->platform;
	uint64_t addresses[WAITING_MAX] = {0};
	const struct nm_memory_query query = {.kind = NM_MEMORY_QUERY_WHERE,
					      .pid = page_nodes->waiting[first].pid,
					      .count = end - first,
					      .addresses = addresses};
	struct batch batch = {.age = page_nodes->age, .count = end - first};

	if (page_nodes->nr_batches == PROCESSES_MAX)
		return -EAGAIN;
	for (unsigned i = first; i < end; i++)
		addresses[i - first] = page_nodes->waiting[i].address >> PAGE_SHIFT << PAGE_SHIFT;
	batch.samples = nm_must(calloc(batch.count, sizeof(*batch.samples)));
	memcpy(batch.samples, &page_nodes->waiting[first], batch.count * sizeof(*batch.samples));
	int r = platform->ops->memory_query(platform, &query, &batch.query_id);
	if (r < 0) {
		free(batch.samples);
		return r;
	}
	page_nodes->batches[page_nodes->nr_batches++] = batch;
	return 0;
}

static void query_waiting(struct nm_page_nodes *page_nodes)
{
	unsigned count = page_nodes->waiting_count;

	qsort(page_nodes->waiting, count, sizeof(page_nodes->waiting[0]), by_process);
	for (unsigned first = 0, end; first < count; first = end) {
		end = first + 1;
		while (end < count &&
		       page_nodes->waiting[end].pid == page_nodes->waiting[first].pid)
			end++;
		if (query_samples(page_nodes, first, end) < 0)
			for (unsigned i = first; i < end; i++)
				forward(page_nodes, &page_nodes->waiting[i]);
	}
	page_nodes->waiting_count = 0;
}

/* Answers make room first; the last call handles answers that arrive at once. */
void nm_page_nodes_flush(struct nm_page_nodes *page_nodes)
{
	poll_batches(page_nodes);
	query_waiting(page_nodes);
	poll_batches(page_nodes);
}
