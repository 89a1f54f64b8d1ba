/* SPDX-License-Identifier: MIT */
/* Threads that were released to their owner stay so over a restart of the service, and no other
 * threads. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include "fixture.h"
#include "roster_fixture.h"

#define BOOT "5f6e1a52-0000-4000-8000-2b1f5f0c9e11"

static char root[FIXTURE_PATH];
static int directory;

static int begin(void **state)
{
	fixture_make(root, sizeof(root));
	directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory < 0 ? -1 : set_up(state);
}

static int end(void **state)
{
	close(directory);
	fixture_remove(root);
	return tear_down(state);
}

static void save(void)
{
	assert_int_equal(nm_released_list_save(memory, &fake->platform, directory, BOOT), 0);
}

static int load(const char *boot_id)
{
	nm_roster_free(roster);
	nm_released_list_free(memory);
	nm_released_list_new(&memory);
	int r = nm_released_list_load(memory, &fake->platform, directory, boot_id);
	open_roster();
	run_all(1);
	return r;
}

static void restart(void)
{
	save();
	assert_int_equal(load(BOOT), 0);
}

TEST(no_file_is_written_without_released_threads)
{
	restart();
	assert_int_equal(faccessat(directory, NM_ROSTER_MEMORY_NAME, F_OK, 0), -1);
	assert_managed(100, true);
}

TEST(a_release_outlives_the_daemon)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 100), 0);
	restart();
	assert_managed(100, false);
	assert_managed(101, false);
	assert_managed(200, true);
	restart();
	assert_managed(101, false);
}

TEST(a_changed_affinity_ends_the_home)
{
	run_all(1);
	nm_roster_give_back(roster, 101, start_of(101));
	restart();
	assert_managed(100, true);
	assert_managed(101, false);
	assert_managed(102, true);
}

TEST(a_thread_id_is_not_a_process)
{
	run_all(1);
	nm_roster_give_back(roster, 100, start_of(100));
	restart();
	assert_managed(100, false);
	assert_managed(101, true);
}

TEST(a_reused_number_is_a_different_process)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	save();
	fake_kill(fake, 200);
	fake_process(fake, 200, 1);
	fake_sleep(fake, 60000);
	assert_int_equal(load(BOOT), 0);
	assert_managed(200, true);
}

TEST(marks_vanish_with_the_process)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 100), 0);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	save();
	assert_non_null(strstr(fixture_read(root, NM_ROSTER_MEMORY_NAME), "process 200 "));
	fake_kill(fake, 200);
	restart();
	save();
	assert_null(strstr(fixture_read(root, NM_ROSTER_MEMORY_NAME), "process 200 "));
	assert_non_null(strstr(fixture_read(root, NM_ROSTER_MEMORY_NAME), "process 100 "));
}

TEST(records_of_another_boot_are_dropped)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 100), 0);
	save();
	assert_int_equal(load("another"), 0);
	assert_managed(100, true);
}

TEST(damaged_lines_are_skipped_and_reported)
{
	char text[512];
	snprintf(text, sizeof(text),
		 "numa-migrd-given-back 4 " BOOT
		 "\nprocess\nundone 101 1 0 5\nthread 101 1 0 0 1\nowner 102 1 0 0\n"
		 "process %u %llu 0 0\n",
		 200, (unsigned long long)fake_get(fake, 200)->start_ticks);
	fixture_file(root, NM_ROSTER_MEMORY_NAME, text);
	assert_int_equal(load(BOOT), -EBADMSG);
	assert_managed(200, false);
	assert_managed(101, true);
	assert_managed(102, true);
	fixture_file(root, NM_ROSTER_MEMORY_NAME, "rubbish");
	assert_int_equal(load(BOOT), -EBADMSG);
}

TEST(marks_are_not_writable_by_others)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 100), 0);
	save();
	assert_int_equal(fchmodat(directory, NM_ROSTER_MEMORY_NAME, 0622, 0), 0);
	assert_int_equal(load(BOOT), -EPERM);
	assert_managed(100, true);
}

TEST(the_file_is_written_on_change)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 100), 0);
	save();
	assert_int_equal(unlinkat(directory, NM_ROSTER_MEMORY_NAME, 0), 0);
	save();
	assert_int_equal(faccessat(directory, NM_ROSTER_MEMORY_NAME, F_OK, 0), -1);
	nm_roster_give_back(roster, 200, start_of(200));
	save();
	assert_int_equal(faccessat(directory, NM_ROSTER_MEMORY_NAME, F_OK, 0), 0);
}

TEST(failed_saves_are_retried)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 100), 0);
	fixture_directory(root, NM_ROSTER_MEMORY_NAME ".new/in-the-way");
	assert_int_not_equal(nm_released_list_save(memory, &fake->platform, directory, BOOT), 0);
	char path[FIXTURE_PATH + 32];
	snprintf(path, sizeof(path), "%s/" NM_ROSTER_MEMORY_NAME ".new", root);
	fixture_remove(path);
	restart();
	assert_managed(100, false);
}

static size_t lines(void)
{
	size_t count = 0;
	for (const char *at = fixture_read(root, NM_ROSTER_MEMORY_NAME); *at; at++)
		count += *at == '\n';
	return count;
}

/* A program whose short-lived threads all pin themselves. */
TEST(exited_threads_do_not_accumulate)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	for (unsigned i = 0; i < 300; i++) {
		fake_clone(fake, 100, 300);
		run_one(100, 300, 1);
		nm_roster_give_back(roster, 300, start_of(300));
		fake_exit(fake, 300);
		drain();
		save();
		assert_true(lines() < 80);
	}
	assert_int_equal(load(BOOT), 0);
	assert_managed(200, false);
}

