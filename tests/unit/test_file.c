/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <signal.h>
#include <sys/resource.h>

#include "fixture.h"
#include "numa-migrd/file.h"

static char root[FIXTURE_PATH];
static int directory;

static int set_up(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(directory);
	fixture_remove(root);
	return 0;
}

TEST(a_file_is_read_whole_or_not_at_all)
{
	char text[6];
	fixture_file(root, "five", "12345");
	assert_int_equal(nm_read_text(directory, "five", text, sizeof(text)), 5);
	assert_string_equal(text, "12345");
	assert_int_equal(nm_read_text(directory, "five", text, 5), -EFBIG);
	fixture_file(root, "none", "");
	assert_int_equal(nm_read_text(directory, "none", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(nm_read_text(directory, "missing", text, sizeof(text)), -ENOENT);
	assert_int_equal(nm_read_text(directory, ".", text, sizeof(text)), -EISDIR);
}

/* A pipe returns its current content and no more at once. */
TEST(partial_reads_are_joined)
{
	char text[64];
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_DIRECT), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(nm_write_all(ends[1], "packet ", 7), 0);
	close(ends[1]);
	assert_int_equal(nm_read_all(ends[0], text, sizeof(text)), 21);
	assert_string_equal(text, "packet packet packet ");
	close(ends[0]);
}

TEST(kernel_files_are_written_where_they_are)
{
	fixture_file(root, "knob", "1");
	assert_int_equal(nm_write_text(directory, "knob", "0"), 0);
	assert_string_equal(fixture_read(root, "knob"), "0");
	assert_int_equal(nm_write_text(directory, "missing", "0"), -ENOENT);
}

TEST(a_file_is_replaced_at_once)
{
	assert_int_equal(nm_replace_own(directory, "marks", "one\n", 4), 0);
	assert_string_equal(fixture_read(root, "marks"), "one\n");
	fixture_file(root, "marks.new", "left by a death");
	assert_int_equal(nm_replace_own(directory, "marks", "two\n", 4), 0);
	assert_string_equal(fixture_read(root, "marks"), "two\n");
	assert_int_equal(faccessat(directory, "marks.new", F_OK, 0), -1);
}

/* SECURITY: full-disk */
TEST(the_old_file_stays_if_the_disk_is_full)
{
	struct rlimit old;
	assert_int_equal(nm_replace_own(directory, "marks", "one\n", 4), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	struct rlimit limit = {.rlim_cur = 3, .rlim_max = old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	int r = nm_replace_own(directory, "marks", "another\n", 8);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(r, -EFBIG);
	assert_string_equal(fixture_read(root, "marks"), "one\n");
	assert_int_equal(faccessat(directory, "marks.new", F_OK, 0), -1);
}

/* After a manual --restore the service must be able to read the remaining files. */
TEST(files_created_by_root_belong_to_the_service)
{
	struct stat status;
	if (geteuid() != 0) {
		print_message("needs root to change the owner of a directory: skipped\n");
		skip();
	}
	assert_int_equal(fchown(directory, 65534, 65533), 0);
	assert_int_equal(nm_replace_own(directory, "a", "1", 1), 0);
	assert_int_equal(fstatat(directory, "a", &status, 0), 0);
	assert_int_equal(status.st_uid, 65534);
	assert_int_equal(status.st_gid, 65533);
	assert_int_equal(status.st_mode & 07777, 0600);
}

/* SECURITY: new-files */
TEST(a_file_writable_by_others_is_rejected)
{
	fixture_file(root, "mine", "x");
	assert_int_equal(fchmodat(directory, "mine", 0600, 0), 0);
	int fd = nm_open_own(directory, "mine", O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(fchmodat(directory, "mine", 0660, 0), 0);
	assert_int_equal(nm_open_own(directory, "mine", O_RDONLY), -EPERM);
	assert_int_equal(fchmodat(directory, "mine", 0600, 0), 0);
	assert_int_equal(symlinkat("mine", directory, "link"), 0);
	assert_int_equal(nm_open_own(directory, "link", O_RDONLY), -EPERM);
	assert_int_equal(linkat(directory, "mine", directory, "second", 0), 0);
	assert_int_equal(nm_open_own(directory, "mine", O_RDONLY), -EPERM);
}

RUN_TESTS()
