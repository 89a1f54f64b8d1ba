/* SPDX-License-Identifier: MIT */
/* The operations table on the model: the files of /proc and /sys that are read, CPU affinities, and
 * pages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "platform/maps.h"
#include "platform/page_jobs.h"
#include "numa-migrd/proc.h"

#define FIRST_FD 1000
#define SAMPLED_PAGES 512U

static struct nm_sim *sim_of(struct nm_platform *platform)
{
	return NM_CONTAINER_OF(platform, struct nm_sim, platform);
}

static uint64_t now_ns(struct nm_platform *platform)
{
	return nm_sim_now_ns(sim_of(platform));
}

/* ---- handles ---- */

static struct nm_sim_handle *handle_of(const struct nm_sim *sim, int fd)
{
	if (fd < FIRST_FD || (size_t)(fd - FIRST_FD) >= sim->nr_handles)
		return NULL;
	struct nm_sim_handle *handle = &sim->handles[fd - FIRST_FD];
	return handle->tid ? handle : NULL;
}

static int new_handle(struct nm_sim *sim, const struct nm_sim_handle *wanted)
{
	size_t at = sim->first_free_handle;
	while (at < sim->nr_handles && sim->handles[at].tid)
		at++;
	NM_RESERVE(sim->handles, sim->handles_capacity, at);
	if (at == sim->nr_handles)
		sim->nr_handles++;
	sim->handles[at] = *wanted;
	sim->first_free_handle = at + 1;
	return FIRST_FD + (int)at;
}

static void close_handle(struct nm_platform *platform, int fd)
{
	struct nm_sim *sim = sim_of(platform);
	struct nm_sim_handle *handle = handle_of(sim, fd);
	if (!handle)
		return;
	*handle = (struct nm_sim_handle){0};
	if ((size_t)(fd - FIRST_FD) < sim->first_free_handle)
		sim->first_free_handle = (size_t)(fd - FIRST_FD);
}

static int open_directory(struct nm_platform *platform, int directory, const char *path)
{
	struct nm_sim *sim = sim_of(platform);
	const struct nm_sim_handle *above = handle_of(sim, directory);
	struct nm_sim_handle handle = {0};
	char rest;
	if (above && sscanf(path, "task/%" SCNu32 "%c", &handle.tid, &rest) == 1)
		handle.pid = above->pid;
	else if (above || (sscanf(path, "proc/%" SCNu32 "/task/%" SCNu32 "%c", &handle.pid,
				  &handle.tid, &rest) != 2 &&
			   sscanf(path, "proc/%" SCNu32 "%c", &handle.tid, &rest) != 1))
		return -ENOENT;
	const struct nm_sim_task *task = nm_sim_find_task(sim, handle.tid);
	if (!task || (handle.pid && task->process->pid != handle.pid))
		return -ENOENT;
	handle.pid = task->process->pid;
	return new_handle(sim, &handle);
}

/* ---- files ---- */

static ssize_t read_file(struct nm_platform *platform, int directory, const char *path,
			 char *buffer, size_t size)
{
	struct nm_sim *sim = sim_of(platform);
	struct nm_sim_text text = {.buffer = buffer, .size = size};
	const struct nm_sim_handle *handle = handle_of(sim, directory);
	int r = -ESRCH;
	if (directory == NM_ROOT)
		r = nm_sim_write_root(sim, path, &text);
	else if (handle && nm_sim_find_task(sim, handle->tid))
		r = nm_sim_write_thread(sim, nm_sim_find_task(sim, handle->tid), path, &text);
	if (r < 0)
		return r;
	return text.length < size ? (ssize_t)text.length : -EFBIG;
}

static int list_tasks(const struct nm_sim_process *process, nm_name_fn each, void *context)
{
	char name[16];
	int r = 0;
	for (unsigned i = 0; process && i < process->program->threads && r >= 0; i++) {
		if (process->tasks[i].ended)
			continue;
		(void)snprintf(name, sizeof(name), "%" PRIu32, process->tasks[i].tid);
		r = each(context, name);
	}
	return r;
}

static int list_processes(const struct nm_sim *sim, nm_name_fn each, void *context)
{
	char name[16];
	int r = 0;
	for (size_t i = 0; i < sim->nr_processes && r >= 0; i++) {
		(void)snprintf(name, sizeof(name), "%" PRIu32, sim->processes[i]->pid);
		r = each(context, name);
	}
	return r;
}

