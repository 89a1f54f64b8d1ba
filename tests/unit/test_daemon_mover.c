/* SPDX-License-Identifier: MIT */
/* The daemon with its mover, whose calls are answered asynchronously through the descriptor that
 * the loop polls. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>
#include <sys/eventfd.h>

#include "whole_daemon_fixture.h"

static int set_up(void **state);
static int tear_down(void **state);

#define PID 100U
#define BASE UINT64_C(0x7f0000000000) /* of the pages that the workers access */
#define LONG 600		      /* seconds until an expected event is given up */
#define VERDICT "80 of 80 pages migrated"

#define WITHOUT WORLD_SETTINGS "threads: { policy = \"none\"; };\n"
#define SETTINGS WITHOUT "pages: { policy = \"exclusivity\"; };\n"

static struct world *world;
static struct nm_platform_ops ops;
static const struct nm_platform_ops *below;
static int home[SAMPLES_S];
static unsigned moved, cancelled;
static int answers = -1; /* eventfd: the result of a call is available */
static int result;

/* ---- the machine ---- */

static ssize_t read_file(struct nm_platform *platform, int directory, const char *path,
			 char *buffer, size_t size)
{
	if (strstr(path, "/meminfo"))
		return world_give(buffer, size,
				  "Node 0 MemTotal: 8192 kB\nNode 0 MemFree: 8192 kB\n");
	return below->read_file(platform, directory, path, buffer, size);
}

static int begin(int r)
{
	result = r;
	assert_int_equal(eventfd_write(answers, 1), 0);
	return NM_CALL_BEGUN;
}

static bool pages_poll(struct nm_platform *platform, int *ret)
{
	eventfd_t count;

	(void)platform;
	if (eventfd_read(answers, &count) < 0)
		return false;
	*ret = result;
	return true;
}

static void pages_cancel(struct nm_platform *platform)
{
	eventfd_t count;

	(void)platform;
	assert_int_equal(eventfd_read(answers, &count), 0);
	cancelled++;
}

static int query_fd(struct nm_platform *platform)
{
	(void)platform;
	return answers;
}

static void query_progress(struct nm_platform *platform)
{
	(void)platform;
}

static int mappings_read(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 const struct nm_mappings_order *order, struct nm_mappings_piece *ret,
			 uint64_t *ret_held_ns)
{
	(void)platform, (void)start_ticks, (void)order;
	assert(tid == PID);
	*ret_held_ns = 0;
	ret->count = ret->complete = 1;
	ret->items[0] = (struct nm_mapping){.start = BASE,
					    .end = BASE + SAMPLES_S * 4096,
					    .page_bytes = 4096,
					    .resident = 9,
					    .only_on = 1};
	return begin(0);
}

static int where(void *context, unsigned count, const uint64_t *addresses, int *ret)
{
	(void)context;
	for (unsigned i = 0; i < count; i++)
		ret[i] = home[(addresses[i] - BASE) / 4096];
	return 0;
}

static int move(void *context, unsigned count, const uint64_t *addresses, const int *nodes,
		int *statuses, uint64_t *ret_held_ns)
{
	(void)context;
	for (unsigned i = 0; i < count; i++)
		home[(addresses[i] - BASE) / 4096] = statuses[i] = nodes[i];
	moved += count;
	*ret_held_ns = 0;
	return 0;
}

static int units_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
		      const struct nm_units_order *order, struct nm_units_moved *ret)
{
	const struct nm_page_calls calls = {.where = where, .move = move};

	(void)platform, (void)start_ticks;
	assert(tid == PID);
	return begin(nm_units_move(order, &calls, ret));
}

/* ---- tests ---- */

static void all_are_on(int node)
{
	for (unsigned i = 0; i < SAMPLES_S; i++)
		home[i] = node;
	moved = 0;
}

static void advance_one_second(struct world *w)
{
	w->workers[0].memory_node = moved < SAMPLES_S;
	if (w->seconds > LONG)
		raise(SIGTERM);
}

static void stop_when_verified(struct world *w)
{
	advance_one_second(w);
	if (strstr(world_logged(w), VERDICT))
		raise(SIGTERM);
}

TEST(it_moves_pages_between_ticks)
{
	world->each_second = stop_when_verified;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_int_equal(moved, SAMPLES_S);
	for (unsigned i = 0; i < SAMPLES_S; i++)
		assert_int_equal(home[i], 0);
	world_assert_logged(world, VERDICT);
}

static unsigned rounds, off_since;

static void reload(struct world *w, const char *text)
{
	world_configure(w, text);
	raise(SIGHUP);
}

/* A change of policy takes effect once the pages have moved, and again when they are back. */
static void come_and_go(struct world *w)
{
	advance_one_second(w);
	if (!off_since && moved >= SAMPLES_S) {
		off_since = w->seconds;
		rounds++;
		reload(w, WITHOUT);
	} else if (off_since && w->seconds > off_since + 2) {
		off_since = 0;
		all_are_on(1);
		reload(w, SETTINGS);
	}
	if (rounds == 3)
		raise(SIGTERM);
}

TEST(the_mover_follows_the_policy)
{
	world->each_second = come_and_go;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_int_equal(rounds, 3);
}

/* The service stops during a call and does not wait for it. */
static void end_in_a_call(struct world *w)
{
	advance_one_second(w);
	if (moved > 0)
		raise(SIGTERM);
}

static bool never(struct nm_platform *platform, int *ret)
{
	(void)platform, (void)ret;
	return false;
}

static int moves_without_answer(struct nm_platform *platform, pid_t pid, uint64_t start_ticks,
				const struct nm_units_order *order, struct nm_units_moved *ret)
{
	ops.pages_poll = never;
	return units_move(platform, pid, start_ticks, order, ret);
}

TEST(it_ends_without_the_answer_to_a_call)
{
	ops.units_move = moves_without_answer;
	world->each_second = end_in_a_call;
	assert_int_equal(world_run(world), EXIT_SUCCESS);
	assert_int_equal(cancelled, 1);
}

static int set_up(void **state)
{
	(void)state;
	world = world_new();
	world_configure(world, SETTINGS);
	fixture_file(world->root, "parameters", "page_cooldown_s = 0;\n");
	world_worker(world, PID, 1);
	below = world->platform.ops;
	answers = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rounds = off_since = cancelled = 0;
	all_are_on(1);
	ops = *below;
	ops.read_file = read_file;
	ops.mappings_read = mappings_read;
	ops.units_move = units_move;
	ops.pages_poll = pages_poll;
	ops.pages_cancel = pages_cancel;
	ops.query_fd = query_fd;
	ops.query_progress = query_progress;
	world->platform.ops = &ops;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	world_free(world);
	close(answers);
	return 0;
}

RUN_TESTS()
