/* SPDX-License-Identifier: MIT */
/* Accesses without a physical address: page nodes are queried in batches and cached for a while. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include <sys/mman.h>

#include "../support/live_calls.h"
#include "../support/source_fixture.h"

#define NODE(n) ((uint64_t)(n) << 32)
#define NOWHERE (1ULL << 40)

struct homes_seen {
	unsigned samples, of_node[3]; /* unknown, node 0, node 1 */
};

static void see(void *context, struct nm_sample *sample)
{
	struct homes_seen *seen = context;

	seen->samples++;
	assert_in_range(sample->page_node, 0, 2);
	seen->of_node[sample->page_node]++;
}

static void see_nothing(void *context, const struct nm_task_event *event)
{
	(void)context, (void)event;
}

static void put(struct fixture *f, struct record_ring *ring, uint32_t pid, uint64_t address,
		uint64_t physical)
{
	record_fault(ring, fake_id(f->fake, NM_EVENT_FAULT_MIN, 0), pid, pid, 1, address, physical);
}

static void put_of(struct fixture *f, struct record_ring *ring, uint32_t pid, uint32_t tid,
		   uint64_t address)
{
	record_fault(ring, fake_id(f->fake, NM_EVENT_FAULT_MIN, 0), pid, tid, 1, address, 0);
}

static struct homes_seen drain_ring(struct fixture *f, const struct record_ring *ring)
{
	struct homes_seen seen = {0};
	const struct nm_sample_sink sink = {
		.context = &seen, .on_sample = see, .on_task = see_nothing};

	fake_publish(f->fake, 0, ring);
	nm_source_drain(f->source, &sink);
	return seen;
}

TEST(known_addresses_are_not_asked_about)
{
	struct fixture *f = *state;

	open_source(f);
	struct record_ring ring = fake_ring(f->fake, 0);
	put(f, &ring, 10, NODE(1) + 0x1000, 0x2000);
	put(f, &ring, 10, 0, 0);
	put(f, &ring, 0, NODE(1), 0);
	struct homes_seen seen = drain_ring(f, &ring);
	assert_int_equal(seen.samples, 3);
	assert_int_equal(seen.of_node[0], 3);
	assert_int_equal(f->fake->questions, 0);
}

TEST(queries_are_grouped_by_process)
{
	struct fixture *f = *state;

	open_source(f);
	struct record_ring ring = fake_ring(f->fake, 0);
	for (unsigned i = 0; i < 60; i++)
		put(f, &ring, 10 + i % 3, NODE(i % 2) + (i + 1) * 0x1000, 0);
	put(f, &ring, 10, NOWHERE, 0);
	struct homes_seen seen = drain_ring(f, &ring);
	assert_int_equal(f->fake->questions, 3);
	assert_int_equal(seen.samples, 61);
	assert_int_equal(seen.of_node[1], 30);
	assert_int_equal(seen.of_node[2], 30);
	assert_int_equal(seen.of_node[0], 1);
}

TEST(answers_are_cached)
{
	struct fixture *f = *state;

	open_source(f);
	for (unsigned round = 0; round < 20; round++) {
		struct record_ring ring = fake_ring(f->fake, 0);
		put(f, &ring, 10, NODE(1) + 0x1000 + round, 0);
		assert_int_equal(drain_ring(f, &ring).of_node[2], 1);
	}
	assert_int_equal(f->fake->questions, 1);
	for (unsigned i = 0; i < 9; i++)
		(void)nm_source_control_cost(f->source, 0.005);
	struct record_ring ring = fake_ring(f->fake, 0);
	put(f, &ring, 10, NODE(1) + 0x1000, 0);
	put(f, &ring, 11, NODE(1) + 0x1000, 0);
	(void)drain_ring(f, &ring);
	assert_int_equal(f->fake->questions, 3);
}

/* When nodes go offline or online, the others get new indices. */
TEST(renumbered_nodes_are_queried_again)
{
	struct fixture *f = *state;
	nm_auto(nm_topology_freep) struct nm_topology *other = NULL;

	open_source(f);
	struct record_ring ring = fake_ring(f->fake, 0);
	put(f, &ring, 10, NODE(1) + 0x1000, 0);
	assert_int_equal(drain_ring(f, &ring).of_node[2], 1);
	other = machine_topology(f->topology->nr_nodes, f->topology->nr_cpus);
	assert_non_null(other);
	for (unsigned i = 0; i < other->nr_nodes; i++)
		other->nodes[i].os_id = i + 1;
	nm_source_retarget(f->source, other);
	ring = fake_ring(f->fake, 0);
	put(f, &ring, 10, NODE(1) + 0x1000, 0);
	assert_int_equal(drain_ring(f, &ring).of_node[1], 1);
	assert_int_equal(f->fake->questions, 2);
	nm_source_retarget(f->source, f->topology);
}

