/* SPDX-License-Identifier: MIT */
/* Policy "auto" through every stage of the daemon in simulated time: processes get homes, their
 * memory follows, and homes that slow them are reported. */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#include <math.h>

#include "dump_fixture.h"
#include "page_daemon_fixture.h"

/* The space of the model is that of process 1000. */
static void move_of_1000(struct nm_page_batch *batch)
{
	assert_true(batch->bulk);
	if (batch->pid != 1000)
		return;
	batch->moved = world.space.count - pages_on((unsigned)batch->to);
	batch->bytes = batch->moved * 4096;
	memset(world.space.home, batch->to, world.space.count);
	if (speed_after_move > 0)
		world.workers[0].speed = speed_after_move;
}

static void slow_move_of_1000(struct nm_page_batch *batch)
{
	move_of_1000(batch);
	batch->calls = 1;
	batch->call_ns = batch->moved * 1000000;
}

static void begin_auto(void)
{
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	world.balancing = -1;
	world.daemon.machine.balancing = -1;
	fake_mover.perform = move_of_1000;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

/* Each beat ends an interval. */
static void live_s(double seconds)
{
	live((unsigned)(seconds / nm_loop_wakeup_s(&world.daemon)));
}

static uint64_t status_number(const char *name)
{
	show_document(nm_command_dump(&world.daemon), "status");
	uint64_t number = (uint64_t)shown_number(0, name);
	shown_clear();
	return number;
}

static struct nm_home_state *placed_of(uint32_t pid)
{
	struct nm_home_state *home_state = nm_home_state_find(nm_placement_of(&world.daemon), pid);
	assert_non_null(home_state);
	return home_state;
}

/* Four processes of two threads, each over two nodes with its memory on one. */
static void four_mixed_up(void)
{
	for (unsigned i = 0; i < 4; i++) {
		add_worker(1000 + 100 * i, (int)(2 * i), i);
		add_worker(1000 + 100 * i, (int)((2 * i + 3) % CPUS), i);
	}
}

TEST(each_process_gets_a_node)
{
	unsigned homes = 0;
	four_mixed_up();
	begin_auto();
	live_s(6);
	for (unsigned i = 0; i < 4; i++) {
		const struct nm_home_state *home_state = placed_of(1000 + 100 * i);
		assert_in_range(home_state->home, 0, NODES - 1);
		homes |= 1U << home_state->home;
		assert_int_equal(node_of(&world.workers[2 * i]), home_state->home);
		assert_int_equal(node_of(&world.workers[2 * i + 1]), home_state->home);
	}
	assert_int_equal(homes, 0xf);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 8);
	const struct nm_entry *decision = find_entry(0, NM_MESSAGE_DECISION, "KIND", "home");
	assert_non_null(decision);
	assert_true(has_field(decision, "POLICY", "auto"));
	assert_true(has_field(decision, "THREADS", "2"));
	assert_non_null(field_of(decision, "AGE_S"));
	assert_non_null(strstr(decision->text, "; 2 threads, "));
}

TEST(everything_is_restored_at_the_end)
{
	uint64_t masks[8];
	four_mixed_up();
	for (unsigned i = 0; i < 8; i++)
		masks[i] = fake_get(world.fake, world.workers[i].tid)->mask;
	begin_auto();
	live_s(6);
	assert_true(nm_assignments_count(world.daemon.pipeline.assignments) > 0);
	assert_int_equal(nm_moves_end(world.daemon.pipeline.moves), 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(fake_get(world.fake, world.workers[i].tid)->mask, masks[i]);
}

/* Few samples suffice to see where threads run, and first touches show nothing; other sources are
 * used fully. */
TEST(sampling_needs_are_low)
{
	struct nm_source *source = world.daemon.pipeline.source;
	source->status.memory = NM_MEMORY_NONE; /* page faults */
	begin_auto();
	live_s(1);
	assert_true(source->thinned);
	world.balancing = world.daemon.machine.balancing =
		1; /* the kernel makes pages fault again */
	live_s(1);
	assert_true(source->thinned);
	world.daemon.config->pages.policy = NM_PAGES_EXCLUSIVITY;
	live_s(1);
	assert_false(source->thinned);
	world.daemon.config->pages.policy = NM_PAGES_NONE;
	world.daemon.config->threads.policy = NM_POLICY_LBMA;
	live(1);
	assert_false(source->thinned);
}

/* The reported interval is that between decisions while no process waits. */
TEST(the_configured_interval_is_reported)
{
	begin_auto();
	live_s(2);
	assert_true(nm_interval_s(&world.daemon) == 1);
	assert_true(nm_loop_wakeup_s(&world.daemon) < 0.5);
	assert_true(nm_loop_interval_continues(&world.daemon));
}

/* In its first interval it has only run for a part, which is not low demand. */
TEST(demand_of_a_new_process_is_since_its_start)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		add_worker(2000 + 100U * (uint32_t)cpu, cpu, 0);
	begin_auto();
	live_s(1);
	struct worker *first = add_worker(1000, 0, 0), *second = add_worker(1000, 0, 0);
	fake_get(world.fake, first->tid)->start_ticks = world.fake->now_ns / 10000000 + 5;
	fake_get(world.fake, second->tid)->start_ticks = world.fake->now_ns / 10000000 + 5;
	live_one();
	assert_true(placed_of(1000)->input.demand_cpus > 1.5);
}