static int list_directory(struct nm_platform *platform, int directory, const char *path,
			  nm_name_fn each, void *context)
{
	struct nm_sim *sim = sim_of(platform);
	const struct nm_sim_handle *above = handle_of(sim, directory);
	uint32_t pid;
	if (above && strcmp(path, "task") == 0)
		return list_tasks(nm_sim_find_process(sim, above->pid), each, context);
	if (directory == NM_ROOT && sscanf(path, "proc/%" SCNu32 "/task", &pid) == 1) {
		const struct nm_sim_process *process = nm_sim_find_process(sim, pid);
		return process ? list_tasks(process, each, context) : -ENOENT;
	}
	if (directory == NM_ROOT && strcmp(path, "proc") == 0)
		return list_processes(sim, each, context);
	return -ENOENT;
}

/* ---- cgroups: there are none, and only processes have an owner ---- */

static ssize_t read_attribute(struct nm_platform *platform, int directory, const char *name,
			      void *buffer, size_t size)
{
	(void)platform, (void)directory, (void)name, (void)buffer, (void)size;
	return -ENODATA;
}

static int owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	struct nm_sim *sim = sim_of(platform);
	const struct nm_sim_handle *handle = handle_of(sim, directory);
	const struct nm_sim_task *task = handle ? nm_sim_find_task(sim, handle->tid) : NULL;
	unsigned uid = task ? 1000 + (unsigned)task->process->user_index : 0;
	*ret = (struct nm_owner){.uid = uid};
	return 0;
}

/* ---- CPU affinities ---- */

static int affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	const struct nm_sim *sim = sim_of(platform);
	const struct nm_sim_task *task = nm_sim_find_task(sim, (uint32_t)tid);
	if (!task || task->ended)
		return -ESRCH;
	return hwloc_bitmap_copy(ret, task->mask ? task->mask : sim->machine->topology->online) < 0
		       ? -ENOMEM
		       : 0;
}

/* A runnable thread moves within the call; one that sleeps when it wakes up. */
static int affinity_set(struct nm_platform *platform, pid_t tid, hwloc_const_bitmap_t cpus)
{
	struct nm_sim *sim = sim_of(platform);
	struct nm_sim_task *task = nm_sim_find_task(sim, (uint32_t)tid);
	if (!task || task->ended)
		return -ESRCH;
	if (task->process->pid == sim->options.unmovable_pid)
		return -EPERM;
	if (!hwloc_bitmap_intersects(cpus, sim->machine->topology->online))
		return -EINVAL;
	if (!task->mask)
		task->mask = hwloc_bitmap_alloc();
	if (!task->mask || hwloc_bitmap_and(task->mask, cpus, sim->machine->topology->online) < 0)
		return -ENOMEM;
	sim->figures.masks_set++;
	nm_sim_digest_add(sim, (uint64_t)tid);
	nm_sim_digest_add(sim, (uint64_t)hwloc_bitmap_first(task->mask));
	nm_sim_digest_add(sim, (uint64_t)hwloc_bitmap_weight(task->mask));
	nm_sim_note_move(sim, task);
	nm_sim_follow_mask(sim, task);
	return 0;
}

/* ---- pages ---- */

/* Returns the index of the page, or a negative errno as for move_pages(2). */
static ssize_t page_at(const struct nm_sim_process *process, uint64_t address)
{
	if (address < NM_SIM_FIRST_ADDRESS)
		return -EFAULT;
	uint64_t page = (address - NM_SIM_FIRST_ADDRESS) / nm_sim_page_bytes(process);
	if (page >= process->nr_pages)
		return -EFAULT;
	return process->home[page] == NM_SIM_UNTOUCHED ? -ENOENT : (ssize_t)page;
}

static struct nm_sim_process *process_of(const struct nm_sim *sim, pid_t tid)
{
	const struct nm_sim_task *task = nm_sim_find_task(sim, (uint32_t)tid);
	return task ? task->process : NULL;
}

static int kernel_node(const struct nm_sim *sim, unsigned index)
{
	return (int)sim->machine->topology->nodes[index].os_id;
}

/* The memory of a process; process NULL: it has exited. */
struct memory {
	struct nm_sim *sim;
	struct nm_sim_process *process;
};

/* Threads start with their process. */
static struct memory memory_of(struct nm_platform *platform, pid_t tid, uint64_t start_ticks)
{
	struct nm_sim *sim = sim_of(platform);
	struct nm_sim_process *process = process_of(sim, tid);
	if (process && nm_sim_start_ticks(process) != start_ticks)
		process = NULL;
	return (struct memory){.sim = sim, .process = process};
}

