/* SPDX-License-Identifier: MIT */
/* The memory model of the QEMU plugin of the lab, with this file instead of QEMU. */
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
static const unsigned char *code =
	(const unsigned char *)"\x90"; /* of the only instruction of the block */
static size_t code_size = 1;

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
	(void)vcpu;
}

void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_simple callback)
{
	callback(id);
}

void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_changed callback)
{
	(void)id;
	(void)callback;
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
					  qemu_plugin_block_executed callback,
					  enum qemu_plugin_cb_flags flags, void *user)
{
	(void)block;
	(void)flags;
	block_user = user;
	execute_block = callback;
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
				      qemu_plugin_mem_accessed callback,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw which, void *user)
{
	(void)instruction;
	(void)flags;
	(void)user;
	assert_int_equal(which, QEMU_PLUGIN_MEM_RW);
	access_memory = callback;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block)
{
	(void)block;
	return 1;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index)
{
	(void)block;
	(void)index;
	return NULL;
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction)
{
	(void)instruction;
	return code_size;
}

const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction)
{
	(void)instruction;
	return code;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction)
{
	(void)instruction;
	return 0;
}

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info)
{
	return info == STORE;
}

struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address)
{
	(void)info;
	(void)address;
	return (struct qemu_plugin_hwaddr *)&mapped_to;
}

bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address)
{
	(void)address;
	return is_device;
}

uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address)
{
	(void)address;
	return mapped_to;
}

