/* SPDX-License-Identifier: MIT */
/*
 * The memory model of the QEMU plugin of the lab, with this file instead of QEMU.
 *
 *	load 0 4K node1 8K	CPU 0 reads 4 KiB after the first address of the user; the memory is
 *				8 KiB after the first of node 1; "kernel": of the kernel
 *	store 0 4K node1 8K
 *	lines 0 1-64 64		loads of 64 bytes each: line 1 of local memory, 2 and so on
 *	page 0 2 step 17	loads of the lines of page 2, each 17 lines after the one before
 *	newest 0 = ...		the last record of a CPU
 */
#define SET_UP set_up
#include "../support/test.h"

#define LAB_PLUGIN_VERSION 1
#include "../lab/plugin/clock.c"
#include "../lab/plugin/flops.c"
#include "../lab/plugin/numalab.c"
#include "../lab/plugin/pace.c"
#include "../lab/plugin/queue.c"
#include "../lab/plugin/stream.c"
#include "../lab/plugin/strings.c"

#include <stdlib.h>

#include "../support/script.h"

#define GIB (1ULL << 30)
#define HOLE (7 * GIB) /* the plugin sees memory at other addresses than the guest */
#define USER 0x7f0000000000ULL
#define KERNEL 0xffff800000000000ULL

enum { LOAD, STORE };

static struct numalab_shared machine;
static qemu_plugin_mem_accessed access_memory;
static qemu_plugin_block_executed execute_block;
static void *block_user;
static uint64_t mapped_to; /* translation of the next address */
static bool is_device;
static const char *code; /* of the only instruction of the block */
static size_t code_size;

/* ---- QEMU, most of whose arguments do not matter ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_translated callback)
{
	callback(id, NULL);
}

bool lab_interpose(void)
{
	return true;
}

void lab_interpose_due(void)
{
}

void lab_interpose_rest(unsigned int vcpu)
{
}

void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_simple callback)
{
	callback(id);
}

void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_changed callback)
{
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
					  qemu_plugin_block_executed callback,
					  enum qemu_plugin_cb_flags flags, void *user)
{
	block_user = user;
	execute_block = callback;
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
				      qemu_plugin_mem_accessed callback,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw which, void *user)
{
	assert_int_equal(which, QEMU_PLUGIN_MEM_RW);
	access_memory = callback;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block)
{
	return 1;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index)
{
	return NULL;
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction)
{
	return code_size;
}

const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction)
{
	return code;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction)
{
	return 0;
}

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info)
{
	return info == STORE;
}

struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address)
{
	return (struct qemu_plugin_hwaddr *)&mapped_to;
}

bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address)
{
	return is_device;
}

uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address)
{
	return mapped_to;
}

#pragma GCC diagnostic pop

/* Four nodes of two CPUs and 1 GiB in a ring. */
static int set_up(void **state)
{
	(void)state;
	code = "\x90";
	code_size = 1;
	memset(&machine, 0, sizeof(machine));
	memset(l1s, 0, sizeof(l1s));
	memset(llcs, 0, sizeof(llcs));
	memset(streams_of, 0, sizeof(streams_of));
	memset(since_record, 0, sizeof(since_record));
	memset(controllers, 0, sizeof(controllers));
	is_device = paced = false;
	code = "\x90";
	code_size = 1;
	shared = &machine;
	instrument(0, NULL);
	machine.nodes = 4;
	for (unsigned int node = 0; node < 4; node++) {
		machine.node_of_vcpu[2 * node] = machine.node_of_vcpu[2 * node + 1] = node;
		machine.regions[node] = (struct numalab_region){.first = HOLE + node * GIB,
								.end = HOLE + (node + 1) * GIB,
								.to_guest = -HOLE};
		for (unsigned int other = 0; other < 4; other++) {
			static const uint32_t ring[] = {10, 21, 31, 21};
			machine.distance[node][other] = ring[(node + 4 - other) % 4];
		}
	}
	for (unsigned int cpu = 0; cpu < 8; cpu++)
		machine.rings[cpu].period = 1;
	machine.ready = 1;
	return 0;
}

/* ---- words ---- */

static void touch(unsigned int cpu, int kind, uint64_t address, uint64_t physical)
{
	mapped_to = HOLE + physical;
	access_memory(cpu, (qemu_plugin_meminfo_t)kind, address, (void *)(uintptr_t)0x401000);
}

