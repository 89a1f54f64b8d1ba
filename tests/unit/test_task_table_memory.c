/* SPDX-License-Identifier: MIT */
/* Threads that were released to their owner stay so over a restart of the service, and no other
 * threads. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include <sched.h>

#include "fixture.h"
#include "task_table_words.h"

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

static int save(void)
{
	return nm_released_list_save(memory, &fake->platform, directory, BOOT);
}

/* As a new daemon does. */
static int load(const char *boot_id)
{
	nm_task_table_free(tasks);
	nm_released_list_free(memory);
	nm_released_list_new(&memory);
	int r = nm_released_list_load(memory, &fake->platform, directory, boot_id);
	open_tasks();
	run_all(1);
	return r;
}

WORD(restart)
{
	assert_int_equal(save(), 0);
	assert_int_equal(load(BOOT), 0);
}

/* write TEXT, in which "|" ends a line, and "%" is the start time of process 200 */
WORD(write)
{
	char text[512] = "";
	for (const char *at = step_rest(step); *at; at++) {
		size_t used = strlen(text);
		if (*at == '%')
			snprintf(text + used, sizeof(text) - used, "%" PRIu64, start_of(200));
		else
			snprintf(text + used, sizeof(text) - used, "%c", *at == '|' ? '\n' : *at);
	}
	fixture_file(root, NM_RELEASED_NAME, text);
}

static bool file_has(uint32_t pid)
{
	char words[32];
	snprintf(words, sizeof(words), "process %u ", pid);
	return strstr(fixture_read(root, NM_RELEASED_NAME), words) != NULL;
}

static size_t lines(void)
{
	size_t count = 0;
	for (const char *at = fixture_read(root, NM_RELEASED_NAME); *at; at++)
		count += *at == '\n';
	return count;
}

QUANTITY(save, save())
QUANTITY(load, load(BOOT))
QUANTITY(load_of_another_boot, load("another"))
QUANTITY(has_file, faccessat(directory, NM_RELEASED_NAME, F_OK, 0) == 0)
QUANTITY(file_has, file_has(U(0)))
ACTION(make_writable, assert_int_equal(fchmodat(directory, NM_RELEASED_NAME, 0622, 0), 0))
ACTION(unlink_file, assert_int_equal(unlinkat(directory, NM_RELEASED_NAME, 0), 0))
ACTION(obstruct, fixture_directory(root, NM_RELEASED_NAME ".new/in-the-way"))

SCRIPT(no_file_is_written_without_released_threads, "restart; has_file = 0; managed 100")

SCRIPT(a_release_outlives_the_daemon,
       "run 1; release 100 = 0; restart; unmanaged 100 101; managed 200; restart; unmanaged 101")

SCRIPT(a_changed_affinity_ends_the_home,
       "run 1; give_back 101; restart; managed 100 102; unmanaged 101")

SCRIPT(a_thread_id_is_not_a_process, "run 1; give_back 100; restart; unmanaged 100; managed 101")

SCRIPT(a_reused_number_is_a_different_process,
       "run 1; release 200 = 0; save = 0; kill 200; process 200; sleep_ms 60000; load = 0",
       "managed 200")

SCRIPT(marks_vanish_with_the_process,
       "run 1; release 100 = 0; release 200 = 0; save = 0; file_has 200 = 1; kill 200; restart",
       "save = 0; file_has 200 = 0; file_has 100 = 1")

SCRIPT(records_of_another_boot_are_dropped,
       "run 1; release 100 = 0; save = 0; load_of_another_boot = 0; managed 100")

SCRIPT(damaged_lines_are_skipped_and_reported,
       "write numa-migrd-given-back 4 " BOOT "|process|undone 101 1 0 5|thread 101 1 0 0 1|"
       "owner 102 1 0 0|process 200 % 0 0|; load = EBADMSG; unmanaged 200; managed 101 102",
       "write rubbish; load = EBADMSG")

SCRIPT(marks_are_not_writable_by_others,
       "run 1; release 100 = 0; save = 0; make_writable; load = EPERM; managed 100")

SCRIPT(the_file_is_written_on_change,
       "run 1; release 100 = 0; save = 0; unlink_file; save = 0; has_file = 0; give_back 200",
       "save = 0; has_file = 1")

WORD(clear_way)
{
	char path[FIXTURE_PATH + 32];
	snprintf(path, sizeof(path), "%s/" NM_RELEASED_NAME ".new", root);
	fixture_remove(path);
}

SCRIPT(failed_saves_are_retried,
       "run 1; release 100 = 0; obstruct; save != 0; clear_way; restart; unmanaged 100")

/* A thread of process 100 pins itself, and exits. */
WORD(short_thread)
{
	fake_clone(fake, 100, 300);
	run_one(100, 300, 1);
	nm_tasks_give_back(tasks, 300, start_of(300));
	fake_exit(fake, 300);
	drain();
	fake_sleep(fake, 10);
}

QUANTITY(lines, lines())

SCRIPT(exited_threads_do_not_accumulate, "run 1; release 200 = 0",
       "each 300: short_thread; save = 0; lines < 80", "load = 0; unmanaged 200")

/* Exited threads are evicted; manual releases and running threads stay. */
SCRIPT(running_threads_are_evicted_after_exited_ones, "run 1; release 200 = 0; give_back 101",
       "each 5000: short_thread", "restart; unmanaged 200 101; managed 102")

static int open_nothing(struct nm_platform *platform, int below, const char *path)
{
	(void)platform, (void)below, (void)path;
	return -EMFILE;
}

/* Running threads of another container that pin themselves displace none of ours. Unreadable
 * threads count as running. */
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
	fixture_file(root, NM_RELEASED_NAME, text);
	const struct nm_platform_ops *ops = fake->platform.ops;
	struct nm_platform_ops unreadable = *ops;
	unreadable.open_directory = open_nothing;
	fake->platform.ops = &unreadable;
	assert_int_equal(nm_released_list_load(memory, &fake->platform, directory, BOOT), 0);
	fake->platform.ops = ops;
	run_script((const char *const[]){"run 1; unmanaged 101; managed 100", NULL});
}

RUN_TESTS()