/* Samples are about 10 ms apart, and an interval may be 100 ms long: the count of the kernel is
 * exact. */
TEST(run_time_is_read_from_the_kernel)
{
	struct worker *worker = add_worker(1000, 0, 0);
	begin_auto();
	live_s(1);
	worker->run_ns -= (uint64_t)(0.4e9 * nm_loop_wakeup_s(&world.daemon));
	live_one();
	assert_true(fabs(placed_of(1000)->input.ran_on[0] - 0.6) < 0.01);
}

static void run_beside_s(double seconds)
{
	for (double until = seconds; until > 0; until -= nm_loop_wakeup_s(&world.daemon)) {
		for (int cpu = 2; cpu < 4; cpu++) /* of node 1 */
			world.busy_ticks[cpu] += (uint64_t)(1000 * nm_loop_wakeup_s(&world.daemon));
		live_one();
	}
}

/* Momentary load of a node beside the processes uses no capacity of it; continued load does. */
TEST(momentary_load_reserves_no_capacity)
{
	add_worker(1000, 0, 0);
	begin_auto();
	live_s(1);
	const double *beside = nm_placement_of(&world.daemon)->other_cpus;
	assert_true(beside[1] < 0.1);
	run_beside_s(0.15);
	assert_true(beside[1] > 0.1 && beside[1] < 1.2);
	run_beside_s(8);
	assert_true(beside[1] > 1.8);
}

/* A forbidden operation is not retried in each interval. */
TEST(refused_moves_are_not_repeated)
{
	add_worker(1000, 0, 2);
	begin_auto();
	fake_fail(world.fake, FAKE_SET, 1, 1000, EPERM);
	unsigned before = world.fake->calls[FAKE_SET];
	live_s(20);
	assert_int_equal(placed_of(1000)->home, 2);
	assert_in_range(world.fake->calls[FAKE_SET] - before, 1, 3);
	fake_calm(world.fake);
}

/* Its two threads are near their memory, on two nodes. */
/* Lets the loop end the intervals, while all CPUs are busy. */
static void run_loop_s(double seconds)
{
	struct nm_source_status *status = &world.daemon.pipeline.source->status;
	const uint64_t end_ns = world.fake->now_ns + (uint64_t)(seconds * 1e9);
	while (world.fake->now_ns < end_ns) {
		double beat_s = nm_loop_wakeup_s(&world.daemon);
		spread_out();
		pass(beat_s);
		status->counts.samples += (uint64_t)(beat_s * CPUS * 1e9 / status->run_sample_ns);
		nm_drain(&world.daemon);
		nm_loop_examine(&world.daemon);
		if (!nm_loop_interval_continues(&world.daemon))
			assert_int_equal(nm_tick(&world.daemon), 0);
	}
}

/* Returns the number of calls that the service makes in a minute. */
static unsigned calls_in_a_minute(void)
{
	unsigned before = world.fake->calls[FAKE_OPS];
	run_loop_s(60);
	return world.fake->calls[FAKE_OPS] - before;
}

TEST(nothing_is_spent_where_nothing_can_be_gained)
{
	for (unsigned i = 0; i < CPUS; i++)
		add_worker(1000 + 100 * i, (int)i, node_of_cpu((int)i));
	world.lazy = true;
	begin_auto();
	unsigned first = calls_in_a_minute();
	run_loop_s(10);
	assert_true(world.daemon.pipeline.source->rests);
	uint64_t intervals = world.daemon.tally.intervals;
	assert_in_range(calls_in_a_minute(), 1, first * 3 / 4);
	assert_in_range(world.daemon.tally.intervals - intervals, 1, 15);
	assert_int_equal(world.daemon.tally.applied, 0);
	assert_int_equal(world.daemon.tally.decisions, 0);
}