static int where(void *context, unsigned count, const uint64_t *addresses, int *ret)
{
	const struct memory *memory = context;
	if (!memory->process)
		return -ESRCH;
	for (unsigned i = 0; i < count; i++) {
		ssize_t page = page_at(memory->process, addresses[i]);
		ret[i] = page < 0 ? (int)page
				  : kernel_node(memory->sim, memory->process->home[page]);
	}
	return 0;
}

/* Copying takes the caller this long, too. */
static double copy_s(const struct nm_sim_process *process, uint64_t pages)
{
	return (double)pages * (double)nm_sim_page_bytes(process) / NM_SIM_MOVE_BYTES_PER_S;
}

/* All threads of the process share the time of waiting for a page that moves. */
static void charge(struct nm_sim_process *process)
{
	unsigned team = nm_sim_team(process, process->tasks[0].phase);
	double wait_s = copy_s(process, 1) / team;
	for (unsigned i = 0; i < team; i++)
		process->tasks[i].lost_s += wait_s;
}

static int move_page(struct nm_sim *sim, struct nm_sim_process *process, ssize_t page, int node)
{
	int to = nm_topology_node_index(sim->machine->topology, (unsigned)node);
	if (page < 0)
		return (int)page;
	if (process->pid == sim->options.unmovable_pid)
		return -EPERM;
	if (to < 0)
		return -ENODEV;
	if (process->home[page] == to)
		return node;
	if (!nm_sim_make_room(sim, (unsigned)to, nm_sim_page_bytes(process)))
		return -ENOMEM;
	nm_sim_set_home(sim, process, (size_t)page, (unsigned)to);
	charge(process);
	sim->figures.pages_moved++;
	nm_sim_digest_add(sim, (uint64_t)page);
	nm_sim_digest_add(sim, (uint64_t)to);
	return node;
}

/* Returns the time that the pages moved since `before` were counted took to copy. */
static uint64_t held_ns(const struct memory *memory, uint64_t before)
{
	uint64_t moved = memory->sim->figures.pages_moved - before;
	return (uint64_t)(copy_s(memory->process, moved) * (double)NM_NSEC_PER_SEC);
}

static int move(void *context, unsigned count, const uint64_t *addresses, const int *nodes,
		int *statuses, uint64_t *ret_held_ns)
{
	const struct memory *memory = context;
	uint64_t before = memory->sim->figures.pages_moved;
	*ret_held_ns = 0;
	if (!memory->process)
		return -ESRCH;
	for (unsigned i = 0; i < count; i++)
		statuses[i] = move_page(memory->sim, memory->process,
					page_at(memory->process, addresses[i]), nodes[i]);
	*ret_held_ns = held_ns(memory, before);
	return 0;
}

static int units_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
		      const struct nm_units_order *order, struct nm_units_moved *ret)
{
	struct memory memory = memory_of(platform, tid, start_ticks);
	const struct nm_page_calls calls = {where, move, NULL, &memory};
	return nm_units_move(order, &calls, ret);
}

static int ranges_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
		       const struct nm_ranges_order *order, struct nm_ranges_moved *ret)
{
	struct memory memory = memory_of(platform, tid, start_ticks);
	const struct nm_page_calls calls = {where, move, NULL, &memory};
	return nm_ranges_move(order, &calls, ret);
}

static int add_file(const struct memory *memory, const char *name, struct nm_maps *maps)
{
	nm_autofree char *text = NULL;
	size_t length;
	int r = nm_sim_write_memory(memory->sim, memory->process, name, &text, &length);
	if (r == 0)
		r = nm_maps_add(maps, text, length);
	nm_maps_end_file(maps);
	return r;
}

/* A process has few mappings: they fit into one piece. */
static int mappings_read(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 const struct nm_mappings_order *order, struct nm_mappings_piece *ret,
			 uint64_t *ret_held_ns)
{
	const struct nm_maps_rules rules = {.move_bound = order->move_bound,
					    .move_shared = order->move_shared};
	struct memory memory = memory_of(platform, tid, start_ticks);
	struct nm_maps maps = {0};
	size_t next = 0;
	*ret_held_ns = 0;
	if (!memory.process)
		return -ESRCH;
	int r = add_file(&memory, "maps", &maps);
	if (r == 0)
		r = add_file(&memory, "numa_maps", &maps);
	if (r == 0 && nm_mappings_take(&maps, &rules, &next, ret))
		r = -EFBIG;
	nm_maps_clear(&maps);
	return r;
}

/* ---- queries: answered at once ---- */