/* More samples than can be held at once, and a process that has exited. */
TEST(samples_are_delivered)
{
	struct fixture *f = *state;

	f->config.rules.ring_kb = 1024;
	open_source(f);
	f->fake->where_error = -ESRCH;
	struct record_ring ring = fake_ring(f->fake, 0);
	for (unsigned i = 0; i < 2000; i++)
		put(f, &ring, 10 + i, NODE(1) + i * 0x1000, 0);
	struct homes_seen seen = drain_ring(f, &ring);
	assert_int_equal(seen.samples, 2000);
	assert_int_equal(seen.of_node[0], 2000);
	assert_true(f->fake->questions <= 256);
}

/* Samples are delivered without an answer after two intervals. */
/* SECURITY: held-lock */
TEST(an_unanswered_query_does_not_block)
{
	struct fixture *f = *state;

	open_source(f);
	fake_asked.hangs = true;
	struct record_ring ring = fake_ring(f->fake, 0);
	put(f, &ring, 10, NODE(1) + 0x1000, 0);
	put(f, &ring, 11, NODE(1) + 0x2000, 0);
	assert_int_equal(drain_ring(f, &ring).samples, 0);
	put(f, &ring, 12, NODE(1) + 0x3000, 0x3000);
	assert_int_equal(drain_ring(f, &ring).samples, 1);
	for (unsigned i = 0; i < 2; i++)
		(void)nm_source_control_cost(f->source, 0.005);
	struct homes_seen seen = drain_ring(f, &ring);
	fake_asked.hangs = false;
	assert_int_equal(seen.samples, 2);
	assert_int_equal(seen.of_node[0], 2);
	assert_int_equal(fake_asked.open, 0);
}

/* Samples of a thread are delivered before its exit, with known nodes or not, as its metrics are
 * dropped then. */
TEST(samples_of_exited_threads_are_delivered)
{
	struct fixture *f = *state;

	open_source(f);
	fake_asked.hangs = true;
	struct record_ring ring = fake_ring(f->fake, 0);
	put(f, &ring, 10, NODE(1) + 0x1000, 0);
	put(f, &ring, 11, NODE(1) + 0x2000, 0);
	assert_int_equal(drain_ring(f, &ring).samples, 0);
	record_fork_exit(&ring, false, (const uint32_t[]){10, 1, 10, 1}, 2);
	struct homes_seen seen = drain_ring(f, &ring);
	assert_int_equal(seen.samples, 1);
	assert_int_equal(seen.of_node[0], 1);
	for (unsigned i = 0; i < 2; i++)
		(void)nm_source_control_cost(f->source, 0.005);
	assert_int_equal(drain_ring(f, &ring).samples, 1);
	fake_asked.hangs = false;
}

/* The locations of its pages do not apply to the next owner of the number or the next program. */
TEST(a_reused_number_is_queried_again)
{
	struct fixture *f = *state;

	open_source(f);
	for (unsigned round = 0; round < 4; round++) {
		struct record_ring ring = fake_ring(f->fake, 0);
		if (round == 1)
			record_fork_exit(&ring, false, (const uint32_t[]){10, 1, 10, 1}, 2);
		if (round == 2)
			record_comm(&ring, true, 10, 10, "next", 2);
		if (round == 3) /* only one thread */
			record_fork_exit(&ring, false, (const uint32_t[]){10, 1, 12, 1}, 2);
		put(f, &ring, 10, NODE(1) + 0x1000, 0);
		put(f, &ring, 10 + 4096, NODE(1) + 0x1000, 0);
		assert_int_equal(drain_ring(f, &ring).of_node[2], 2);
	}
	assert_int_equal(f->fake->questions, 4);
}

/* An answer about its successor is not used. */
TEST(the_end_of_a_process_drops_its_queries)
{
	struct fixture *f = *state;

	open_source(f);
	fake_asked.hangs = true;
	struct record_ring ring = fake_ring(f->fake, 0);
	put(f, &ring, 10, NODE(1) + 0x1000, 0);
	put_of(f, &ring, 10, 12, NODE(1) + 0x2000);
	put_of(f, &ring, 11, 13, NODE(1) + 0x3000);
	assert_int_equal(drain_ring(f, &ring).samples, 0);
	record_comm(&ring, true, 10, 10, "next", 2);
	struct homes_seen seen = drain_ring(f, &ring);
	assert_int_equal(seen.samples, 2);
	assert_int_equal(seen.of_node[0], 2);
	fake_asked.hangs = false;
}

/* A real query about a page of this process. */
TEST_BETWEEN(NULL, NULL, the_kernel_answers)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int nodes[2] = {77, 77};

	assert_ptr_not_equal(pages, MAP_FAILED);
	pages[0] = 1;
	const uint64_t addresses[2] = {(uintptr_t)pages, (uintptr_t)pages + size};
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	int r = live_where(platform, getpid(), 0, 2, addresses, nodes);
	munmap(pages, 2 * size);
	if (r == -ENOSYS || r == -EPERM) {
		print_message("this kernel answers no move_pages: skipped\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_in_range(nodes[0], 0, 1023);
	assert_true(nodes[1] < 0);
}

RUN_TESTS()