/* One of them uses memory elsewhere from now on. */
TEST(something_to_gain_ends_the_rest)
{
	for (unsigned i = 0; i < 4; i++)
		add_worker(1000 + 100 * i, 2 * (int)i, i);
	world.lazy = true;
	begin_auto();
	live_s(70);
	assert_true(world.daemon.pipeline.source->rests);
	world.workers[0].memory = 2;
	live_s(20);
	assert_false(world.daemon.pipeline.source->rests);
}

TEST(an_idle_machine_is_left_alone)
{
	add_worker(1000, 0, 0);
	add_worker(1000, 4, 2);
	begin_auto();
	live_s(6);
	assert_int_equal(placed_of(1000)->home, -1);
	assert_int_equal(placed_of(1000)->reason, NM_PLACE_NO_GAIN);
	assert_int_equal(world.daemon.tally.applied, 0);
}

/* One thread whose memory is on node 3; all CPUs except the second one of its node are in use. */
static void begin_beside_its_full_memory(void)
{
	make_space(1024, 3);
	struct worker *user = add_user(1000, 0, 0, 1024);
	fake_get(world.fake, user->tid)->rss_kb = 4096;
	for (int cpu = 2; cpu < CPUS; cpu++)
		add_worker(1000 + 100U * (uint32_t)cpu, cpu, node_of_cpu(cpu));
	begin_auto();
}

/* It loads its data with one thread, gets a home for that, and then computes on the whole
 * machine. */
TEST(a_serial_start_does_not_bind_later_threads)
{
	add_worker(1000, 0, 1);
	begin_auto();
	live_s(8);
	assert_int_equal(placed_of(1000)->home, 1);
	for (int cpu = 1; cpu < CPUS; cpu++)
		add_worker(1000, cpu, 0);
	live_s(2);
	assert_int_equal(placed_of(1000)->home, -1);
	for (int cpu = 1; cpu < CPUS; cpu++)
		assert_int_equal(fake_get(world.fake, world.workers[cpu].tid)->mask,
				 world.fake->all);
}

/* Two threads share each CPU and are below min_run: together they use the whole machine. */
TEST(light_threads_count)
{
	for (int i = 0; i < WORKERS_MAX; i++)
		add_worker(1000, i % CPUS, 0);
	begin_auto();
	world.daemon.config->rules.min_run = 0.6;
	live_s(3);
	assert_true(placed_of(1000)->input.demand_cpus >= CPUS * 0.9);
	assert_true(placed_of(1000)->input.running >= CPUS);
	assert_true(placed_of(1000)->run_s > 0);
}

/* Eight threads share the time of two CPUs, the limit of their cgroup. */
TEST(demand_is_capped_by_the_cgroup)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		add_worker(1000, cpu, 0);
	snprintf(fake_get(world.fake, 1000)->cgroup, sizeof(fake_get(world.fake, 1000)->cgroup),
		 "/limited/one");
	world.fake->limits[world.fake->nr_limits++] =
		(struct fake_limit){.path = "/limited", .text = "200000 100000"};
	begin_auto();
	live_s(3);
	assert_true(placed_of(1000)->run_s > 0);
	assert_true(placed_of(1000)->input.demand_cpus == 2);
}

/* It reports homes, but neither refusals nor verdicts on moves that were not made. */
TEST(a_dry_run_only_reports_homes)
{
	four_mixed_up();
	world.daemon.options.dry_run = true;
	begin_auto();
	live_s(12);
	assert_in_range(placed_of(1000)->home, 0, NODES - 1);
	const struct nm_entry *decision = find_entry(0, NM_MESSAGE_DECISION, "KIND", "home");
	assert_non_null(decision);
	assert_true(has_field(decision, "RESULT", "dry-run"));
	assert_null(find_entry(0, NM_MESSAGE_VERDICT, "PID", "1000"));
	assert_int_equal(world.daemon.tally.applied + world.daemon.tally.failed, 0);
	assert_int_equal(fake_mover.submitted, 0);
}

