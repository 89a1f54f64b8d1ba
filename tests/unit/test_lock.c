/* SPDX-License-Identifier: MIT */
/* The lock of the runtime directory: when another process may have it. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "fixture.h"
#include "numa-migrd/file.h"
#include "numa-migrd/platform.h"

#define START 4242
#define EXITING 0x404u
#define RUNNING 0x400u
#define NO_SIGNAL "0000000000000000"
#define KILLED "0000000000000100"

static char root[128];
static int directory, proc;
static int first, second;

/* ---- a fake /proc ---- */

static void write_stat(const char *path, char state, unsigned flags, unsigned start)
{
	char text[256];
	snprintf(text, sizeof(text),
		 "%d (numa-migrd) %c 1 100 100 0 -1 %u 1 2 3 4 5 6 7 8 20 0 1 0 %u 9 9 9 1 1 "
		 "0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		 getpid(), state, flags, start);
	fixture_file(root, path, text);
}

static void write_thread(unsigned tid, char state, unsigned flags, const char *own,
			 const char *shared)
{
	char path[128], text[256];
	snprintf(path, sizeof(path), "proc/%d/task/%u/stat", getpid(), tid);
	write_stat(path, state, flags, START);
	snprintf(path, sizeof(path), "proc/%d/task/%u/status", getpid(), tid);
	snprintf(text, sizeof(text),
		 "Name:\tnuma-migrd\nState:\t%c\nSigQ:\t1/1\nSigPnd:\t%s\nShdPnd:\t%s\n", state,
		 own, shared);
	fixture_file(root, path, text);
}

static void write_process(unsigned start)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/stat", getpid());
	write_stat(path, 'D', RUNNING, start);
	write_stat("proc/self/stat", 'D', RUNNING, START);
}

static int set_up(void **state)
{
	char path[160];
	(void)state;
	fixture_make(root, sizeof(root));
	fixture_directory(root, "run");
	fixture_directory(root, "proc/self");
	snprintf(path, sizeof(path), "%s/run", root);
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/proc", root);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	write_process(START);
	first = second = -1;
	return directory < 0 || proc < 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_closep(&first);
	nm_closep(&second);
	close(directory);
	close(proc);
	fixture_remove(root);
	return 0;
}

static void assert_file(void)
{
	char text[128];
	snprintf(text, sizeof(text), "%d %d\n", getpid(), START);
	assert_string_equal(fixture_read(root, "run/lock"), text);
}

static void take_first(void)
{
	assert_int_equal(nm_lock_take(directory, proc, &first), 0);
	assert_file();
}

static void assert_refused(void)
{
	struct stat before, after;
	assert_int_equal(fstatat(directory, "lock", &before, 0), 0);
	assert_int_equal(nm_lock_take(directory, proc, &second), -EBUSY);
	assert_int_equal(second, -1);
	assert_int_equal(fstatat(directory, "lock", &after, 0), 0);
	assert_true(before.st_ino == after.st_ino);
	assert_file();
}

/* The former holder still has its lock, on a file without a name. */
static void assert_taken_over(void)
{
	struct stat former, present;
	assert_int_equal(nm_lock_take(directory, proc, &second), 0);
	assert_int_equal(fstat(first, &former), 0);
	assert_int_equal(former.st_nlink, 0);
	assert_int_equal(fstat(second, &present), 0);
	assert_int_equal(present.st_mode & 0777, 0600);
	assert_file();
}

/* ---- permission to take over ---- */

/* SECURITY: lock */
TEST(takeover_from_a_running_holder_is_refused)
{
	take_first();
	write_thread(100, 'S', RUNNING, NO_SIGNAL, NO_SIGNAL);
	assert_refused();
	write_thread(100, 'D', RUNNING, NO_SIGNAL, NO_SIGNAL); /* asleep: it may wake up */
	assert_refused();
}

