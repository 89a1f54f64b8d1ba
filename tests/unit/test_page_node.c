/* SPDX-License-Identifier: MIT */
/* Accesses without a physical address: page nodes are queried in batches and cached for a while. */
#define SET_UP open_words
#define TEAR_DOWN close_words
#include "../support/test.h"

#include <stdint.h>

#include <sys/mman.h>

#include "../support/live_calls.h"
#include "source_words.h"

/* ---- words ---- */

static int close_words(void **state)
{
	fake_asked.hangs = false;
	return tear_down(state);
}

static void put(uint32_t pid, uint32_t tid, uint64_t node, uint64_t offset, uint64_t physical)
{
	struct record_ring ring = fake_ring(f->fake, 0);
	record_fault(&ring, fake_id(f->fake, NM_EVENT_FAULT_MIN, 0), pid, tid, 1,
		     (node << 32) + offset, physical);
	fake_publish(f->fake, 0, &ring);
}

/* put 10 12 node1 8K: an access of process 10 by thread 12 to the byte at 8 KiB of node 1; the
 * number after it is its physical address; node256 is none */
ACTION(put, put(U(0), U(1), U(2), U(3), step->nr_numbers > 4 ? U(4) : 0))

/* put_many 60 3 0-1: 60 accesses by three processes to nodes 0 and 1 in turn */
WORD(put_many)
{
	for (uint32_t i = 0; i < U(0); i++)
		put(10 + i % U(1), 10 + i % U(1), U(2) + i % (U(3) - U(2) + 1), (i + 1) * 4096, 0);
}

WORD(exit)
{
	struct record_ring ring = fake_ring(f->fake, 0);
	record_fork_exit(&ring, false, (const uint32_t[]){U(0), 1, U(1), 1}, 2);
	fake_publish(f->fake, 0, &ring);
}

WORD(exec)
{
	struct record_ring ring = fake_ring(f->fake, 0);
	record_comm(&ring, true, U(0), U(0), "next", 2);
	fake_publish(f->fake, 0, &ring);
}

/* When nodes go offline or online, the others get new indices. */
WORD(renumber)
{
	struct nm_topology *other = machine_topology(2, CPUS);
	for (unsigned i = 0; i < other->nr_nodes; i++)
		other->nodes[i].os_id = i + 1;
	nm_source_retarget(f->source, other);
	nm_topology_free(f->topology);
	f->topology = other;
}

static void see_home(void *context, struct nm_sample *sample)
{
	unsigned *homes = context;
	assert_in_range(sample->page_node, 0, 2);
	homes[sample->page_node]++;
}

static void see_nothing(void *context, const struct nm_task_event *event)
{
	(void)context, (void)event;
}

/* How many samples are delivered: of an unknown node, of node 0, of node 1. */
static const char *drain_homes(void)
{
	static char text[64];
	unsigned homes[3] = {0};
	const struct nm_sample_sink sink = {
		.context = homes, .on_sample = see_home, .on_task = see_nothing};
	nm_source_drain(f->source, &sink);
	snprintf(text, sizeof(text), "%u %u %u", homes[0], homes[1], homes[2]);
	return text;
}

TEXT(drained, drain_homes())
KNOB(hangs, fake_asked.hangs)
KNOB(where_error, f->fake->where_error)
QUANTITY(questions, f->fake->questions)
QUANTITY(unanswered, fake_asked.open)

/* ---- queries ---- */

SCRIPT(known_addresses_are_not_asked_about,
       "open; put 10 10 node1 4K 8K; put 10 10 node0 0; put 0 0 node1 0; drained = 3 0 0",
       "questions = 0")

SCRIPT(queries_are_grouped_by_process,
       "open; put_many 60 3 0-1; put 10 10 node256 0; drained = 1 30 30; questions = 3")

/* For nine intervals; of each process alone. */
SCRIPT(answers_are_cached, "open",
       "each 10: put 10 10 node1 4K; drained = 0 0 1; put 10 10 node1 4097; drained = 0 0 1",
       "questions = 1", "each 9: control 0.005",
       "put 10 10 node1 4K; put 11 11 node1 4K; drained = 0 0 2; questions = 3")

SCRIPT(renumbered_nodes_are_queried_again,
       "open; put 10 10 node1 4K; drained = 0 0 1; renumber; put 10 10 node1 4K; drained = 0 1 0",
       "questions = 2")

/* More samples than can be held at once, and a process that has exited. */
SCRIPT(samples_are_delivered,
       "set ring_kb = 1024; open; set where_error = ESRCH; put_many 2000 2000 1-1",
       "drained = 2000 0 0; questions <= 256")

/* Samples are delivered without an answer after two intervals. */
/* SECURITY: held-lock */
SCRIPT(an_unanswered_query_does_not_block,
       "open; set hangs = 1; put 10 10 node1 4K; put 11 11 node1 8K; drained = 0 0 0",
       "put 12 12 node1 12K 12K; drained = 1 0 0; control 0.005; control 0.005; drained = 2 0 0",
       "unanswered = 0")

/* Samples of a thread are delivered before its exit, with known nodes or not, as its metrics are
 * dropped then. */
SCRIPT(samples_of_exited_threads_are_delivered,
       "open; set hangs = 1; put 10 10 node1 4K; put 11 11 node1 8K; drained = 0 0 0; exit 10 10",
       "drained = 1 0 0; control 0.005; control 0.005; drained = 1 0 0")

/* The locations of its pages do not apply to the next owner of the number or the next program; at
 * last only one thread exits. */
#define BOTH "put 10 10 node1 4K; put 4106 4106 node1 4K; drained = 0 0 2; "
SCRIPT(a_reused_number_is_queried_again,
       "open; " BOTH "exit 10 10; " BOTH "exec 10; " BOTH "exit 10 12; " BOTH "questions = 4")

/* An answer about its successor is not used. */
SCRIPT(the_end_of_a_process_drops_its_queries,
       "open; set hangs = 1; put 10 10 node1 4K; put 10 12 node1 8K; put 11 13 node1 12K",
       "drained = 0 0 0; exec 10; drained = 2 0 0")

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
