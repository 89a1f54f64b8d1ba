/* SPDX-License-Identifier: MIT */
/*
 * A QEMU plugin that models the memory of a NUMA machine: every access of every vCPU goes through
 * an L1 of its own and a last-level cache per node, both physically tagged; an access that misses
 * both costs cycles by the distance of its home node. The plugin counts, and records every n-th L1
 * miss, in memory shared with the guest (../module/numalab.h), whose kernel module first passes the
 * shape of the machine. Until then nothing is instrumented. The model takes no guest time: it
 * computes the cost of a placement, not the duration.
 *
 * If time is paced, accesses also wait for other requests to a controller or a port (queue.h).
 * Sequential lines are prefetched (stream.h). Repeated string instructions count by the bytes that
 * they fill or copy (strings.h).
 *
 * Not modelled: coherence (a store on another node invalidates nothing), write-backs, and
 * simultaneous misses other than by prefetching. A block counts as executed as a whole.
 */
#include "../module/numalab.h"
#include "flops.h"
#include "pace.h"
#include "qemu.h"
#include "queue.h"
#include "stream.h"
#include "strings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LINE_SHIFT = 6,
	WAYS = 8,
	L1_SETS = 64, /* 32 KiB; the index lies within the page, so it is the same in both addresses
		       */
	LLC_SETS = 2048, /* 1 MiB for the two CPUs of a node */
	LLC_CYCLES = 40,
	CYCLES_PER_DISTANCE = 20, /* 200 cycles at distance 10 */
	FLOPS_SHIFT = 32,
};

struct set {
	uint64_t lines[WAYS]; /* physical line + 1; 0: empty */
	unsigned int next;    /* to be replaced */
};

/*
 * The plugin interface does not identify processes, and translating each address is slow. So each
 * line of the L1 also remembers the virtual line by which it was last accessed, valid until the CPU
 * next returns from the kernel to user addresses.
 */
struct l1 {
	struct set sets[L1_SETS];
	uint64_t hints[L1_SETS][WAYS];
	uint64_t generation;
	bool in_kernel;
};

struct llc {
	struct set sets[LLC_SETS];
};

struct access {
	uint64_t address;
	uint64_t physical; /* as the guest numbers it */
	uint64_t ip;
	unsigned int vcpu;
	unsigned int home; /* node of the memory */
	bool store;
};

QEMU_EXPORT int qemu_plugin_version = LAB_PLUGIN_VERSION;

static struct numalab_shared *shared;
static struct l1 l1s[NUMALAB_MAX_CPUS];
static struct llc
	llcs[NUMALAB_MAX_NODES]; /* used by several threads; a lost update is a lost line */
static struct lab_streams streams_of[NUMALAB_MAX_CPUS];
static uint32_t since_record[NUMALAB_MAX_CPUS];
static unsigned int string_bytes[NUMALAB_MAX_CPUS]; /* less than a cycle's */
static bool paced;
static struct lab_queue controllers[NUMALAB_MAX_NODES], ports[NUMALAB_MAX_NODES];

static int find(const uint64_t *keys, uint64_t key)
{
	for (int way = 0; way < WAYS; way++)
		if (keys[way] == key)
			return way;
	return -1;
}

static unsigned int replace(struct set *set, uint64_t line)
{
	unsigned int way = set->next++ % WAYS;

	set->lines[way] = line;
	return way;
}

/* Kernel addresses mean the same in every process; those of a user since it was last in the kernel.
 */
static uint64_t hint_of(struct l1 *l1, uint64_t address)
{
	bool kernel = address >> 63;

	if (kernel != l1->in_kernel) {
		l1->in_kernel = kernel;
		l1->generation += kernel;
	}
	if (kernel)
		return address >> LINE_SHIFT;
	return (l1->generation & 0xffff) << 41 | address >> LINE_SHIFT;
}

static bool translate(qemu_plugin_meminfo_t info, uint64_t address, uint64_t *ret)
{
	struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, address);

	if (!where || qemu_plugin_hwaddr_is_io(where))
		return false;
	*ret = qemu_plugin_hwaddr_phys_addr(where);
	return true;
}

/* Finds the home node and the guest's own number of an address; false: not a node's memory. */
static bool locate(uint64_t seen, struct access *access)
{
	for (unsigned int node = 0; node < shared->nodes; node++) {
		const struct numalab_region *region = &shared->regions[node];

		if (seen >= region->first && seen < region->end) {
			access->home = node;
			access->physical = seen + region->to_guest;
			return true;
		}
	}
	return false;
}