static uint64_t address_of(const struct step *step)
{
	return (step_has(step, "kernel") ? KERNEL : USER) + (uint64_t)N(1);
}

static const struct numalab_counts *counts(unsigned int cpu)
{
	return &machine.rings[cpu].counts;
}

static const struct numalab_record *record_of(unsigned int cpu)
{
	assert_true(machine.rings[cpu].head > 0);
	return &machine.rings[cpu].records[(machine.rings[cpu].head - 1) % NUMALAB_RING];
}

static const char *newest(unsigned int cpu)
{
	static const char *const levels[] = {[NUMALAB_LLC] = "cache", [NUMALAB_DRAM] = "dram"};
	static char text[128];
	const struct numalab_record *record = record_of(cpu);
	snprintf(text, sizeof(text), "%s %#llx at %#llx node %u %s %u cycles",
		 record->store ? "store" : "load", (unsigned long long)(record->address - USER),
		 (unsigned long long)record->physical, record->node, levels[record->level],
		 record->latency);
	return text;
}

WORD(lines)
{
	for (unsigned line = U(1); line <= U(2); line++)
		touch(U(0), LOAD, USER + line * U(3), line * U(3));
}

WORD(page)
{
	for (uint64_t line = 0; line < 64; line++) {
		const uint64_t at = (uint64_t)N(1) * 4096 + line * (uint64_t)N(2) % 64 * 64;
		touch(U(0), LOAD, USER + at, at);
	}
}

/* Node 1 is loaded to 90 %; the windows of both nodes do not end. */
WORD(load_node1)
{
	atomic_store(&controllers[1].load_permille, 900);
	atomic_store(&controllers[1].window, UINT64_MAX);
	atomic_store(&controllers[2].window, UINT64_MAX);
}

WORD(pace)
{
	lab_pace_begin(250);
	paced = !step_has(step, "off");
	instrument(0, NULL);
}

ACTION(load, touch(U(0), LOAD, address_of(step), U(2) * GIB + (uint64_t)N(3)))
ACTION(store, touch(U(0), STORE, address_of(step), U(2) * GIB + (uint64_t)N(3)))
ACTION(translate, on_translation(0, NULL))
ACTION(execute, execute_block(U(0), of_block(U(1), 0)))
KNOB(attached, machine.attached)
KNOB(instrumented, machine.instrumented)
KNOB(ready, machine.ready)
KNOB(device, is_device)
KNOB(period, machine.rings[U(0)].period)
ACTION(probe, machine.probe.address = KERNEL + 4096)
QUANTITY(answered, machine.probe.answered)
QUANTITY(answered_by, machine.probe.vcpu)
QUANTITY(answered_at, machine.probe.physical - HOLE)
QUANTITY(head, machine.rings[U(0)].head)
QUANTITY(accesses, counts(U(0))->accesses)
QUANTITY(misses, counts(U(0))->l1_misses)
QUANTITY(local, counts(U(0))->local)
QUANTITY(remote, counts(U(0))->remote)
QUANTITY(dropped, counts(U(0))->dropped)
QUANTITY(stall, counts(U(0))->stall_cycles)
QUANTITY(queue, counts(U(0))->queue_cycles)
QUANTITY(late_ns, counts(U(0))->late_ns)
QUANTITY(cycles, lab_pace_cycles(U(0)))
QUANTITY(counted_cycles, counts(U(0))->cycles)
QUANTITY(latency, record_of(U(0))->latency)
TEXT(newest, newest(U(0)))

/* ---- accesses ---- */

/* Code runs uninstrumented until the module of the guest attaches; then it is translated again
 * once. */
SCRIPT(test_instruments_start_when_attached,
       "translate; instrumented = 0; set attached = 1; translate; instrumented = 1",
       "set instrumented = 0; translate; instrumented = 0")

SCRIPT(test_costs_by_distance,
       "load 0 0K node0 0K; newest 0 = load 0 at 0 node 0 dram 200 cycles; stall 0 = 200",
       "load 0 4K node1 4K; newest 0 = load 0x1000 at 0x40001000 node 1 dram 420 cycles",
       "load 0 8K node2 8K; newest 0 = load 0x2000 at 0x80002000 node 2 dram 620 cycles",
       "load 0 12K node3 12K; newest 0 = load 0x3000 at 0xc0003000 node 3 dram 420 cycles",
       "stall 0 = 1660; local 0 = 1; remote 0 = 3")

