/* SPDX-License-Identifier: MIT */
/*
 * The daemon from start to end: its actions, the reasons for its end, and the state afterwards.
 *
 *	configure TEXT; reload TEXT	WORLD_SETTINGS and TEXT, now, or while the daemon runs:
 *	set reload_s = 2		in this second; 0: when the thread has moved
 *	set stay_s = 5			the daemon is stopped later than this after the reload
 *	set interrupt_s = 1		SIGINT; otherwise SIGTERM when the thread has moved
 *	run = success			the daemon from start to end, with this status
 *	log ~ Stopped			what it has written
 *	crash				it is killed within a move
 */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sys/eventfd.h>
#include <sysexits.h>

#include "../support/script.h"
#include "whole_daemon_fixture.h"

#define LONG 60 /* seconds until an expected event is given up */

static struct world *world;
static struct {
	unsigned interrupt_s, reload_s, stay_s, reloaded_at;
	char reload[1000];
} life;
static struct nm_daemon other = {.runtime.directory = -1};

/* Worker 100 runs on node 0 with its memory on node 1; the memory of 101 is local. */
static int set_up(void **state)
{
	(void)state;
	(void)umask(022);
	memset(&life, 0, sizeof(life));
	world = world_new();
	world_worker(world, 100, 1);
	world_worker(world, 101, 0);
	fake_sleep(world->fake, 60000);
	return 0;
}

static int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(world->fake);
	unsigned open_events = world->perf.open_count, maps = world->perf.map_count;
	(void)state;
	world_free(world);
	assert_int_equal(open_fds, 0);
	assert_int_equal(open_events, 0);
	assert_int_equal(maps, 0);
	return 0;
}

static void reload(struct world *w)
{
	world_configure(w, life.reload);
	life.reloaded_at = w->seconds;
	raise(SIGHUP);
}

/* Notes what happens, reloads, and ends the daemon. */
static void live_on(struct world *w)
{
	const bool reloads = *life.reload && !life.reloaded_at;
	w->seen_moved |= world_moved(w, 100);
	w->seen_returned = !fake_trace(w->fake);
	if (reloads && (life.reload_s ? w->seconds == life.reload_s : w->seen_moved))
		reload(w);
	else if (w->seconds == life.interrupt_s)
		raise(SIGINT);
	else if (w->seconds > LONG ||
		 (w->seen_moved && !reloads && w->seconds >= life.reloaded_at + life.stay_s))
		raise(SIGTERM);
}

static int run_daemon(void)
{
	if (!world->each_second)
		world->each_second = live_on;
	return world_run(world);
}

/* ---- words ---- */

static char settings[1000];

static const char *settings_of(const struct step *step)
{
	snprintf(settings, sizeof(settings), WORLD_SETTINGS "%s", step_rest(step));
	return settings;
}

static int there_is(const char *name)
{
	char path[FIXTURE_PATH + 64];
	snprintf(path, sizeof(path), "%s/%s", world->root, name);
	return access(path, F_OK) == 0;
}

/* numad 200 1000: a process of this name, and its user */
WORD(numad)
{
	struct fake_thread *thread = fake_process(world->fake, U(0), 1);
	snprintf(thread->comm, sizeof(thread->comm), "numad");
	thread->uid = U(1);
}

WORD(many_groups)
{
	fake_get(world->fake, U(0))->many_groups = true;
	fake_move(world->fake, U(0), "/user.slice/user-1000.slice/session-1.scope");
}

