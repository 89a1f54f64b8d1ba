/* SPDX-License-Identifier: MIT */
/* The mover on the running kernel with pages of this process. */
#include "../support/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../src/mover/mappings_cache.h"
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
	int home = -1;

	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	assert_int_equal(
		nm_topology_load(&(struct nm_topology_source){0}, error, sizeof(error), &topology),
		0);
	uint8_t *memory = mmap(NULL, count * 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	madvise(memory, count * 4096, MADV_NOHUGEPAGE);
	memset(memory, 1, (count - 1) * 4096);
	if (live_where(platform, getpid(), own_start_ticks(platform), 1,
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

/* The job itself with the results of the kernel, and that of a dry run. */
TEST(test_own_job)
{
	static uint8_t pages[2 * 4096] __attribute__((aligned(4096)));
	nm_autofree struct nm_units_order *order = calloc(1, sizeof(*order));
	nm_autofree struct nm_units_moved *moved = calloc(1, sizeof(*moved));

	pages[0] = pages[4096] = 1;
	*order = (struct nm_units_order){
		.count = 2,
		.pages_most = 512,
		.nr_rooms = 1,
		.slow_ns = NM_NSEC_PER_SEC,
		.rooms = {{.node = 0, .memory = 1 << 20}},
		.units = {{(uintptr_t)pages, 1, NM_UNIT_BASE, -1, 0}, {0, 1, NM_UNIT_BASE, -1, 0}},
	};
	for (int dry = 0; dry < 2; dry++) {
		const struct nm_platform_options options = {
			.root_path = "/", .worker_program = NM_WORKER_BUILT, .dry_run = dry};
		nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
		assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
		uint64_t ticks = own_start_ticks(platform);
		moved->nr_tries = 7;
		int r = live_result(platform, platform->ops->units_move(platform, getpid(), ticks,
									order, moved));
		assert_true(moved->nr_tries <= 2);
		if (dry) {
			assert_int_equal(r, -EROFS);
			assert_int_equal(moved->nr_tries, 0);
			continue;
		}
		if (r == -ENOSYS || r == -ENODEV || r == -EACCES)
			skip();
		assert_int_equal(r, 0);
		assert_int_equal(moved->count, 2);
		assert_true(moved->outcomes[0].done && moved->outcomes[1].done);
		assert_true(moved->outcomes[0].found_on >= 0);
		assert_int_equal(moved->outcomes[1].error, -EFAULT);
	}
}

/* An error is returned as it is, and nothing of an answer that there is not. */
TEST(test_job_of_a_worker_that_ends)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = "/bin/true"};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_autofree struct nm_units_order *order = calloc(1, sizeof(*order));
	nm_autofree struct nm_units_moved *moved = calloc(1, sizeof(*moved));
	nm_autofree struct nm_ranges_moved *found = calloc(1, sizeof(*found));
	const struct nm_ranges_order ranges = {.count = 1};

	order->count = 2;
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	uint64_t ticks = own_start_ticks(platform);
	memset(moved, 0xff, sizeof(*moved));
	int r = live_result(platform,
			    platform->ops->units_move(platform, getpid(), ticks, order, moved));
	assert_int_equal(r, -ECONNRESET);
	assert_int_equal(moved->nr_tries, 0);
	memset(found, 0xff, sizeof(*found));
	r = live_result(platform,
			platform->ops->ranges_move(platform, getpid(), ticks, &ranges, found));
	assert_int_equal(r, -ECONNRESET);
	assert_int_equal(found->nr_tries, 0);
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

/* Its mappings are read, and its pages found, by the number of another thread. */
TEST(test_first_thread_gone)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_autofree struct nm_mappings_cache *known = calloc(1, sizeof(*known));
	uint64_t address = (uintptr_t)&options, tid_ticks = 0;
	int on_node = 0, where = 0, r = -EAGAIN;
	uint32_t tid = 0;

	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	bool has_policies = access("/proc/self/numa_maps", R_OK) == 0;
	pid_t pid = make_headless();
	assert_true(pid > 0);
	uint64_t ticks = await_exit_of_first(platform, pid);
	int directory = nm_cache_open(platform, (uint32_t)pid, ticks, &tid, &tid_ticks);
	assert_true(directory >= 0 && tid != (uint32_t)pid);
	platform->ops->close(platform, directory);
	nm_cache_init(known);
	struct nm_cached_mappings *entry = nm_cache_ask(known, (uint32_t)pid, ticks, 1, 1, NULL);
	while (has_policies && r == -EAGAIN) {
		const struct nm_cache_limits limits = {.budget_ns = NM_NSEC_PER_SEC};
		r = live_result(platform, nm_cache_begin(known, entry, platform, &limits));
		r = nm_cache_end(known, entry, r);
		nm_cache_publish(known, entry, r, 1);
	}
	where = live_where(platform, (pid_t)tid, tid_ticks, 1, &address, &on_node);
	assert_int_equal(live_where(platform, (pid_t)tid, tid_ticks + 1, 1, &address, &on_node),
			 -ESRCH);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	bool is_known = r == 0 && nm_cache_find(entry, address, 1);
	nm_cache_clear(known);
	if (!has_policies || where == -ENOSYS) {
		print_message("this kernel moves no pages: skipped\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_true(is_known);
	assert_int_equal(where, 0);
}

RUN_TESTS()