/* Exited threads are evicted; manual releases and running threads stay. */
TEST(running_threads_are_evicted_after_exited_ones)
{
	run_all(1);
	assert_int_equal(nm_roster_release(roster, 200), 0);
	nm_roster_give_back(roster, 101, start_of(101));
	for (unsigned i = 0; i < 5000; i++) {
		fake_clone(fake, 100, 300);
		run_one(100, 300, 1);
		nm_roster_give_back(roster, 300, start_of(300));
		fake_exit(fake, 300);
		drain();
		fake_sleep(fake, 10);
	}
	restart();
	assert_managed(200, false);
	assert_managed(101, false);
	assert_managed(102, true);
}

static int open_nothing(struct nm_platform *platform, int below, const char *path)
{
	(void)platform, (void)below, (void)path;
	return -EMFILE;
}

/* Running threads of another container that pin themselves displace none of ours. */
/* SECURITY: quota */
TEST(other_domains_do_not_displace_entries)
{
	const size_t size = 6000 * 64;
	nm_autofree char *text = malloc(size);
	size_t length = (size_t)snprintf(text, size, "numa-migrd-given-back 4 " BOOT "\n");

	assert_non_null(text);
	length += (size_t)snprintf(text + length, size - length, "thread 101 %llu 7 0\n",
				   (unsigned long long)start_of(101));
	for (unsigned i = 0; i < 5000; i++)
		length += (size_t)snprintf(text + length, size - length, "thread %u 1 8 0\n",
					   1000 + i);
	assert_true(length < size);
	fixture_file(root, NM_ROSTER_MEMORY_NAME, text);
	const struct nm_platform_ops *ops = fake->platform.ops;
	struct nm_platform_ops unreadable = *ops; /* unreadable threads count as running */
	unreadable.open_directory = open_nothing;
	fake->platform.ops = &unreadable;
	assert_int_equal(nm_released_list_load(memory, &fake->platform, directory, BOOT), 0);
	fake->platform.ops = ops;
	run_all(1);
	assert_managed(101, false);
	assert_managed(100, true);
}

RUN_TESTS()