ACTION(configure, world_configure(world, settings_of(step)))
ACTION(reload, snprintf(life.reload, sizeof(life.reload), "%s", settings_of(step)))
ACTION(file, fixture_file(world->root, step->word[0], strstr(step->text, step->word[1])))
ACTION(refuse_affinities, fake_fail(world->fake, FAKE_SET, U(0), 1000000, EPERM))
ACTION(accept, fake_calm(world->fake))
ACTION(old_kernel, world->release = "5.15.0-91-generic\n")
ACTION(balancing, world->balancing = "2\n")
ACTION(lose_runtime, setenv("RUNTIME_DIRECTORY", "/nonexistent", 1))
ACTION(share_runtime, setenv("RUNTIME_DIRECTORY", world->root, 1); chmod(world->root, 0777))
QUANTITY(other_opens, nm_runtime_open(&other.runtime))
ACTION(close_other, nm_runtime_close(&other.runtime, true))
QUANTITY(run, run_daemon())
NAMES(run, {"success", EXIT_SUCCESS}, {"failure", EXIT_FAILURE}, {"config", EX_CONFIG})
TEXT(log, world_logged(world))
TEXT(content, fixture_read(world->root, step->word[0]))
QUANTITY(there_is, there_is(step->word[0]))
QUANTITY(moved, world->seen_moved)
QUANTITY(returned, world->seen_returned)
QUANTITY(narrow, fake_trace(world->fake) != NULL)
QUANTITY(seconds, world->seconds)
QUANTITY(sets, world->fake->calls[FAKE_SET])
QUANTITY(long_statuses, world->fake->long_statuses)
QUANTITY(is_root, geteuid() == 0)
QUANTITY(says_root, strstr(world_logged(world), "Not confined by Landlock: run as root") != NULL)
KNOB(restore, world->options.restore)
KNOB(dry_run, world->options.dry_run)
KNOB(rss_kb, fake_get(world->fake, U(0))->rss_kb)
KNOB(interrupt_s, life.interrupt_s)
KNOB(reload_s, life.reload_s)
KNOB(stay_s, life.stay_s)

/* ---- a life ---- */

/* It creates no task for long. */
SCRIPT(the_daemon_moves_a_thread_and_restores_it,
       "set rss_kb 100 = 4096; run = success; moved = 1; narrow = 0; there_is moves = 0",
       "there_is lock = 0; log ~ Started: 2 nodes, 4 CPUs, source clock+faults",
       "log ~ \nMoved prog100[100/100] from CPU 0 (node 0) to node 1",
       "log ~ Stopped: all affinities restored; log !~ Affinities not restored")

/* It runs nevertheless. */
SCRIPT(a_kernel_that_is_not_tested_is_reported, "old_kernel; run = success",
       "moved = 1; log ~ Linux 5.15.0-91-generic is older than 6.1")

SCRIPT(a_dry_run_changes_nothing, "set dry_run = 1; run = success; seconds > 60; sets = 0",
       "log ~ dry run: nothing is changed; log ~ \nWould move prog100[100/100]")

/* SECURITY: confined */
SCRIPT(running_unconfined_as_root_is_logged,
       "set interrupt_s = 1; run = success; log ~ Stopped: ; keep root = is_root; says_root = root")

/* Any program can choose a name, and only root runs numad. */
SCRIPT(other_thread_movers_are_reported,
       "numad 200 1000; numad 201 0; numad 202 0; set interrupt_s = 1; run = success",
       "log ~ numad (PID 201) is running: moves the same threads",
       "log !~ numad (PID 200); log !~ numad (PID 202)")

/* SECURITY: many-groups-of-a-process */
SCRIPT(false_names_cost_little, "numad 300 1000; many_groups 300; numad 301 1000; many_groups 301",
       "set interrupt_s = 1; run = success; long_statuses = 0")

SCRIPT(tiering_shows_no_accesses, "balancing; set interrupt_s = 1; run = success",
       "log ~ kernel.numa_balancing is 2 (tiers of memory only)",
       "log !~ the kernel moves pages and threads, too")

SCRIPT(an_invalid_file_prevents_the_start,
       "configure verify: { control_percent = -1 }; run = config; seconds = 0",
       "log ~ /numa-migrd.conf:3")

/* Of other users' files it would not know whose they are. */
SCRIPT(a_start_needs_a_runtime_directory_of_its_own,
       "lose_runtime; run = failure; log ~ RUNTIME_DIRECTORY=/nonexistent does not exist",
       "share_runtime; run = failure; log ~ unusable: must belong to this user")

SCRIPT(only_one_runs, "other_opens = 0; run = failure; log ~ Another numa-migrd is running",
       "set restore = 1; run = failure; there_is lock = 1; close_other")

/* The first change narrows. */
SCRIPT(a_stop_with_unrestored_affinities_fails,
       "refuse_affinities 2; run = failure; narrow = 1; there_is moves = 1",
       "log ~ affinities not restored: 1 ", "log !~ all affinities restored",
       "set restore = 1; run = failure; there_is moves = 1",
       "log ~ 0 affinities restored, 1 failed",
       "accept; run = success; narrow = 0; there_is moves = 0; there_is lock = 0")

/* ---- reload ---- */