static void record(const struct access *access, enum numalab_level level, uint32_t latency)
{
	struct numalab_ring *ring = &shared->rings[access->vcpu];

	if (ring->period == 0 || ++since_record[access->vcpu] < ring->period)
		return;
	since_record[access->vcpu] = 0;
	if (ring->head - ring->tail >= NUMALAB_RING) {
		ring->counts.dropped++;
		return;
	}
	ring->records[ring->head % NUMALAB_RING] = (struct numalab_record){
		.address = access->address,
		.physical = access->physical,
		.ip = access->ip,
		.latency = access->store ? 0 : latency,
		.level = (__u8)level,
		.store = access->store,
		.node = (__u8)access->home,
	};
	ring->head++;
}

/* Returns the wait of a line at the controller of its home, and at both ports if that is elsewhere.
 */
static uint32_t queue_for(unsigned int node, unsigned int home)
{
	uint64_t now = lab_pace_now_cycles();
	uint32_t wait = lab_queue_serve(&controllers[home], LAB_CONTROLLER_CYCLES, now);

	if (home == node)
		return wait;
	return wait + lab_queue_serve(&ports[home], LAB_PORT_CYCLES, now) +
	       lab_queue_serve(&ports[node], LAB_PORT_CYCLES, now);
}

static void miss_l1(const struct access *access)
{
	struct numalab_counts *counts = &shared->rings[access->vcpu].counts;
	unsigned int node = shared->node_of_vcpu[access->vcpu];
	uint64_t line = (access->physical >> LINE_SHIFT) + 1;
	struct set *set = &llcs[node].sets[line % LLC_SETS];
	bool ahead = lab_stream_follow(&streams_of[access->vcpu], line - 1);
	uint32_t latency;

	counts->l1_misses++;
	if (find(set->lines, line) >= 0) {
		latency = ahead ? LLC_CYCLES / LAB_STREAM_AT_ONCE : LLC_CYCLES;
		lab_pace_charge(access->vcpu, latency);
		record(access, NUMALAB_LLC, latency);
		return;
	}
	replace(set, line);
	latency = CYCLES_PER_DISTANCE * shared->distance[node][access->home];
	if (ahead)
		latency /= LAB_STREAM_AT_ONCE;
	if (paced) {
		uint32_t wait = queue_for(node, access->home);

		counts->queue_cycles += wait;
		latency += wait;
	}
	counts->stall_cycles += latency;
	lab_pace_charge(access->vcpu, latency);
	if (access->home == node)
		counts->local++;
	else
		counts->remote++;
	record(access, NUMALAB_DRAM, latency);
}

static void answer(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address)
{
	struct numalab_probe *probe = &shared->probe;
	uint64_t seen;

	if (probe->answered || !translate(info, address, &seen))
		return;
	probe->physical = seen;
	probe->vcpu = vcpu;
	__atomic_store_n(&probe->answered, 1, __ATOMIC_RELEASE);
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *ip)
{
	unsigned int index = (address >> LINE_SHIFT) % L1_SETS;
	struct access access = {.address = address, .ip = (uintptr_t)ip, .vcpu = vcpu};
	uint64_t hint, seen, line;
	struct l1 *l1;
	int way;

	if (address == shared->probe.address)
		answer(vcpu, info, address);
	if (!shared->ready || vcpu >= NUMALAB_MAX_CPUS)
		return;
	l1 = &l1s[vcpu];
	shared->rings[vcpu].counts.accesses++;
	hint = hint_of(l1, address);
	if (find(l1->hints[index], hint) >= 0)
		return;
	if (!translate(info, address, &seen) || !locate(seen, &access))
		return;
	line = (access.physical >> LINE_SHIFT) + 1;
	way = find(l1->sets[index].lines, line);
	if (way < 0) {
		way = (int)replace(&l1->sets[index], line);
		access.store = qemu_plugin_mem_is_store(info);
		miss_l1(&access);
	}
	l1->hints[index][way] = hint;
}

static void spend(unsigned int vcpu, uint64_t cycles)
{
	struct numalab_counts *counts = &shared->rings[vcpu].counts;

	if (!lab_pace_clock()->paced)
		lab_clock_pace(lab_pace_clock());
	counts->late_ns += lab_pace_block(vcpu, cycles);
	counts->cycles = lab_pace_cycles(vcpu);
}