/* Two hardware threads of one core do not count as two CPUs while there are idle cores. */
TEST(siblings_do_not_count_as_cores)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		world.daemon.pipeline.topology->cpus[cpu].core = (int)cpu / 2;
	add_worker(1000, 0, 2);
	add_worker(1000, 1, 2);
	begin_auto();
	live_s(6);
	assert_int_equal(placed_of(1000)->home, -1);
	assert_int_equal(placed_of(1000)->reason, NM_PLACE_LARGER);
}

/* There is no idle CPU on the node of its memory. */
TEST(memory_follows_the_home)
{
	begin_beside_its_full_memory();
	live_s(5);
	const struct nm_home_state *home_state = placed_of(1000);
	assert_int_equal(home_state->home, 0);
	assert_int_equal(pages_on(0), 1024);
	assert_int_equal(home_state->migration.state, NM_MIGRATION_DONE);
	assert_int_equal(status_number("pages_moved_home"), 1024);
	assert_int_equal(status_number("bytes_moved_home"), 1024 * 4096);
	assert_true(status_number("processes_placed") >= 1);
	assert_true(status_number("homes_granted") >= status_number("processes_placed"));
	live_s(6);
	const struct nm_entry *verdict = find_entry(0, NM_MESSAGE_VERDICT, "PID", "1000");
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "improved"));
}

/* A neighbour that slows all processes does not end a home. */
TEST(a_general_slowdown_is_no_verdict)
{
	begin_beside_its_full_memory();
	for (unsigned i = 0; i < 60 && (i < 2 || placed_of(1000)->home < 0); i++)
		live_one();
	assert_int_equal(placed_of(1000)->home, 0);
	for (size_t i = 0; i < world.nr_workers; i++)
		world.workers[i].speed *= 0.4;
	live_s(8);
	assert_true(placed_of(1000)->judged);
	assert_int_equal(placed_of(1000)->home, 0);
}

/* On a server that has been up for days almost all unused memory is clean page cache. */
TEST(page_cache_is_available)
{
	begin_beside_its_full_memory();
	world.fake->free_kb = 1024;
	live_s(5);
	assert_int_equal(placed_of(1000)->home, -1);
	assert_int_equal(placed_of(1000)->reason, NM_PLACE_NO_ROOM);
	world.fake->cached_kb = 4 << 20;
	live_s(5);
	assert_int_equal(placed_of(1000)->home, 0);
	assert_int_equal(pages_on(0), 1024);
}

static void live_swapping_s(double seconds)
{
	for (double until = seconds; until > 0; until -= nm_loop_wakeup_s(&world.daemon)) {
		world.swapped_out++;
		live_one();
	}
}

/* Page cache is not available while programs are swapped out for it. */
TEST(memory_is_not_migrated_to_a_swapping_node)
{
	begin_beside_its_full_memory();
	world.fake->free_kb = 1024;
	world.fake->cached_kb = 4 << 20;
	live_swapping_s(5);
	assert_int_equal(placed_of(1000)->home, -1);
	assert_int_equal(placed_of(1000)->reason, NM_PLACE_NO_ROOM);
	assert_int_equal(fake_mover.submitted, 0);
	live_s(5);
	assert_int_equal(placed_of(1000)->home, 0);
	assert_int_equal(pages_on(0), 1024);
}

static void half_of_1000_is_the_limit(struct nm_page_batch *batch)
{
	if (batch->pid != 1000)
		return;
	world.swapped_out++;
	batch->error = -ENOSPC;
	batch->moved = 512;
	batch->bytes = 512 * 4096;
	memset(world.space.home, batch->to, 512);
}

/* Interrupted migration resumes when swapping ends, and not before. */
TEST(interrupted_migration_resumes_later)
{
	begin_beside_its_full_memory();
	world.fake->free_kb = 1024;
	world.fake->cached_kb = 4 << 20;
	fake_mover.perform = half_of_1000_is_the_limit;
	for (unsigned i = 0; i < 60 && pages_on(0) == 0; i++)
		live_one();
	assert_int_equal(pages_on(0), 512);
	fake_mover.perform = move_of_1000;
	live_swapping_s(3);
	assert_int_equal(pages_on(0), 512);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DEFERRED);
	live_s(3);
	assert_int_equal(pages_on(0), 1024);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DONE);
	assert_int_equal(placed_of(1000)->migration.moved, 1024);
}

/* Shared memory does not follow a process, so no free memory is needed for it, but its location
 * counts. */