#define DRY "general: { dry_run = true }"

/* The daemon continues with the old one and moves the thread. */
SCRIPT(an_invalid_file_is_rejected,
       "set reload_s = 2; reload \nthreads: { policy = \"none\" m = 1 }; run = success; moved = 1",
       "log ~ /numa-migrd.conf:4; log ~ keeping previous configuration")

SCRIPT(a_valid_file_is_accepted, "set stay_s = 6; reload threads: { policy = \"none\" }",
       "run = success; moved = 1; returned = 1; log ~ Configuration reloaded: ")

SCRIPT(a_reload_to_dry_run_restores_affinities,
       "set stay_s = 21; reload " DRY "; run = success; moved = 1; returned = 1")

static int query_fd; /* an eventfd that reports an answer to a query */
static unsigned progressed;

static int world_query_fd(struct nm_platform *platform)
{
	(void)platform;
	return query_fd;
}

static void world_query_progress(struct nm_platform *platform)
{
	eventfd_t value;
	(void)platform;
	assert_int_equal(eventfd_read(query_fd, &value), 0);
	progressed++;
}

/* Once before a reload that opens the machine again, and once after. */
static void let_answers_come(struct world *w)
{
	if (w->seconds == 1 || (life.reloaded_at && w->seconds == life.reloaded_at + 2))
		assert_int_equal(eventfd_write(query_fd, 1), 0);
	else if (progressed == 1 && !life.reloaded_at)
		reload(w);
	else if (progressed == 2 || w->seconds > LONG)
		raise(SIGTERM);
}

ACTION(close_answers, close(query_fd))
QUANTITY(progressed, progressed)

WORD(let_answers_come)
{
	static struct nm_platform_ops ops;
	ops = *world->platform.ops;
	ops.query_fd = world_query_fd;
	ops.query_progress = world_query_progress;
	world->platform.ops = &ops;
	world->each_second = let_answers_come;
	query_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

SCRIPT(queries_advance_in_the_loop,
       "reload " DRY "; let_answers_come; run = success; progressed = 2; close_answers")

/* ---- after a crash ---- */

/* Within a move: the affinity is about to be restored. */
static void die(struct fake *fake)
{
	(void)fake;
	_exit(FAKE_DIED);
}

/* As with kill -9; the machine is in memory shared by both processes. */
WORD(crash)
{
	int status;
	fake_at(world->fake, FAKE_SET, 2, die);
	pid_t child = fork();
	if (child == 0) {
		(void)run_daemon();
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), FAKE_DIED);
	memset(world->fake->open, 0, sizeof(world->fake->open));
	fake_calm(world->fake);
	assert_non_null(fake_trace(world->fake));
}

SCRIPT(restore_recovers_after_a_crash,
       "crash; set restore = 1; run = success; narrow = 0; there_is moves = 0",
       "log ~ Recovered after unclean shutdown: 1 affinity restored, 0 failed")

/* With any configuration, since this is how to recover from a bad one. */
SCRIPT(restore_needs_no_configuration,
       "crash; configure rubbish; set restore = 1; run = success; narrow = 0")

SCRIPT(a_start_restores_it_too, "crash; configure threads: { policy = \"none\" }",
       "set interrupt_s = 1; run = success; narrow = 0; log ~ 1 affinity restored")

#define DAMAGED "numa-migrd-ledger 1 " BOOT "\ngive nonsense\n"

/* Of a version before 0.9. The content of that line is unknown. */
SCRIPT(damage_in_a_ledger_is_reported, "file ledger " DAMAGED "; set restore = 1; run = failure",
       "log ~ /run/numa-migrd/ledger damaged: 1 line from line 2 on",
       "content ledger.damaged = " DAMAGED)

SCRIPT(a_file_of_another_form_is_set_aside,
       "file ledger rubbish\n; file moves rubbish\n; set restore = 1; run = failure",
       "log ~ /run/numa-migrd/ledger unreadable, kept as ledger.damaged",
       "log ~ /run/numa-migrd/moves unreadable, kept as moves.damaged",
       "content ledger.damaged = rubbish\n; there_is ledger = 0; there_is moves = 0")

SCRIPT(injection_state_survives_the_stop, "file ledger rubbish\n; run = success",
       "log ~ but not those of a damaged file; log !~ Stopped: all affinities restored")

RUN_TESTS()