/* Four nodes of two CPUs and 1 GiB in a ring. */
static int set_up(void **state)
{
	(void)state;
	memset(&machine, 0, sizeof(machine));
	memset(l1s, 0, sizeof(l1s));
	memset(llcs, 0, sizeof(llcs));
	memset(streams_of, 0, sizeof(streams_of));
	memset(since_record, 0, sizeof(since_record));
	memset(controllers, 0, sizeof(controllers));
	is_device = false;
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

static void touch(unsigned int cpu, int kind, uint64_t address, uint64_t physical)
{
	mapped_to = HOLE + physical;
	access_memory(cpu, (qemu_plugin_meminfo_t)kind, address, (void *)(uintptr_t)0x401000);
}

static const struct numalab_counts *counts(unsigned int cpu)
{
	return &machine.rings[cpu].counts;
}

static const struct numalab_record *newest(unsigned int cpu)
{
	assert_true(machine.rings[cpu].head > 0);
	return &machine.rings[cpu].records[(machine.rings[cpu].head - 1) % NUMALAB_RING];
}

/* Code runs uninstrumented until the module of the guest attaches; then it is translated again
 * once. */
TEST(test_instruments_start_when_attached)
{
	on_translation(0, NULL);
	assert_int_equal(machine.instrumented, 0);
	machine.attached = 1;
	on_translation(0, NULL);
	assert_int_equal(machine.instrumented, 1);
	machine.instrumented = 0;
	on_translation(0, NULL);
	assert_int_equal(machine.instrumented, 0);
}

TEST(test_costs_by_distance)
{
	static const uint32_t cycles[] = {200, 420, 620, 420};

	for (unsigned int node = 0; node < 4; node++) {
		uint64_t before = counts(0)->stall_cycles;

		touch(0, LOAD, USER + node * 4096, node * GIB + node * 4096);
		assert_int_equal(counts(0)->stall_cycles - before, cycles[node]);
		assert_int_equal(newest(0)->latency, cycles[node]);
		assert_int_equal(newest(0)->node, node);
		assert_int_equal(newest(0)->level, NUMALAB_DRAM);
		assert_true(newest(0)->physical == node * GIB + node * 4096);
		assert_true(newest(0)->address == USER + node * 4096);
	}
	assert_int_equal(counts(0)->local, 1);
	assert_int_equal(counts(0)->remote, 3);
}

TEST(test_second_access_hits)
{
	for (int i = 0; i < 3; i++)
		touch(0, LOAD, USER + 8 * (uint64_t)i, 8 * (uint64_t)i);
	assert_int_equal(counts(0)->accesses, 3);
	assert_int_equal(counts(0)->l1_misses, 1);
	assert_int_equal(machine.rings[0].head, 1);
}

TEST(test_cpus_of_a_node_share_its_cache)
{
	touch(0, LOAD, USER, 4096);
	touch(1, LOAD, USER, 4096);
	assert_int_equal(newest(1)->level, NUMALAB_LLC);
	assert_int_equal(counts(1)->local + counts(1)->remote, 0);
	touch(2, LOAD, USER, 4096);
	assert_int_equal(newest(2)->level, NUMALAB_DRAM);
	assert_int_equal(counts(2)->remote, 1);
}

/* The same virtual address in another process, accessed through the kernel, is different memory. */
TEST(test_processes_do_not_share_lines_by_address)
{
	touch(0, LOAD, USER, 4096);
	touch(0, LOAD, KERNEL, 2 * 4096);
	touch(0, LOAD, USER, GIB + 4096);
	assert_int_equal(counts(0)->l1_misses, 3);
	assert_int_equal(counts(0)->remote, 1);
}

TEST(test_line_outlives_the_kernel)
{
	touch(0, LOAD, USER, 4096);
	touch(0, LOAD, KERNEL, 2 * 4096);
	touch(0, LOAD, USER, 4096);
	assert_int_equal(counts(0)->l1_misses, 2);
}

TEST(test_lines_are_replaced)
{
	for (uint64_t page = 0; page <= WAYS; page++)
		touch(0, LOAD, USER + page * 4096, page * 4096);
	touch(0, LOAD, USER, 0);
	assert_int_equal(counts(0)->l1_misses, WAYS + 2);
	assert_int_equal(newest(0)->level, NUMALAB_LLC);
}

static uint64_t cycles_of_page(uint64_t page, uint64_t step)
{
	uint64_t before = counts(0)->stall_cycles;

	for (uint64_t line = 0; line < 64; line++)
		touch(0, LOAD, USER + page * 4096 + line * step % 64 * 64,
		      page * 4096 + line * step % 64 * 64);
	return counts(0)->stall_cycles - before;
}

/* Two lines of each page cost their full latency, the others 10 %; in random order every line costs
 * its full latency. */
TEST(test_lines_in_a_row_are_fetched_ahead)
{
	assert_int_equal(cycles_of_page(0, 1), 2 * 200 + 62 * 20);
	assert_int_equal(cycles_of_page(1, 1), 2 * 200 + 62 * 20);
	assert_int_equal(cycles_of_page(2, 17), 64 * 200);
	/* Copying a page has two streams. */
	uint64_t before = counts(0)->stall_cycles;
	for (uint64_t line = 0; line < 64; line++) {
		touch(0, LOAD, KERNEL + line * 64, 3 * 4096 + line * 64);
		touch(0, STORE, KERNEL + 4096 + line * 64, GIB + line * 64);
	}
	assert_int_equal(counts(0)->stall_cycles - before, 2 * (200 + 420) + 62 * (20 + 42));
	/* The same from the cache of the node. */
	uint64_t cycles = lab_pace_cycles(1);
	for (uint64_t line = 0; line < 64; line++)
		touch(1, LOAD, USER + line * 64, line * 64);
	assert_int_equal(lab_pace_cycles(1) - cycles, 2 * LLC_CYCLES + 62 * (LLC_CYCLES / 10));
}

TEST(test_stores_carry_no_latency)
{
	touch(0, STORE, USER, GIB);
	assert_true(newest(0)->store);
	assert_int_equal(newest(0)->latency, 0);
	assert_int_equal(counts(0)->stall_cycles, 420);
}

TEST(test_every_nth_miss_is_recorded)
{
	machine.rings[0].period = 7;
	for (uint64_t line = 0; line < 700; line++)
		touch(0, LOAD, USER + line * 64, line * 64);
	assert_int_equal(machine.rings[0].head, 100);
	machine.rings[0].period = 0;
	for (uint64_t line = 700; line < 800; line++)
		touch(0, LOAD, USER + line * 64, line * 64);
	assert_int_equal(machine.rings[0].head, 100);
}

TEST(test_full_ring_drops_and_counts)
{
	for (uint64_t line = 0; line < NUMALAB_RING + 5; line++)
		touch(0, LOAD, USER + line * 64, line * 64);
	assert_int_equal(machine.rings[0].head, NUMALAB_RING);
	assert_int_equal(counts(0)->dropped, 5);
	assert_true(machine.rings[0].records[0].address == USER);
}

TEST(test_model_needs_a_machine_description)
{
	machine.ready = 0;
	touch(0, LOAD, USER, 0);
	assert_int_equal(counts(0)->accesses, 0);
}

TEST(test_other_memory_is_left_out)
{
	touch(0, LOAD, USER, 4 * GIB);
	is_device = true;
	touch(0, LOAD, USER + 4096, 4096);
	touch(NUMALAB_MAX_CPUS, LOAD, USER, 4096);
	assert_int_equal(counts(0)->l1_misses, 0);
	assert_int_equal(machine.rings[0].head, 0);
}

/* An instruction takes one cycle; the last-level cache and memory add waiting time. */
TEST(test_time_is_instructions_and_waiting)
{
	uint64_t before = lab_pace_cycles(6);

	lab_pace_begin(250);
	paced = true;
	instrument(0, NULL);
	touch(6, LOAD, USER, GIB);
	touch(7, LOAD, USER + 4096, 2 * 4096);
	touch(6, LOAD, USER + 4096, 2 * 4096);
	touch(6, LOAD, USER + 4096, 2 * 4096);
	execute_block(6, of_block(7, 0));
	paced = false;
	assert_int_equal(counts(6)->cycles - before, 620 + LLC_CYCLES + 7);
	assert_int_equal(counts(6)->late_ns, 0);
}

static uint64_t cycles_of_steps(const char *bytes, size_t size, unsigned int steps)
{
	uint64_t before = lab_pace_cycles(5);

	code = (const unsigned char *)bytes;
	code_size = size;
	paced = true;
	instrument(0, NULL);
	for (unsigned int step = 0; step < steps; step++)
		execute_block(5, block_user);
	paced = false;
	code = (const unsigned char *)"\x90";
	code_size = 1;
	return lab_pace_cycles(5) - before;
}

/* Clearing and copying a page costs the same by bytes as by words; a similar opcode is a plain
 * instruction. */
TEST(test_string_instructions_cost_by_bytes)
{
	lab_pace_begin(250);
	assert_int_equal(cycles_of_steps("\xf3\xaa", 2, 4096), 256);	    /* rep stosb */
	assert_int_equal(cycles_of_steps("\xf3\x48\xab", 3, 512), 256);	    /* rep stosq */
	assert_int_equal(cycles_of_steps("\xf3\x48\xa5", 3, 512), 256);	    /* rep movsq */
	assert_int_equal(cycles_of_steps("\xf3\xa4", 2, 4096), 256);	    /* rep movsb */
	assert_int_equal(cycles_of_steps("\xf3\xab", 2, 1024), 256);	    /* rep stosl */
	assert_int_equal(cycles_of_steps("\x66\xf3\xab", 3, 2048), 256);    /* rep stosw */
	assert_int_equal(cycles_of_steps("\xaa", 1, 100), 100);		    /* stosb */
	assert_int_equal(cycles_of_steps("\xf3\x90", 2, 100), 100);	    /* pause */
	assert_int_equal(cycles_of_steps("\xf3\xa6", 2, 100), 100);	    /* repe cmpsb */
	assert_int_equal(cycles_of_steps("\xf3\x0f\xb8\xc0", 4, 100), 100); /* popcnt */
}

static unsigned int flops_of(const char *bytes, size_t size)
{
	uint64_t before = counts(5)->flops, instructions = counts(5)->instructions;

	code = (const unsigned char *)bytes;
	code_size = size;
	instrument(0, NULL);
	execute_block(5, block_user);
	code = (const unsigned char *)"\x90";
	code_size = 1;
	assert_int_equal(counts(5)->instructions - instructions, 1);
	return (unsigned int)(counts(5)->flops - before);
}

TEST(test_operations_count_by_width)
{
	assert_int_equal(flops_of("\xf2\x0f\x58\xc1", 4), 1);	  /* addsd */
	assert_int_equal(flops_of("\xf3\x44\x0f\x59\xc1", 5), 1); /* mulss %xmm1, %xmm8 */
	assert_int_equal(flops_of("\x66\x0f\x5e\xc1", 4), 2);	  /* divpd */
	assert_int_equal(flops_of("\x0f\x5c\xc1", 3), 4);	  /* subps */
	assert_int_equal(flops_of("\xc5\xf3\x51\xc1", 4), 1);	  /* vsqrtsd */
	assert_int_equal(flops_of("\xc5\xf5\x58\xc1", 4), 4);	  /* vaddpd %ymm */
	assert_int_equal(flops_of("\xc4\xc1\x74\x58\xc0", 5), 8); /* vaddps %ymm8 */
	assert_int_equal(flops_of("\xc4\xe2\xf1\xb9\xc1", 5), 2); /* vfmadd231sd */
	assert_int_equal(flops_of("\xc4\xe2\xf5\xb8\xc1", 5), 8); /* vfmadd231pd %ymm */
	assert_int_equal(flops_of("\x0f\x28\xc1", 3), 0);	  /* movaps */
	assert_int_equal(flops_of("\x66\x0f\xef\xc1", 4), 0);	  /* pxor */
	assert_int_equal(flops_of("\xc4\xe2\x7d\x58\xc1", 5), 0); /* vpbroadcastd */
	assert_int_equal(flops_of("\xf2\x0f", 2), 0);		  /* not whole */
}

/* Only if time is paced, and only for a loaded node. */
TEST(test_loaded_home_is_waited_for)
{
	uint32_t wait;

	lab_pace_begin(250);
	atomic_store(&controllers[1].load_permille, 900);
	atomic_store(&controllers[1].window, UINT64_MAX);
	atomic_store(&controllers[2].window, UINT64_MAX);
	touch(2, LOAD, USER, GIB);
	assert_int_equal(counts(2)->queue_cycles, 0);
	assert_int_equal(newest(2)->latency, 200);
	paced = true;
	touch(2, LOAD, USER + 4096, GIB + 4096);
	touch(4, LOAD, USER + 4096, 2 * GIB);
	paced = false;
	wait = lab_queue_wait(LAB_CONTROLLER_CYCLES, 900);
	assert_int_equal(counts(2)->queue_cycles, wait);
	assert_int_equal(newest(2)->latency, 200 + wait);
	assert_int_equal(counts(2)->stall_cycles, 400 + wait);
	assert_int_equal(newest(4)->latency, 200);
}

TEST(test_probe_is_answered_once)
{
	machine.ready = 0;
	machine.probe.address = KERNEL + 4096;
	touch(3, LOAD, KERNEL, 4096);
	assert_false(machine.probe.answered);
	touch(3, LOAD, KERNEL + 4096, 8192);
	touch(5, LOAD, KERNEL + 4096, 12288);
	assert_true(machine.probe.answered);
	assert_int_equal(machine.probe.vcpu, 3);
	assert_true(machine.probe.physical == HOLE + 8192);
}

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
	paced = false;
	munmap(shared, sizeof(*shared));
	close(fd);
	unlink(path);
	assert_int_equal(qemu_plugin_install(0, NULL, 1, arguments), -1);
}

RUN_TESTS()