TEST(only_anonymous_memory_needs_room)
{
	begin_beside_its_full_memory();
	struct fake_thread *user = fake_get(world.fake, 1000);
	user->rss_kb = 8 << 20;
	world.fake->free_kb = 1 << 20;
	live_s(5);
	assert_int_equal(placed_of(1000)->reason, NM_PLACE_LARGER);
	user->shared_kb = user->rss_kb - 4096;
	live_s(15);
	assert_int_equal(placed_of(1000)->reason, NM_PLACE_NO_GAIN);
	user->rss_kb = 8192;
	user->shared_kb = 2048;
	live_s(15);
	assert_int_equal(placed_of(1000)->home, 0);
}

/* A process whose first thread touched all memory before the others ran has no memory where these
 * run. */
TEST(memory_is_sampled_before_a_home_is_chosen)
{
	make_space(1024, 1);
	fake_asked.numa_maps =
		"7f0000000000 default anon=1024 dirty=1024 N1=1024 kernelpagesize_kB=4\n"
		"7f8000000000 default file=/usr/lib/libc.so mapped=4096 N0=4096 "
		"kernelpagesize_kB=4\n";
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE; /* no samples of accesses */
	for (unsigned i = 0; i < 2; i++)
		fake_get(world.fake, add_worker(1000, (int)(2 * i), 1)->tid)->rss_kb = 4096;
	for (unsigned i = 0; i < 4; i++) /* the machine is in demand, and nodes 0 and 1 have room */
		add_worker(2000 + 100 * i, (int)(4 + i), 2 + i / 2);
	begin_auto();
	live_s(6);
	fake_asked.numa_maps = NULL;
	assert_int_equal(placed_of(1000)->home, 1);
}

/* A large process whose two threads run on nodes 0 and 1 of an idle machine. */
static void begin_large(uint64_t rss_kb)
{
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE; /* no samples of accesses */
	make_space(1024, 3);
	fake_get(world.fake, add_user(1000, 0, 0, 1024)->tid)->rss_kb = rss_kb;
	add_user(1000, 2, 0, 1024);
	begin_auto();
}

static const int sampled[512] = {[0 ... 99] = 0, [100 ... 511] = 3};
static const int gathered[512] = {[0 ... 511] = 3};

/* Until its pages have been queried. */
static void begin_sampled(void)
{
	fake_asked.pages = sampled;
	fake_asked.nr_pages = 512;
	fake_asked.pages_asked = 0;
	begin_large(UINT64_C(200) << 10);
	live_s(1);
}

/* Its pages are queried once to locate its memory, and once more after the migration to its
 * home. */
TEST(pages_of_a_large_process_are_asked_for)
{
	begin_sampled();
	const double *shares = nm_home_state_shares(placed_of(1000));
	assert_non_null(shares);
	assert_true(fabs(shares[3] - 412.0 / 512) < 1e-9);
	fake_asked.pages = gathered;
	live_s(20);
	assert_int_equal(fake_asked.pages_asked, 2);
	assert_int_equal(placed_of(1000)->home, 3);
	assert_int_equal(placed_of(1000)->reason, NM_PLACE_REMOTE);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DONE);
	assert_true(nm_home_state_shares(placed_of(1000))[3] == 1);
	fake_asked.pages = NULL;
}

/* Memory allocated since, while a thread ran elsewhere, is migrated too. */
TEST(memory_allocated_elsewhere_is_migrated)
{
	static const int grown[512] = {[0 ... 299] = 0, [300 ... 511] = 3};
	begin_sampled();
	fake_asked.pages = gathered;
	live_s(20);
	assert_int_equal(placed_of(1000)->home, 3);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DONE);
	assert_true(placed_of(1000)->migration.away_bytes < UINT64_C(50) << 20);
	fake_asked.pages = grown;
	uint64_t decision = placed_of(1000)->decision;
	fake_get(world.fake, 1000)->rss_kb = UINT64_C(400) << 10;
	for (unsigned s = 0; s < 20 && fake_asked.pages_asked < 3; s++)
		live_s(1);
	live_s(1); /* the answer */
	fake_asked.pages = gathered;
	live_s(10);
	assert_int_equal(fake_asked.pages_asked, 4);
	assert_true(placed_of(1000)->migration.away_bytes > UINT64_C(200) << 20);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DONE);
	assert_int_equal(placed_of(1000)->decision, decision);
	fake_asked.pages = NULL;
}

