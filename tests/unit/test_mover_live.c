/* SPDX-License-Identifier: MIT */
/* The mover on the running kernel with pages of this process. */
#include "../support/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../src/mover/known.h"
#include "mover_fixture.h"

#include "../support/live_calls.h"
#include "numa-migrd/proc.h"

static uint64_t own_start_ticks(struct nm_platform *platform)
{
	char text[1024], *end;
	uint64_t ticks = 0;

	assert_true(platform->ops->read_file(platform, NM_ROOT, "proc/self/stat", text,
					     sizeof(text)) > 0);
	end = strrchr(text, ')');
	assert_int_equal(sscanf(end + 1,
				" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
				"%*d %*d %*d %" SCNu64,
				&ticks),
			 1);
	return ticks;
}

static struct nm_page_batch *batch_of_own(struct nm_platform *platform, uint8_t *memory,
					  size_t count, int to)
{
	struct nm_page_batch *batch = fake_batch(count);

	batch->pid = (uint32_t)getpid();
	batch->start_ticks = own_start_ticks(platform);
	for (size_t i = 0; i < count; i++)
		batch->steps[i] = (struct nm_page_step){.address = (uintptr_t)memory + i * 4096,
							.bytes = 4096,
							.from = -1,
							.to = (int16_t)to};
	return batch;
}

/* On a slow machine reading the mappings takes several turns. */
static void submit_until_read(struct nm_platform *platform, struct nm_mover *mover,
			      struct nm_page_batch *batch)
{
	struct nm_page_batch *done;

	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(nm_mover_submit(mover, batch), 0);
		while (nm_mover_work(mover), !(done = fake_done(mover)))
			live_wait(platform);
		assert_ptr_equal(done, batch);
		if (batch->error != -ESTALE)
			return;
		live_wait(platform); /* the pause between two turns of reading */
	}
}

/* Pages of this process, all but the last touched: on a single node they are already there. */
TEST_BETWEEN(set_up, tear_down, test_own_pages)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_topology_freep) struct nm_topology *topology = NULL;
	nm_auto(nm_mover_freep) struct nm_mover *mover = NULL;
	struct test *test = *state;
	size_t count = 64;
	char error[256];
	int home;

	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	assert_int_equal(
		nm_topology_load(&(struct nm_topology_source){0}, error, sizeof(error), &topology),
		0);
	uint8_t *memory = mmap(NULL, count * 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	madvise(memory, count * 4096, MADV_NOHUGEPAGE);
	memset(memory, 1, (count - 1) * 4096);
	if (live_where(platform, getpid(), own_start_ticks(platform),
		       &(uint64_t){(uintptr_t)memory}, &home) < 0 ||
	    home < 0 || access("/proc/self/numa_maps", R_OK) < 0) {
		print_message("this kernel moves no pages: skipped\n");
		munmap(memory, count * 4096);
		skip();
	}
	int node = nm_topology_node_index(topology, (unsigned)home);
	int to = topology->nr_nodes > 1 ? (node + 1) % (int)topology->nr_nodes : node;
	test->config->pages.also = NM_ALSO_ISOLATED;
	test->config->pages.keep_free_percent = 0;
	nm_mover_new(platform, topology, test->config, &mover);
	struct nm_page_batch *batch = batch_of_own(platform, memory, count, to);
	submit_until_read(platform, mover, batch);
	assert_int_equal(batch->error, 0);
	for (size_t i = 0; i < count - 1; i++) {
		assert_int_equal(batch->steps[i].found_on, node);
		assert_int_equal(batch->steps[i].fate,
				 to == node ? NM_PAGE_FATE_ELSEWHERE : NM_PAGE_FATE_MOVED);
	}
	assert_int_equal(batch->steps[count - 1].fate, NM_PAGE_FATE_FAILED);
	assert_int_equal(batch->steps[count - 1].error, -ENOENT);
	nm_page_batch_free(batch);
	munmap(memory, count * 4096);
}

/* The call itself with the results of the kernel, and that of a dry run. */
TEST(test_own_call)
{
	static uint8_t page[2 * 4096];
	uint64_t addresses[2] = {(uintptr_t)page, 0};
	const int nodes[2] = {0, 0};
	const struct nm_page_round round = {.count = 2, .addresses = addresses, .nodes = nodes};

	page[0] = page[4096] = 1;
	for (int dry = 0; dry < 2; dry++) {
		const struct nm_platform_options options = {
			.root_path = "/", .worker_program = NM_WORKER_BUILT, .dry_run = dry};
		nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
		struct nm_worker_moved moved = {0};
		assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
		uint64_t ticks = own_start_ticks(platform);
		int r = live_result(platform, platform->ops->pages_round(platform, getpid(), ticks,
									 &round, &moved));
		if (dry) {
			assert_int_equal(r, -EROFS);
			assert_int_equal(moved.tries[0].pages, 0);
			continue;
		}
		if (r == -ENOSYS || r == -ENODEV || r == -EACCES)
			skip();
		assert_int_equal(r, 0);
		assert_int_equal(moved.tries[0].pages, 2);
		assert_true(moved.tries[0].held_ns > 0);
		assert_int_equal(moved.pages[0].node, 0);
		assert_int_equal(moved.pages[1].node, -EFAULT);
	}
}

static void *sleep_on(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* A process whose first thread has exited, and another has not. */
static pid_t make_headless(void)
{
	pid_t child = fork();

	if (child != 0)
		return child;
	pthread_t thread;
	alarm(60);
	if (pthread_create(&thread, NULL, sleep_on, NULL) != 0)
		_exit(1);
	pthread_exit(NULL);
}

static uint64_t await_exit_of_first(struct nm_platform *platform, pid_t pid)
{
	struct nm_proc_stat stat = {0};

	for (unsigned i = 0; i < 20000 && stat.state != 'Z'; i++) {
		int directory = nm_proc_open_thread(platform, 0, (uint32_t)pid);
		assert_true(directory >= 0);
		assert_int_equal(nm_proc_read_stat(platform, directory, &stat), 0);
		platform->ops->close(platform, directory);
		usleep(1000);
	}
	assert_int_equal(stat.state, 'Z');
	return stat.start_ticks;
}

TEST(test_first_thread_gone)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_mappings_freep) struct nm_mappings *mappings = NULL;
	uint64_t address = (uintptr_t)&options;
	int on_node = 0, where = 0, r = -EAGAIN;
	uint32_t tid = 0;
	uint64_t tid_ticks = 0;

	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	bool has_policies = access("/proc/self/numa_maps", R_OK) == 0;
	pid_t pid = make_headless();
	assert_true(pid > 0);
	uint64_t ticks = await_exit_of_first(platform, pid);
	int directory = nm_known_open(platform, (uint32_t)pid, ticks, &tid, &tid_ticks);
	assert_true(directory >= 0 && tid != (uint32_t)pid);
	nm_mappings_new(platform, &mappings);
	if (has_policies)
		r = live_read(platform, mappings, directory, 60 * NM_NSEC_PER_SEC);
	else
		platform->ops->close(platform, directory);
	where = live_where(platform, (pid_t)tid, tid_ticks, &address, &on_node);
	assert_int_equal(live_where(platform, (pid_t)tid, tid_ticks + 1, &address, &on_node),
			 -ESRCH);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!has_policies || where == -ENOSYS) {
		print_message("this kernel moves no pages: skipped\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_non_null(nm_mappings_find(mappings, address, 1));
	assert_int_equal(where, 0);
}

RUN_TESTS()