static int answer_where(struct nm_sim *sim, const struct nm_memory_query *question,
			struct nm_memory_answer *ret)
{
	struct memory memory = {.sim = sim, .process = process_of(sim, (pid_t)question->pid)};
	nm_autofree int *nodes = calloc(question->count + 1, sizeof(*nodes));
	int r = nodes ? where(&memory, question->count, question->addresses, nodes) : -ENOMEM;
	if (r < 0)
		return r;
	ret->nodes = NM_TAKE(nodes);
	ret->count = question->count;
	return 0;
}

static int answer_numa_maps(const struct nm_sim *sim, const struct nm_memory_query *question,
			    struct nm_memory_answer *ret)
{
	const struct nm_sim_process *process = process_of(sim, (pid_t)question->pid);
	nm_autofree char *text = NULL;
	size_t length;
	int r = process ? nm_sim_write_memory(sim, process, "numa_maps", &text, &length) : -ESRCH;
	if (r < 0)
		return r;
	ret->pages = nm_must(calloc(1, sizeof(*ret->pages)));
	ret->pages->whole = true;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		nm_node_pages_add(ret->pages, line, (uint64_t)sysconf(_SC_PAGESIZE));
	return 0;
}

/* Counts one page in N. */
static int answer_pages(const struct nm_sim *sim, const struct nm_memory_query *question,
			struct nm_memory_answer *ret)
{
	const struct nm_sim_process *process = process_of(sim, (pid_t)question->pid);
	if (!process)
		return -ESRCH;
	size_t step = process->nr_pages / SAMPLED_PAGES + 1;
	ret->pages = nm_must(calloc(1, sizeof(*ret->pages)));
	for (size_t page = 0; page < process->nr_pages; page += step)
		if (process->home[page] != NM_SIM_UNTOUCHED)
			ret->pages->own[kernel_node(sim, process->home[page])]++;
	return 0;
}

static int answer_query(struct nm_sim *sim, const struct nm_memory_query *question,
			struct nm_memory_answer *ret)
{
	if (question->kind == NM_MEMORY_QUERY_WHERE)
		return answer_where(sim, question, ret);
	if (question->kind == NM_MEMORY_QUERY_NUMA_MAPS)
		return answer_numa_maps(sim, question, ret);
	if (question->kind == NM_MEMORY_QUERY_PAGES)
		return answer_pages(sim, question, ret);
	if (question->kind == NM_MEMORY_QUERY_PROGRAM)
		return 0;
	return -EOPNOTSUPP;
}

/* A ticket is an index into the answers, from 1. */
static int queue_answer(struct nm_platform *platform, const struct nm_memory_query *question,
			uint64_t *ret_query_id)
{
	struct nm_sim *sim = sim_of(platform);
	for (unsigned i = 0; i < NM_ARRAY_SIZE(sim->answers); i++) {
		if (sim->answered[i])
			continue;
		sim->answers[i].result = answer_query(sim, question, &sim->answers[i]);
		sim->answered[i] = true;
		*ret_query_id = i + 1;
		return 0;
	}
	return -EAGAIN;
}

static int poll_answer(struct nm_platform *platform, uint64_t query_id,
		       struct nm_memory_answer *ret)
{
	struct nm_sim *sim = sim_of(platform);
	if (query_id == 0 || query_id > NM_ARRAY_SIZE(sim->answers) || !sim->answered[query_id - 1])
		return -ENOENT;
	*ret = sim->answers[query_id - 1];
	sim->answers[query_id - 1] = (struct nm_memory_answer){0};
	sim->answered[query_id - 1] = false;
	return 0;
}

static void cancel_query(struct nm_platform *platform, uint64_t query_id)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer unwanted = {0};
	(void)poll_answer(platform, query_id, &unwanted);
}

/* ---- operations that the model does not support ---- */

static int numa_balancing_set(struct nm_platform *platform, int value)
{
	struct nm_sim *sim = sim_of(platform);
	if (value >= 0)
		sim->options.numa_balancing = value > 0;
	return 0;
}

/* Events cannot be opened: samples come from nm_sim_feed(). */
const struct nm_platform_ops nm_sim_ops = {
	.now_ns = now_ns,
	.open_directory = open_directory,
	.read_file = read_file,
	.list_directory = list_directory,
	.close = close_handle,
	.read_attribute = read_attribute,
	.owner = owner,
	.affinity_get = affinity_get,
	.affinity_set = affinity_set,
	.memory_query = queue_answer,
	.memory_poll = poll_answer,
	.memory_cancel = cancel_query,
	.mappings_read = mappings_read,
	.units_move = units_move,
	.ranges_move = ranges_move,
	.numa_balancing_set = numa_balancing_set,
};