/* For example buffers shared with others. The process moves to them instead. */
TEST(memory_that_cannot_be_moved_ends_a_home)
{
	static const int elsewhere[512] = {[0 ... 511] = 1};
	begin_sampled();
	fake_asked.pages = elsewhere;
	for (unsigned s = 0; s < 20 && placed_of(1000)->home != 3; s++)
		live_s(1);
	assert_int_equal(placed_of(1000)->home, 3);
	uint64_t bytes = placed_of(1000)->migration.away_bytes;
	live_s(20);
	assert_true(bytes > 0);
	assert_true(placed_of(1000)->input.memory_stays);
	assert_int_equal(placed_of(1000)->home, 1);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_NONE);
	assert_int_equal(world.daemon.tally.homes.expired, 1);
	fake_asked.pages = NULL;
}

static int batch_error;

static void end_with_error(struct nm_page_batch *batch)
{
	batch->error = batch_error;
}

/* Pages that were not tried may still be moved, which is attempted occasionally. */
static void fail_to_migrate(int error, double seconds)
{
	static const int elsewhere[512] = {[0 ... 511] = 1};
	begin_sampled();
	fake_asked.pages = elsewhere;
	batch_error = error;
	fake_mover.perform = end_with_error;
	for (unsigned s = 0; s < 20 && placed_of(1000)->home != 3; s++)
		live_s(1);
	live_s(seconds);
	assert_true(placed_of(1000)->migration.away_bytes > 0);
	assert_false(placed_of(1000)->input.memory_stays);
	assert_int_equal(placed_of(1000)->home, 3);
	assert_int_equal(world.daemon.tally.homes.expired, 0);
	assert_in_range(fake_mover.submitted, 1, 3);
	fake_asked.pages = NULL;
}

TEST(a_killed_worker_does_not_end_homes)
{
	fail_to_migrate(-ECONNRESET, 8);
	fake_mover.perform = NULL;
	fake_asked.pages = gathered;
	live_s(20);
	fake_asked.pages = NULL;
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DONE);
	assert_int_equal(placed_of(1000)->migration.ended_bytes, placed_of(1000)->anon_bytes);
}

/* Other processes have used up the memory of its home. */
TEST(a_full_node_does_not_end_a_home)
{
	fail_to_migrate(-ENOSPC, 20);
	fake_mover.perform = NULL;
	fake_asked.pages = gathered;
	live_s(20);
	fake_asked.pages = NULL;
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DONE);
}

static void live_minutes(unsigned minutes)
{
	for (unsigned s = 0; s < 60 * minutes; s++)
		live_interval(1);
}

/* The pause doubles with each try that moves little, up to ten minutes. */
TEST(a_full_node_is_tried_less_and_less)
{
	fail_to_migrate(-ENOSPC, 1);
	live_minutes(20);
	assert_in_range(fake_mover.submitted, 6, 8);
	unsigned before = fake_mover.submitted;
	live_minutes(60);
	assert_in_range(fake_mover.submitted - before, 5, 6);
	assert_int_equal(placed_of(1000)->home, 3);
}

/* The cell of a process that remains is moved, and leaves zeros: 0 would be the number of all
 * processes. */
TEST(an_unused_cell_drops_no_process)
{
	begin_sampled();
	const struct nm_column *column = &nm_placement_of(&world.daemon)->processes;
	struct nm_home_state cell = {0};
	unsigned drops = fake_mover.drops;
	column->clear(column->context, &cell);
	assert_int_equal(fake_mover.drops, drops);
	fake_asked.pages = NULL;
}

/* A few resident pages of a large address space give no estimate. */
TEST(few_resident_pages_are_no_estimate)
{
	fake_asked.pages = sampled;
	fake_asked.nr_pages = 63;
	begin_large(UINT64_C(200) << 10);
	live_s(1);
	assert_null(nm_home_state_shares(placed_of(1000)));
	fake_asked.pages = NULL;
}

/* Four processes whose threads are mixed up get a node each; that of the first is not known to have
 * its memory elsewhere. */
static void place_unknown(uint64_t rss_kb)
{
	four_mixed_up();
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	for (unsigned i = 0; i < world.nr_workers; i++)
		fake_get(world.fake, world.workers[i].tid)->rss_kb =
			world.workers[i].tid / 100 == 10 ? rss_kb : 4096;
	fake_asked.hangs = true;
	begin_auto();
	live_s(14);
	fake_asked.hangs = false;
	assert_in_range(placed_of(1000)->home, 0, NODES - 1);
}