/* A block's instructions and operations fit into the pointer that QEMU passes. */
static void *of_block(size_t instructions, unsigned int flops)
{
	return (void *)((uintptr_t)flops << FLOPS_SHIFT | instructions);
}

static void on_block(unsigned int vcpu, void *block)
{
	struct numalab_counts *counts;
	uint64_t instructions = (uintptr_t)block & ((1ULL << FLOPS_SHIFT) - 1);

	if (!shared->ready || vcpu >= NUMALAB_MAX_CPUS)
		return;
	counts = &shared->rings[vcpu].counts;
	counts->instructions += instructions;
	counts->flops += (uintptr_t)block >> FLOPS_SHIFT;
	if (paced)
		spend(vcpu, instructions);
}

static void on_string(unsigned int vcpu, void *bytes)
{
	if (shared->ready && vcpu < NUMALAB_MAX_CPUS)
		spend(vcpu, lab_string_cycles(&string_bytes[vcpu], (unsigned int)(uintptr_t)bytes));
}

static void on_idle(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	if (vcpu < NUMALAB_MAX_CPUS)
		lab_interpose_rest(vcpu);
}

/* QEMU runs each step of a repeated instruction as a block of its own, but the first. */
static unsigned int string_step(const struct qemu_plugin_insn *instruction)
{
	return lab_string_bytes(qemu_plugin_insn_data(instruction),
				qemu_plugin_insn_size(instruction));
}

static void instrument(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	size_t count = qemu_plugin_tb_n_insns(block);
	unsigned int bytes = count == 1 ? string_step(qemu_plugin_tb_get_insn(block, 0)) : 0;
	unsigned int flops = 0;

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
		uintptr_t ip = qemu_plugin_insn_vaddr(instruction);

		flops += lab_flops(qemu_plugin_insn_data(instruction),
				   qemu_plugin_insn_size(instruction));
		qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, (void *)ip);
	}
	if (bytes == 0)
		qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, QEMU_PLUGIN_CB_NO_REGS,
						     of_block(count, flops));
	else if (paced)
		qemu_plugin_register_vcpu_tb_exec_cb(block, on_string, QEMU_PLUGIN_CB_NO_REGS,
						     (void *)(uintptr_t)bytes);
}

static void start_instruments(qemu_plugin_id_t id)
{
	if (paced)
		qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	qemu_plugin_register_vcpu_tb_trans_cb(id, instrument);
	__atomic_store_n(&shared->instrumented, 1, __ATOMIC_RELEASE);
}

/* Until the module attaches, code is translated as it is. */
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	static atomic_flag asked = ATOMIC_FLAG_INIT;

	(void)block;
	if (shared->attached && !atomic_flag_test_and_set(&asked))
		qemu_plugin_reset(id, start_instruments);
}

static struct numalab_shared *map_shared(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *memory;

	if (fd < 0)
		return NULL;
	memory = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

static bool start_pacing(qemu_plugin_id_t id, const char *mhz)
{
	unsigned long value = strtoul(mhz, NULL, 10);

	if (value < 10 || value > 4000) {
		fprintf(stderr, "numalab: pace: 10 to 4000 MHz, not %s\n", mhz);
		return false;
	}
	lab_pace_begin((unsigned int)value);
	if (!lab_interpose()) {
		fprintf(stderr,
			"numalab: pace: the plugin is not in LD_PRELOAD, or this QEMU's counter "
			"cannot be replaced\n");
		return false;
	}
	qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	paced = true;
	return true;
}

/* Of "NAME=VALUE" the value, if that is its name. */
static const char *value_of(const char *argument, const char *name)
{
	size_t length = strlen(name);

	return strncmp(argument, name, length) == 0 && argument[length] == '='
		       ? argument + length + 1
		       : NULL;
}

QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
				    char **argv)
{
	const char *path = argc > 0 ? value_of(argv[0], "shared") : NULL;
	const char *mhz = argc > 1 ? value_of(argv[1], "pace") : NULL;

	(void)info;
	if (!path || argc > 2 || (argc == 2 && !mhz)) {
		fprintf(stderr, "numalab: usage: -plugin file=numalab.so,shared=FILE[,pace=MHZ]\n");
		return -1;
	}
	shared = map_shared(path);
	if (!shared) {
		perror("numalab: the shared file");
		return -1;
	}
	memset(shared, 0, sizeof(*shared));
	shared->magic = NUMALAB_MAGIC;
	if (mhz && !start_pacing(id, mhz))
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
