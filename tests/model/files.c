/* SPDX-License-Identifier: MIT */
/* Files of /proc and /sys that are read (proc(5)). */
#include "files.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SMALL_KB 4
#define MEMORY_TEXT 4096

static void put_text(struct nm_sim_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put_text(struct nm_sim_text *text, const char *format, ...)
{
	va_list arguments;
	size_t room = text->length < text->size ? text->size - text->length : 0;
	va_start(arguments, format);
	int written = vsnprintf(room ? text->buffer + text->length : NULL, room, format, arguments);
	va_end(arguments);
	if (written > 0)
		text->length += (size_t)written;
}

/* ---- files of the machine ---- */

static void write_cpu_times(const struct nm_sim *sim, struct nm_sim_text *text)
{
	double all_s = NM_SIM_BOOT_S + sim->now_s;
	put_text(text, "cpu  0 0 0 0 0 0 0 0\n");
	for (unsigned cpu = 0; cpu < sim->nr_cpus; cpu++) {
		uint64_t all = (uint64_t)(all_s * 1e6), busy = (uint64_t)(sim->busy_s[cpu] * 1e6);
		put_text(text, "cpu%u %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0\n", cpu, busy,
			 all > busy ? all - busy : 0);
	}
}

static int write_online(const struct nm_sim *sim, struct nm_sim_text *text)
{
	char list[4096];
	if (hwloc_bitmap_list_snprintf(list, sizeof(list), sim->machine->topology->online) < 0)
		return -ENOMEM;
	put_text(text, "%s\n", list);
	return 0;
}

/* Memory is not fragmented: all free memory is in blocks of 2 MiB, order 9. */
static void write_buddyinfo(const struct nm_sim *sim, struct nm_sim_text *text)
{
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		put_text(text, "Node %u, zone   Normal 0 0 0 0 0 0 0 0 0 %" PRIu64 " 0\n",
			 sim->machine->topology->nodes[k].os_id, nm_sim_free_bytes(sim, k) >> 21);
}

static int write_meminfo(const struct nm_sim *sim, unsigned os_id, struct nm_sim_text *text)
{
	int node = nm_topology_node_index(sim->machine->topology, os_id);
	if (node < 0)
		return -ENOENT;
	uint64_t total_kb = sim->machine->topology->nodes[node].memory_bytes / 1024;
	put_text(text,
		 "Node %u MemTotal: %" PRIu64 " kB\nNode %u MemFree: %" PRIu64
		 " kB\nNode %u Inactive(file): %" PRIu64 " kB\n",
		 os_id, total_kb, os_id, nm_sim_free_bytes(sim, (unsigned)node) / 1024, os_id,
		 sim->cache_bytes[node] / 1024);
	return 0;
}

/* A leader that has ended counts until the last thread has. */
static unsigned count_threads(const struct nm_sim_process *process)
{
	unsigned count = process->tasks[0].ended;
	for (unsigned i = 0; i < process->program->threads; i++)
		count += !process->tasks[i].ended;
	return count;
}

/* In hundredths of a second. That of the first thread is always that of the process. */
static uint64_t cpu_ticks(const struct nm_sim_task *task)
{
	const struct nm_sim_process *process = task->process;
	uint64_t run_ns = task->run_ns;
	for (unsigned i = 1; task == &process->tasks[0] && i < process->program->threads; i++)
		run_ns += process->tasks[i].run_ns;
	return run_ns / 10000000;
}

static void write_stat(const struct nm_sim_task *task, struct nm_sim_text *text)
{
	const struct nm_sim_process *process = task->process;
	put_text(text,
		 "%u (%.15s) %c 1 %u %u 0 -1 0 11 0 12 0 %" PRIu64 " 0 0 0 20 0 %u 0 %" PRIu64
		 " 4096 25 18446744073709551615 1 1 140000000 0 0 0 0 0 0 0 0 0 %d %d 0 0 0 0 0 0 "
		 "0 0 0 "
		 "0 0 "
		 "0\n",
		 task->tid, process->program->name, task->ended ? 'Z' : 'R', process->pid,
		 process->pid, cpu_ticks(task), count_threads(process), nm_sim_start_ticks(process),
		 task->tid == process->pid ? 17 : -1, task->cpu);
}

static int write_stat_of(const struct nm_sim *sim, uint32_t tid, struct nm_sim_text *text)
{
	const struct nm_sim_task *task = nm_sim_find_task(sim, tid);
	if (!task)
		return -ENOENT;
	write_stat(task, text);
	return 0;
}

static int write_schedstat(const struct nm_sim *sim, uint32_t tid, struct nm_sim_text *text)
{
	const struct nm_sim_task *task = nm_sim_find_task(sim, tid);
	if (!task)
		return -ESRCH;
	put_text(text, "%" PRIu64 " %" PRIu64 " 7\n", task->run_ns, task->delay_ns);
	return 0;
}

int nm_sim_write_root(const struct nm_sim *sim, const char *path, struct nm_sim_text *text)
{
	uint64_t hundredths = nm_sim_now_ns(sim) / 10000000;
	unsigned number;
	char rest;
	int end = 0;
	if (strcmp(path, "proc/stat") == 0)
		return write_cpu_times(sim, text), 0;
	if (strcmp(path, "sys/devices/system/cpu/online") == 0 ||
	    strcmp(path, "sys/fs/cgroup/cpuset.cpus.effective") == 0)
		return write_online(sim, text);
	if (strcmp(path, "proc/buddyinfo") == 0)
		return write_buddyinfo(sim, text), 0;
	if (strcmp(path, "proc/uptime") == 0)
		return put_text(text, "%" PRIu64 ".%02" PRIu64 " 1.00\n", hundredths / 100,
				hundredths % 100),
		       0;
	if (strcmp(path, "proc/sys/kernel/numa_balancing") == 0)
		return put_text(text, "%d\n", sim->options.numa_balancing), 0;
	if (sscanf(path, "sys/devices/system/node/node%u/meminfo%c", &number, &rest) == 1)
		return write_meminfo(sim, number, text);
	if (sscanf(path, "proc/%*u/task/%u/schedstat%n", &number, &end) == 1 && end)
		return write_schedstat(sim, number, text);
	if (sscanf(path, "proc/%*u/task/%u/stat%n", &number, &end) == 1 && end)
		return write_stat_of(sim, number, text);
	return -ENOENT;
}

/* ---- files of threads ---- */

static uint64_t resident_kb(const struct nm_sim_process *process)
{
	return (uint64_t)process->nr_touched * process->program->page_kb;
}

static void write_status(const struct nm_sim *sim, const struct nm_sim_task *task,
			 struct nm_sim_text *text)
{
	put_text(text, "Name:\tx\nTgid:\t%u\nPid:\t%u\nNSpid:\t%u\nMems_allowed_list:\t",
		 task->process->pid, task->tid, task->tid);
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		put_text(text, "%s%u", k ? "," : "", sim->machine->topology->nodes[k].os_id);
	put_text(text, "\n");
}

int nm_sim_write_thread(const struct nm_sim *sim, const struct nm_sim_task *task, const char *name,
			struct nm_sim_text *text)
{
	if (strcmp(name, "stat") == 0)
		return write_stat(task, text), 0;
	if (strcmp(name, "status") == 0)
		return write_status(sim, task, text), 0;
	if (strcmp(name, "statm") == 0)
		return put_text(text, "0 %" PRIu64 " 0 0 0 0 0\n",
				resident_kb(task->process) * 1024 /
					(uint64_t)sysconf(_SC_PAGESIZE)),
		       0;
	if (strcmp(name, "cgroup") == 0)
		return put_text(text, "0::/user/%.31s\n", task->process->user->name), 0;
	return -ENOENT;
}

/* ---- memory of a process: one mapping ---- */

static const char *policy_of(const struct nm_sim_process *process)
{
	switch (process->user->placement) {
	case NM_SIM_PLACE_INTERLEAVE:
		return "interleave:all";
	case NM_SIM_PLACE_DIRECT:
		return "bind:0";
	case NM_SIM_PLACE_SYSTEM:
	case NM_SIM_PLACE_ORACLE:
		break;
	}
	return "default";
}

static void write_numa_maps(const struct nm_sim *sim, const struct nm_sim_process *process,
			    struct nm_sim_text *text)
{
	uint64_t small = nm_sim_page_bytes(process) / (SMALL_KB * UINT64_C(1024));
	put_text(text, "%llx %s anon=%" PRIu64 " dirty=%" PRIu64, NM_SIM_FIRST_ADDRESS,
		 policy_of(process), process->nr_touched * small, process->nr_touched * small);
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		if (process->on[k])
			put_text(text, " N%u=%" PRIu64, sim->machine->topology->nodes[k].os_id,
				 process->on[k] * small);
	put_text(text, " kernelpagesize_kB=%d\n", SMALL_KB);
}

int nm_sim_write_memory(const struct nm_sim *sim, const struct nm_sim_process *process,
			const char *name, char **ret, size_t *ret_length)
{
	struct nm_sim_text text = {.buffer = malloc(MEMORY_TEXT), .size = MEMORY_TEXT};
	if (!text.buffer)
		return -ENOMEM;
	if (strcmp(name, "maps") == 0)
		put_text(&text, "%llx-%llx rw-p 00000000 00:00 0 \n", NM_SIM_FIRST_ADDRESS,
			 NM_SIM_FIRST_ADDRESS + process->nr_pages * nm_sim_page_bytes(process));
	else if (strcmp(name, "numa_maps") == 0)
		write_numa_maps(sim, process, &text);
	else {
		free(text.buffer);
		return -ENOENT;
	}
	*ret = text.buffer;
	*ret_length = text.length < text.size ? text.length : text.size;
	return 0;
}