TEST(takeover_from_a_killed_sleeper_is_allowed)
{
	take_first();
	write_thread(100, 'D', RUNNING, KILLED, KILLED);
	write_thread(101, 'D', EXITING, NO_SIGNAL, KILLED);
	write_thread(102, 'Z', EXITING, NO_SIGNAL, NO_SIGNAL);
	assert_taken_over();
}

/* A process-wide fatal signal is delivered to each thread only when it kills; until then any thread
 * may run. */
/* SECURITY: lock */
TEST(a_pending_process_signal_does_not_prove_death)
{
	take_first();
	write_thread(100, 'D', RUNNING, NO_SIGNAL, KILLED);
	assert_refused();
	write_thread(100, 'D', RUNNING, "0000000000004000", KILLED); /* SIGTERM */
	assert_refused();
}

/* SECURITY: lock */
TEST(each_of_its_threads_counts)
{
	take_first();
	write_thread(100, 'Z', EXITING, NO_SIGNAL, NO_SIGNAL);
	write_thread(101, 'D', RUNNING, KILLED, KILLED);
	write_thread(102, 'R', RUNNING, NO_SIGNAL, NO_SIGNAL);
	assert_refused();
}

/* The lock proves that it lives, regardless of that number in this /proc. */
TEST(takeover_from_an_unknown_holder_is_refused)
{
	take_first();
	write_thread(100, 'D', RUNNING, KILLED, KILLED);
	write_process(START + 1);
	assert_refused();
	char path[160];
	snprintf(path, sizeof(path), "%s/proc/%d", root, getpid());
	fixture_remove(path);
	assert_refused();
}

TEST(the_file_of_an_exited_holder_is_free)
{
	take_first();
	nm_closep(&first);
	assert_int_equal(nm_lock_take(directory, proc, &second), 0);
	assert_file();
}

TEST(another_file_of_that_name_is_replaced)
{
	char path[160];
	fixture_file(root, "run/lock", "rubbish rubbish rubbish rubbish rubbish");
	take_first();
	nm_closep(&first);
	snprintf(path, sizeof(path), "%s/run/lock", root);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	take_first();
}

/* Another successor removes the file of a stuck holder, and is about to lock its own. */
/* SECURITY: lock */
TEST(one_successor_replaces_the_file)
{
	const struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[160];
	take_first();
	write_thread(100, 'D', RUNNING, KILLED, KILLED);
	snprintf(path, sizeof(path), "%s/run/lock", root);
	nm_auto(nm_closep) int other = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fcntl(other, F_OFD_SETLK, &all), 0);
	assert_refused();
	nm_closep(&other);
	other = -1;
	assert_taken_over();
}

/* ---- real processes ---- */

/* A child takes it and continues, or exits at once. */
static pid_t child_takes_directory(bool live)
{
	int ready[2];
	char byte = 1;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		int real = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		byte = nm_lock_take(directory, real, &first) == 0;
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		while (live)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

static void take_from_child(int expected)
{
	int real = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(nm_lock_take(directory, real, &second), expected);
	close(real);
}

/* It may have received its signal already but not be a zombie yet: then its end is not certain. */
static void take_from_a_dying_holder(void)
{
	int real = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = -EBUSY;
	for (int tries = 0; r == -EBUSY && tries < 1000; tries++) {
		r = nm_lock_take(directory, real, &second);
		if (r == -EBUSY)
			usleep(10000);
	}
	assert_int_equal(r, 0);
	close(real);
}

TEST(processes_hold_the_directory_while_they_live)
{
	pid_t child = child_takes_directory(true);
	take_from_child(-EBUSY);
	assert_int_equal(kill(child, SIGSTOP), 0); /* stopped is not ended */
	take_from_child(-EBUSY);
	assert_int_equal(kill(child, SIGKILL), 0);
	take_from_a_dying_holder();
	assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(a_zombie_does_not_hold_the_directory)
{
	siginfo_t ended;
	pid_t child = child_takes_directory(false);
	assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	take_from_child(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
	umask(022);
	return RUN_REGISTERED(NULL, NULL);
}