TEST(assumed_locations_of_small_processes_are_moved)
{
	place_unknown(UINT64_C(40) << 10);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DONE);
}

TEST(assumed_locations_move_few_pages)
{
	place_unknown(UINT64_C(80) << 10);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DEFERRED);
	assert_int_equal(placed_of(1000)->migration.moved, 0);
}

/* RssAnon does not include them, and no other node has enough free memory. */
TEST(huge_pages_of_the_pool_keep_a_process)
{
	fake_asked.numa_maps =
		"7f0000000000 default anon=1024 dirty=1024 N0=1024 kernelpagesize_kB=4\n"
		"7f4000000000 default file=/anon_hugepage\\040(deleted) huge anon=512 dirty=512 "
		"N1=512 "
		"kernelpagesize_kB=2048\n";
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	fake_get(world.fake, add_worker(1000, 0, 1)->tid)->rss_kb = 4096;
	begin_auto();
	live_s(1);
	assert_true(nm_home_state_shares(placed_of(1000))[1] > 0.99);
	assert_int_equal(nm_home_state_bytes(placed_of(1000)), (UINT64_C(1) << 30) + (4 << 20));
	live_s(6);
	fake_asked.numa_maps = NULL;
	assert_int_equal(placed_of(1000)->home, 1);
}

/* An unresponsive process is placed by where it runs. */
TEST(an_unresponsive_process_is_placed)
{
	four_mixed_up();
	for (unsigned i = 0; i < world.nr_workers; i++)
		fake_get(world.fake, world.workers[i].tid)->rss_kb = 4096;
	fake_asked.hangs = true;
	begin_auto();
	live_s(14);
	fake_asked.hangs = false;
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(placed_of(1000 + 100 * i)->home, 0, NODES - 1);
}

static void move_nothing(struct nm_page_batch *batch)
{
	(void)batch;
}

/* A process stays where it runs, because its memory is not known. That memory is bound, and found
 * elsewhere later: the process goes there. */
TEST(bound_memory_that_is_found_late_is_followed)
{
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	fake_get(world.fake, add_worker(1000, 0, 1)->tid)->rss_kb = 4096;
	begin_auto();
	fake_mover.perform = move_nothing;
	live_s(10);
	assert_int_equal(placed_of(1000)->home, -1);
	fake_asked.numa_maps =
		"7f0000000000 bind:1 anon=1024 dirty=1024 N1=1024 kernelpagesize_kB=4\n";
	for (unsigned i = 0; i < 60 && placed_of(1000)->home != 1; i++)
		live_s(1);
	fake_asked.numa_maps = NULL;
	assert_int_equal(placed_of(1000)->home, 1);
}

/* A thread at distance 21 loses 13 s per minute. */
static void make_1024_pages_cost_s(double seconds)
{
	nm_placement_of(&world.daemon)->page_cost.page_ns = seconds / 2 / 1024 * 1e9;
}

static void assert_memory_is_finally_migrated(void)
{
	live_s(30);
	assert_int_equal(placed_of(1000)->home, 0);
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DONE);
	assert_int_equal(pages_on(0), 1024);
}

/* As long as pages take longer to move than a home could save, none is assigned. */
TEST(expensive_memory_delays_a_home)
{
	begin_beside_its_full_memory();
	live_one();
	make_1024_pages_cost_s(20);
	live_s(30);
	assert_int_equal(placed_of(1000)->home, -1);
	assert_int_equal(placed_of(1000)->reason, NM_PLACE_TOO_COSTLY);
	make_1024_pages_cost_s(0.1);
	assert_memory_is_finally_migrated();
}

/* Earlier moves have taken longer than estimated. */
TEST(memory_found_expensive_is_migrated_later)
{
	begin_beside_its_full_memory();
	fake_mover.full = true;
	for (unsigned i = 0; i < 20 && (i < 2 || placed_of(1000)->home < 0); i++)
		live_one();
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_READY);
	fake_mover.full = false;
	make_1024_pages_cost_s(48);
	live_one();
	assert_int_equal(placed_of(1000)->migration.state, NM_MIGRATION_DEFERRED);
	assert_int_equal(pages_on(0), 0);
	assert_memory_is_finally_migrated();
}