SCRIPT(test_second_access_hits, "lines 0 0-2 8; accesses 0 = 3; misses 0 = 1; head 0 = 1")

SCRIPT(test_cpus_of_a_node_share_its_cache,
       "load 0 0K node0 4K; load 1 0K node0 4K; newest 1 ~ node 0 cache; local 1 = 0; remote 1 = 0",
       "load 2 0K node0 4K; newest 2 ~ node 0 dram; remote 2 = 1")

/* The same virtual address in another process, accessed through the kernel, is different memory. */
SCRIPT(test_processes_do_not_share_lines_by_address,
       "load 0 0K node0 4K; load 0 0K node0 8K kernel; load 0 0K node1 4K; misses 0 = 3",
       "remote 0 = 1")

SCRIPT(test_line_outlives_the_kernel,
       "load 0 0K node0 4K; load 0 0K node0 8K kernel; load 0 0K node0 4K; misses 0 = 2")

QUANTITY(ways, WAYS)

SCRIPT(test_lines_are_replaced,
       "keep n = ways; lines 0 0 n 4096; load 0 0K node0 0K; misses 0 = n+2; newest 0 ~ cache")

/* Two lines of each page cost their full latency, the others 10 %; in random order every line costs
 * its full latency. */
SCRIPT(test_lines_in_a_row_are_fetched_ahead,
       "page 0 0 step 1; stall 0 = 1640; page 0 1 step 1; stall 0 = 3280",
       "page 0 2 step 17; stall 0 = 16080")

/* Copying a page has two streams, of 200 and 420 cycles. */
TEST(test_a_copy_is_fetched_ahead)
{
	for (uint64_t line = 0; line < 64; line++) {
		touch(0, LOAD, KERNEL + line * 64, 3 * 4096 + line * 64);
		touch(0, STORE, KERNEL + 4096 + line * 64, GIB + line * 64);
	}
	assert_int_equal(counts(0)->stall_cycles, 2 * (200 + 420) + 62 * (20 + 42));
}

QUANTITY(row_of_cache, 2 * LLC_CYCLES + 62 * (LLC_CYCLES / 10))

/* Also from the cache of the node. */
SCRIPT(test_cached_lines_are_fetched_ahead,
       "page 0 0 step 1; keep n = cycles 1; page 1 0 step 1; keep row = row_of_cache",
       "cycles 1 = n+row")

SCRIPT(test_stores_carry_no_latency,
       "store 0 0K node1 0K; newest 0 = store 0 at 0x40000000 node 1 dram 0 cycles; stall 0 = 420")

SCRIPT(test_every_nth_miss_is_recorded,
       "set period 0 = 7; lines 0 0-699 64; head 0 = 100; set period 0 = 0; lines 0 700-799 64",
       "head 0 = 100")

QUANTITY(room, NUMALAB_RING)
QUANTITY(first_address, machine.rings[0].records[0].address - USER)

SCRIPT(test_full_ring_drops_and_counts, "keep n = room; lines 0 1 n+5 64; head 0 = n",
       "dropped 0 = 5; first_address = 64")

SCRIPT(test_model_needs_a_machine_description, "set ready = 0; load 0 0K node0 0K; accesses 0 = 0")

QUANTITY(cpus_most, NUMALAB_MAX_CPUS)

SCRIPT(test_other_memory_is_left_out,
       "load 0 0K node4 0K; set device = 1; load 0 4K node0 4K; keep none = cpus_most",
       "load none 0K node0 4K; misses 0 = 0; head 0 = 0")

/* ---- time ---- */

QUANTITY(expected, 620 + LLC_CYCLES + 7)

/* An instruction takes one cycle; the last-level cache and memory add waiting time. */
SCRIPT(test_time_is_instructions_and_waiting,
       "keep begin = cycles 6; pace; load 6 0K node1 0K; load 7 4K node0 8K; load 6 4K node0 8K",
       "load 6 4K node0 8K; execute 6 7; keep n = expected; counted_cycles 6 = begin+n",
       "late_ns 6 = 0")

/* Clearing and copying a page costs the same by bytes as by words; a similar opcode is a plain
 * instruction. Operations count by width. */