/* The cost of moves is learned from those that were made. */
TEST(the_cost_of_moves_is_learned)
{
	begin_beside_its_full_memory();
	fake_mover.perform = slow_move_of_1000;
	live_s(5);
	assert_int_equal(pages_on(0), 1024);
	/* 1 ms a page, of which four times the initial estimate is believed. */
	double cost_ns = nm_placement_of(&world.daemon)->page_cost.page_ns;
	assert_true(nm_place_migration_cost_s(cost_ns, 4096) >
		    3.9 * nm_place_migration_cost_s(0, 4096));
}

/* How many of four processes that wait for migration are submitted together; page_ns: measured so
 * far. */
static unsigned handed_over(uint64_t away_bytes, double page_ns)
{
	struct nm_placement *placement = nm_placement_of(&world.daemon);
	unsigned before = fake_mover.submitted;
	assert_int_equal(placement->processes.count, 4);
	placement->page_cost.page_ns = page_ns;
	for (size_t i = 0; i < placement->processes.count; i++) {
		nm_home_state_at(placement, i)->lost_s = 1e6;
		nm_home_state_at(placement, i)->migration = (struct nm_memory_migration){0};
		nm_home_state_at(placement, i)->migration = (struct nm_memory_migration){
			.state = NM_MIGRATION_READY, .away_bytes = away_bytes, .away_distance = 20};
	}
	nm_home_migrate(&(struct nm_home_memory){.platform = &world.fake->platform,
						 .topology = world.daemon.pipeline.topology,
						 .placement = placement,
						 .mover = world.daemon.pipeline.mover},
			0);
	return fake_mover.submitted - before;
}

/* The mover always has work; more batches wait here, as they may still turn out to be too
 * expensive. */
TEST(the_mover_queue_is_kept_short)
{
	const double unknown = 0, known = 5e3;
	four_mixed_up();
	begin_auto();
	live_s(6);
	fake_mover.asleep = true;
	assert_int_equal(handed_over(100 << 20, unknown), 1);
	assert_int_equal(handed_over(8 << 20, unknown), 2);
	assert_int_equal(handed_over(1 << 20, unknown), 4);
	assert_int_equal(handed_over(1 << 30, known), 2);
	assert_int_equal(handed_over(40 << 20, known), 2);
	assert_int_equal(handed_over(20 << 20, known), 4);
	fake_mover.asleep = false;
}

/* Memory is migrated once; pages that move later are left to the kernel. */
TEST(memory_moves_once_beside_numa_balancing)
{
	begin_beside_its_full_memory();
	world.balancing = 1; /* enabled after the start */
	live_s(6);
	assert_int_equal(placed_of(1000)->home, 0);
	assert_int_equal(pages_on(0), 1024);
	unsigned submitted = fake_mover.submitted;
	memset(world.space.home, 2, 512);
	live_s(10);
	assert_int_equal(fake_mover.submitted, submitted);
	assert_int_equal(pages_on(2), 512);
}

/* It promotes hot pages and demotes cold ones, but does not move pages between ordinary nodes. */
TEST(balancing_of_tiers_brings_no_memory)
{
	begin_beside_its_full_memory();
	world.balancing = world.daemon.machine.balancing = 2;
	live_s(5);
	assert_int_equal(placed_of(1000)->home, 0);
	assert_int_equal(pages_on(0), 1024);
}

/* A verdict on a home reports, and the home stays. */
TEST(a_harmful_home_is_reported)
{
	begin_beside_its_full_memory();
	speed_after_move = 0.2;
	const struct nm_entry *verdict = NULL;
	for (unsigned i = 0; i < 60 && !verdict; i++) {
		live_one();
		verdict = find_entry(0, NM_MESSAGE_VERDICT, "PID", "1000");
	}
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "worse"));
	assert_int_equal(placed_of(1000)->home, 0);
	assert_int_equal(pages_on(0), 1024);
	assert_int_equal(status_number("verdicts_worse"), 1);
}

/* The start of a program is no baseline for its home. */
TEST(the_start_of_a_program_is_not_a_baseline)
{
	const struct nm_task_event exec = {.kind = NM_TASK_EXEC, .pid = 1000, .tid = 1000};
	begin_beside_its_full_memory();
	speed_after_move = 0.2;
	live_s(1);
	nm_roster_task_event(world.daemon.pipeline.roster, &exec, world.fake->now_ns);
	live_s(12);
	const struct nm_entry *verdict = find_entry(0, NM_MESSAGE_VERDICT, "PID", "1000");
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "unverified"));
}

RUN_TESTS()