TEST(test_instructions_cost_and_count)
{
	static const struct {
		const char *name, *code;
		unsigned size, steps, cycles, flops;
	} rows[] = {
		{"rep stosb", "\xf3\xaa", 2, 4096, 256},
		{"rep stosq", "\xf3\x48\xab", 3, 512, 256},
		{"rep movsq", "\xf3\x48\xa5", 3, 512, 256},
		{"rep movsb", "\xf3\xa4", 2, 4096, 256},
		{"rep stosl", "\xf3\xab", 2, 1024, 256},
		{"rep stosw", "\x66\xf3\xab", 3, 2048, 256},
		{"stosb", "\xaa", 1, 100, 100},
		{"pause", "\xf3\x90", 2, 100, 100},
		{"repe cmpsb", "\xf3\xa6", 2, 100, 100},
		{"popcnt", "\xf3\x0f\xb8\xc0", 4, 100, 100},
		{"addsd", "\xf2\x0f\x58\xc1", 4, 1, 1, 1},
		{"mulss %xmm1, %xmm8", "\xf3\x44\x0f\x59\xc1", 5, 1, 1, 1},
		{"divpd", "\x66\x0f\x5e\xc1", 4, 1, 1, 2},
		{"subps", "\x0f\x5c\xc1", 3, 1, 1, 4},
		{"vsqrtsd", "\xc5\xf3\x51\xc1", 4, 1, 1, 1},
		{"vaddpd %ymm", "\xc5\xf5\x58\xc1", 4, 1, 1, 4},
		{"vaddps %ymm8", "\xc4\xc1\x74\x58\xc0", 5, 1, 1, 8},
		{"vfmadd231sd", "\xc4\xe2\xf1\xb9\xc1", 5, 1, 1, 2},
		{"vfmadd231pd %ymm", "\xc4\xe2\xf5\xb8\xc1", 5, 1, 1, 8},
		{"movaps", "\x0f\x28\xc1", 3, 1, 1, 0},
		{"pxor", "\x66\x0f\xef\xc1", 4, 1, 1, 0},
		{"vpbroadcastd", "\xc4\xe2\x7d\x58\xc1", 5, 1, 1, 0},
		{"not whole", "\xf2\x0f", 2, 1, 1, 0},
	};
	lab_pace_begin(250);
	paced = true;
	EACH_ROW(row, rows)
	{
		const struct numalab_counts before = *counts(5);
		const uint64_t cycles = lab_pace_cycles(5);
		code = row->code;
		code_size = row->size;
		instrument(0, NULL);
		for (unsigned step = 0; step < row->steps; step++)
			execute_block(5, block_user);
		CHECK(row, lab_pace_cycles(5) - cycles == row->cycles);
		CHECK(row, counts(5)->flops - before.flops == row->flops);
		CHECK(row, row->steps > 1 || counts(5)->instructions - before.instructions == 1);
	}
}

QUANTITY(wait, lab_queue_wait(LAB_CONTROLLER_CYCLES, 900))

/* Only if time is paced, and only for a loaded node. */
SCRIPT(test_loaded_home_is_waited_for,
       "pace off; load_node1; keep wait = wait; load 2 0K node1 0K; queue 2 = 0; latency 2 = 200",
       "pace; load 2 4K node1 4K; load 4 4K node2 0K; queue 2 = wait; latency 2 = wait+200",
       "stall 2 = wait+400; latency 4 = 200")

SCRIPT(test_probe_is_answered_once,
       "set ready = 0; probe; load 3 0K node0 4K kernel; answered = 0; load 3 4K node0 8K kernel",
       "load 5 4K node0 12K kernel; answered = 1; answered_by = 3; answered_at = 8K")

TEST(test_install_maps_the_file)
{
	char path[] = "/tmp/numalab-test.XXXXXX", option[64];
	char *arguments[] = {option}, *wrong[] = {path};
	char mhz[] = "pace=250", none[] = "pace=0";
	char *with_pace[] = {option, mhz}, *too_slow[] = {option, none};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(machine)), 0);
	snprintf(option, sizeof(option), "shared=%s", path);
	assert_int_equal(qemu_plugin_install(0, NULL, 1, wrong), -1);
	assert_int_equal(qemu_plugin_install(0, NULL, 1, arguments), 0);
	assert_true(shared->magic == NUMALAB_MAGIC);
	assert_int_equal(qemu_plugin_install(0, NULL, 2, too_slow), -1);
	assert_false(paced);
	assert_int_equal(qemu_plugin_install(0, NULL, 2, with_pace), 0);
	assert_true(paced);
	munmap(shared, sizeof(*shared));
	close(fd);
	unlink(path);
	assert_int_equal(qemu_plugin_install(0, NULL, 1, arguments), -1);
}

RUN_TESTS()
