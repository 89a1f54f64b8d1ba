/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>

#include "fixture.h"
#include "numa-migrd/ledger.h"

#define BOOT "11111111-2222-3333-4444-555555555555"
#define OTHER_BOOT "99999999-2222-3333-4444-555555555555"

static char root[128];
static int directory;
static struct nm_ledger *ledger;
static struct nm_ledger_contents contents;

static int set_up(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ledger = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_ledger_contents_clear(&contents);
	nm_ledger_free(ledger);
	close(directory);
	fixture_remove(root);
	return 0;
}

static void open_ledger(void)
{
	nm_ledger_free(ledger);
	assert_int_equal(nm_ledger_open(directory, BOOT, &ledger), 0);
}

static void read_ledger(void)
{
	nm_ledger_contents_clear(&contents);
	assert_int_equal(nm_ledger_read(directory, BOOT, &contents), 0);
}

static struct nm_ledger_entry entry_of(uint32_t tid, unsigned cpu, const char *cgroup)
{
	struct nm_ledger_entry entry = {
		.tid = tid,
		.pid = 100,
		.start_ticks = 1000 + tid,
		.given_ticks = 5000,
		.decision = UINT64_C(1) << 60,
		.session = 77,
		.uid = 1000 + tid,
		.ran_ticks = 3 * tid,
		.unrestricted = tid % 2,
		.original = hwloc_bitmap_alloc(),
		.target = hwloc_bitmap_alloc(),
		.cgroup = nm_ledger_cgroup(cgroup),
	};
	hwloc_bitmap_set_range(entry.original, 0, 1500);
	hwloc_bitmap_only(entry.target, cpu);
	return entry;
}

static void give(uint32_t tid, unsigned cpu, const char *cgroup)
{
	struct nm_ledger_entry entry = entry_of(tid, cpu, cgroup);
	assert_int_equal(nm_ledger_give(ledger, &entry), 0);
	nm_ledger_entry_clear(&entry);
}

static void assert_entry(const struct nm_ledger_entry *entry, uint32_t tid, unsigned cpu)
{
	struct nm_ledger_entry wanted = entry_of(tid, cpu, "");
	assert_int_equal(entry->tid, tid);
	assert_int_equal(entry->pid, wanted.pid);
	assert_int_equal(entry->start_ticks, wanted.start_ticks);
	assert_int_equal(entry->given_ticks, wanted.given_ticks);
	assert_int_equal(entry->decision, wanted.decision);
	assert_int_equal(entry->session, wanted.session);
	assert_int_equal(entry->uid, wanted.uid);
	assert_int_equal(entry->ran_ticks, wanted.ran_ticks);
	assert_int_equal(entry->unrestricted, wanted.unrestricted);
	assert_true(hwloc_bitmap_isequal(entry->original, wanted.original));
	assert_true(hwloc_bitmap_isequal(entry->target, wanted.target));
	nm_ledger_entry_clear(&wanted);
}

static void append_text(const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", root, NM_LEDGER_NAME);
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_round_trip(void **state)
{
	static const char *const cgroups[] = {
		"",	"/",	     "/system.slice/a.service",
		"/a b", "/a\nb",     "/100%",
		"/%41", "/\xff\x01", "/=.",
		"/ . ",
	};
	(void)state;
	open_ledger();
	for (uint32_t i = 0; i < NM_ARRAY_SIZE(cgroups); i++)
		give(10 + i, 1400 + i, cgroups[i]);
	read_ledger();
	assert_int_equal(contents.count, NM_ARRAY_SIZE(cgroups));
	assert_int_equal(contents.bad_lines, 0);
	for (uint32_t i = 0; i < contents.count; i++) {
		assert_entry(&contents.entries[i], 10 + i, 1400 + i);
		assert_int_equal(contents.entries[i].cgroup, nm_ledger_cgroup(cgroups[i]));
		assert_int_equal(contents.entries[i].ended_ticks, 0);
	}
}

static void test_cgroup(void **state)
{
	(void)state;
	assert_int_equal(nm_ledger_cgroup(NULL), 0);
	assert_int_equal(nm_ledger_cgroup(""), 0);
	assert_int_equal(nm_ledger_cgroup("/"), 0);
	assert_true(nm_ledger_cgroup("/a") != 0);
	assert_true(nm_ledger_cgroup("/a") != nm_ledger_cgroup("/b"));
}

/* Every other of N CPUs. */
static void comb(hwloc_bitmap_t mask, unsigned cpus)
{
	hwloc_bitmap_zero(mask);
	for (unsigned cpu = 1; cpu < cpus; cpu += 2)
		hwloc_bitmap_set(mask, cpu);
}

/* Any name and affinity of a process: a line has a maximum length, and a longer one is refused. */
/* SECURITY: ledger */
static void test_length_of_a_line_is_bounded(void **state)
{
	struct nm_ledger_entry entry = entry_of((1U << 22) - 1, 0, "/a");
	(void)state;
	entry.pid = entry.session = entry.uid = UINT32_MAX;
	entry.decision = entry.ran_ticks = entry.cgroup = UINT64_MAX;
	comb(entry.original, 632);
	comb(entry.target, 632);
	open_ledger();
	size_t before = strlen(fixture_read(root, NM_LEDGER_NAME));
	assert_int_equal(nm_ledger_give(ledger, &entry), 0);
	assert_in_range(strlen(fixture_read(root, NM_LEDGER_NAME)) - before, 400, 512);
	read_ledger();
	assert_int_equal(contents.count, 1);
	assert_true(hwloc_bitmap_isequal(contents.entries[0].original, entry.original));
	assert_true(hwloc_bitmap_isequal(contents.entries[0].target, entry.target));
	assert_int_equal(contents.entries[0].cgroup, UINT64_MAX);
	comb(entry.target, 700);
	assert_int_equal(nm_ledger_give(ledger, &entry), -E2BIG);
	hwloc_bitmap_set_range(entry.target, 0, -1);
	assert_int_equal(nm_ledger_give(ledger, &entry), -EINVAL);
	read_ledger();
	assert_int_equal(contents.count, 1);
	assert_int_equal(contents.bad_lines, 0);
	nm_ledger_entry_clear(&entry);
}

/* A file of 70 MiB is read, and unreadable content is set aside as a whole. */
/* SECURITY: ledger */
static void test_large_ledgers_are_read(void **state)
{
	enum { LINE = 65536, LINES = 1120 };
	struct stat status;
	char path[256];
	char *line = malloc(LINE);
	(void)state;
	memset(line, 'x', LINE);
	line[LINE - 1] = '\n';
	open_ledger();
	snprintf(path, sizeof(path), "%s/%s", root, NM_LEDGER_NAME);
	FILE *file = fopen(path, "a");
	for (unsigned i = 0; i < LINES; i++)
		assert_int_equal(fwrite(line, 1, LINE, file), LINE);
	fclose(file);
	free(line);
	give(10, 1, "/");
	read_ledger();
	assert_int_equal(contents.bad_lines, LINES);
	assert_int_equal(contents.count, 1);
	assert_int_equal(nm_ledger_keep_damaged(directory), 0);
	assert_int_equal(fstatat(directory, NM_LEDGER_DAMAGED, &status, 0), 0);
	assert_true(status.st_size > (off_t)LINE * LINES);
}

static void test_copy(void **state)
{
	struct nm_ledger_entry entry = entry_of(3, 9, "/x");
	struct nm_ledger_entry copy;
	(void)state;
	nm_ledger_entry_copy(&entry, &copy);
	nm_ledger_entry_clear(&entry);
	assert_entry(&copy, 3, 9);
	nm_ledger_entry_clear(&copy);
	assert_null(copy.target);
}

/* A restoration ends every line of the thread, and stays in the file, as inheritors of that time
 * may still run. */
static void test_return(void **state)
{
	(void)state;
	open_ledger();
	give(10, 1, "/");
	give(11, 1, "/");
	give(10, 2, "/");
	assert_int_equal(nm_ledger_return(ledger, 10, 1010, 6000), 0);
	assert_int_equal(nm_ledger_return(ledger, 11, 9999, 6000), 0); /* of another thread */
	give(10, 3, "/");
	assert_int_equal(nm_ledger_lines(ledger), 6);
	read_ledger();
	assert_int_equal(contents.count, 4);
	assert_entry(&contents.entries[0], 10, 1);
	assert_int_equal(contents.entries[0].ended_ticks, 6000);
	assert_int_equal(contents.entries[1].ended_ticks, 0);
	assert_int_equal(contents.entries[2].ended_ticks, 6000);
	assert_entry(&contents.entries[3], 10, 3);
	assert_int_equal(contents.entries[3].ended_ticks, 0);
}

static void test_return_without_time(void **state)
{
	(void)state;
	open_ledger();
	give(10, 1, "/");
	assert_int_equal(nm_ledger_return(ledger, 10, 1010, 0), 0);
	read_ledger();
	assert_int_equal(contents.entries[0].ended_ticks, UINT64_MAX);
}

static void test_missing(void **state)
{
	(void)state;
	read_ledger();
	assert_int_equal(contents.count, 0);
	assert_int_equal(nm_ledger_remove(directory), 0);
}

/* A torn last line counts as not written, and does not spoil the next one. */
static void test_torn_tail(void **state)
{
	(void)state;
	open_ledger();
	give(10, 1, "/");
	append_text("give 12 100 1012 5000 1 77 1000 3 af d0 0 0-7 2-3 ");
	read_ledger();
	assert_int_equal(contents.count, 1);
	assert_int_equal(contents.bad_lines, 0);
	open_ledger();
	give(13, 2, "/");
	read_ledger();
	assert_int_equal(contents.count, 2);
	assert_int_equal(contents.bad_lines, 0);
	assert_entry(&contents.entries[1], 13, 2);
}

/* Every prefix of a ledger yields the operations of its complete lines. */
/* SECURITY: ledger */
static void test_torn_anywhere(void **state)
{
	(void)state;
	open_ledger();
	give(10, 1, "/a b");
	give(11, 2, "/");
	assert_int_equal(nm_ledger_return(ledger, 10, 1010, 6000), 0);
	char *whole = strdup(fixture_read(root, NM_LEDGER_NAME));
	size_t size = strlen(whole);
	for (size_t length = size; length-- > 0;) {
		unsigned lines = 0;
		whole[length] = '\0';
		fixture_file(root, NM_LEDGER_NAME, whole);
		for (size_t i = 0; i < length; i++)
			lines += whole[i] == '\n';
		read_ledger();
		assert_int_equal(contents.bad_lines, 0);
		assert_int_equal(contents.count, lines < 2 ? 0 : lines == 2 ? 1 : 2);
		nm_ledger_free(ledger);
		ledger = NULL;
		assert_int_equal(nm_ledger_open(directory, BOOT, &ledger), 0);
		give(12, 3, "/");
		read_ledger();
		assert_int_equal(contents.bad_lines, 0);
		assert_true(contents.count > 0);
		assert_entry(&contents.entries[contents.count - 1], 12, 3);
	}
	free(whole);
}

static void test_damaged_lines(void **state)
{
	static const char *const lines[] = {
		"give 12 100 1012 5000 1 77 1000 3 af d0 0 0-7 2-3\n",	 /* no end */
		"give 0 100 1012 5000 1 77 1000 3 af d0 0 0-7 2-3 .\n",	 /* number 0 */
		"give 12 0 1012 5000 1 77 1000 3 af d0 0 0-7 2-3 .\n",	 /* no process */
		"give 12 100 1012 5000 1 77 1000 3 af d0 0 x 2-3 .\n",	 /* no CPU set */
		"give 12 100 1012 5000 1 77 1000 3 af d0 0 0-7 0x .\n",	 /* no CPU set */
		"give 12 100 1012 5000 1 77 1000 3 af d0 0 0-7 0x0 .\n", /* no CPU */
		"give 12 100 1012 5000 1 77 1000 3 =/ d0 0 0-7 2-3 .\n", /* no hash */
		"give 12 100 1012 5000 1 77 1000 3 af d0 0 0-7 2-3 x\n",
		"return 12 1012\n",
		"return 12 1012 6000\n",
		"\n",
		"take 12\n",
		"give\n",
	};
	(void)state;
	open_ledger();
	for (size_t i = 0; i < NM_ARRAY_SIZE(lines); i++)
		append_text(lines[i]);
	give(13, 2, "/");
	read_ledger();
	assert_int_equal(contents.bad_lines, NM_ARRAY_SIZE(lines));
	assert_int_equal(contents.first_bad_line, 2);
	assert_int_equal(contents.count, 1);
	assert_entry(&contents.entries[0], 13, 2);
}

/* The text after a NUL byte is read too. */
static void test_nul_byte(void **state)
{
	char path[256];
	(void)state;
	open_ledger();
	snprintf(path, sizeof(path), "%s/%s", root, NM_LEDGER_NAME);
	FILE *file = fopen(path, "a");
	assert_int_equal(fwrite("give\0 12\n", 1, 9, file), 9);
	fclose(file);
	give(13, 2, "/");
	read_ledger();
	assert_int_equal(contents.bad_lines, 1);
	assert_int_equal(contents.count, 1);
}

static void test_other_boot(void **state)
{
	(void)state;
	open_ledger();
	give(10, 1, "/");
	assert_int_equal(nm_ledger_read(directory, OTHER_BOOT, &contents), 0);
	assert_int_equal(contents.count, 0);
	nm_ledger_contents_clear(&contents);
	/* Lines written after a reboot are not lost behind the old header. */
	nm_ledger_free(ledger);
	ledger = NULL;
	assert_int_equal(nm_ledger_open(directory, OTHER_BOOT, &ledger), 0);
	give(11, 2, "/");
	assert_int_equal(nm_ledger_read(directory, OTHER_BOOT, &contents), 0);
	assert_int_equal(contents.count, 1);
	assert_entry(&contents.entries[0], 11, 2);
}

static void test_no_ledger(void **state)
{
	(void)state;
	fixture_file(root, NM_LEDGER_NAME, "something else\nof two lines\n");
	assert_int_equal(nm_ledger_read(directory, BOOT, &contents), -EBADMSG);
	assert_int_equal(nm_ledger_open(directory, BOOT, &ledger), -EBADMSG);
	assert_null(ledger);
}

static void test_compaction(void **state)
{
	const struct nm_ledger_entry *kept[3];
	struct nm_ledger_entry entries[3];
	(void)state;
	open_ledger();
	for (uint32_t i = 0; i < 50; i++) {
		give(10, 1, "/");
		assert_int_equal(nm_ledger_return(ledger, 10, 1010, 6000), 0);
	}
	entries[0] = entry_of(12, 3, "/");
	entries[1] = entry_of(10, 1, "/");
	entries[1].ended_ticks = 6000;
	entries[2] = entry_of(10, 2, "/");
	for (size_t i = 0; i < 3; i++)
		kept[i] = &entries[i];
	assert_int_equal(nm_ledger_lines(ledger), 100);
	assert_int_equal(nm_ledger_compact(ledger, kept, 3), 0);
	assert_int_equal(nm_ledger_lines(ledger), 3);
	give(14, 5, "/");
	read_ledger();
	assert_int_equal(contents.count, 4);
	assert_entry(&contents.entries[0], 10, 1);
	assert_int_equal(contents.entries[0].ended_ticks, 6000);
	assert_entry(&contents.entries[1], 12, 3);
	assert_entry(&contents.entries[2], 10, 2);
	assert_int_equal(contents.entries[2].ended_ticks, 0);
	assert_entry(&contents.entries[3], 14, 5);
	assert_int_equal(faccessat(directory, NM_LEDGER_NAME ".new", F_OK, 0), -1);
	for (size_t i = 0; i < 3; i++)
		nm_ledger_entry_clear(&entries[i]);
}

/* Leftovers of an interrupted compaction do not interfere; entries that cannot be replaced stay. */
static void test_compaction_leftovers(void **state)
{
	(void)state;
	open_ledger();
	give(10, 1, "/");
	fixture_file(root, NM_LEDGER_NAME ".new", "half");
	assert_int_equal(nm_ledger_compact(ledger, NULL, 0), 0);
	give(11, 1, "/");
	fixture_directory(root, NM_LEDGER_NAME ".new");
	assert_true(nm_ledger_compact(ledger, NULL, 0) < 0);
	give(12, 1, "/");
	read_ledger();
	assert_int_equal(contents.count, 2);
}

/* ---- refusals ---- */

static void assert_refused(void)
{
	assert_int_equal(nm_ledger_open(directory, BOOT, &ledger), -EPERM);
	assert_int_equal(nm_ledger_read(directory, BOOT, &contents), -EPERM);
}

static void test_link(void **state)
{
	(void)state;
	fixture_file(root, "elsewhere", "");
	assert_int_equal(symlinkat("elsewhere", directory, NM_LEDGER_NAME), 0);
	assert_refused();
	assert_string_equal(fixture_read(root, "elsewhere"), "");
}

/* SECURITY: runtime-directory */
static void test_second_name(void **state)
{
	(void)state;
	open_ledger();
	nm_ledger_free(ledger);
	ledger = NULL;
	assert_int_equal(linkat(directory, NM_LEDGER_NAME, directory, "second", 0), 0);
	assert_refused();
}

static void test_written_by_others(void **state)
{
	(void)state;
	open_ledger();
	nm_ledger_free(ledger);
	ledger = NULL;
	assert_int_equal(fchmodat(directory, NM_LEDGER_NAME, 0620, 0), 0);
	assert_refused();
	assert_int_equal(fchmodat(directory, NM_LEDGER_NAME, 0602, 0), 0);
	assert_refused();
}

/* SECURITY: runtime-directory */
static void test_fifo(void **state)
{
	(void)state;
	assert_int_equal(mkfifoat(directory, NM_LEDGER_NAME, 0600), 0);
	assert_refused();
}

static void test_ledger_of_another_user(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("needs root to change the owner of a file: skipped\n");
		skip();
	}
	open_ledger();
	nm_ledger_free(ledger);
	ledger = NULL;
	assert_int_equal(fchownat(directory, NM_LEDGER_NAME, 12345, 0, 0), 0);
	assert_refused();
	/* Root replays the file that the user of the service wrote into its directory. */
	assert_int_equal(fchown(directory, 12345, (gid_t)-1), 0);
	open_ledger();
	read_ledger();
}

static void test_mode(void **state)
{
	struct stat status;
	(void)state;
	umask(0);
	open_ledger();
	assert_int_equal(fstatat(directory, NM_LEDGER_NAME, &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
}

/* A line that does not fit is not written at all, and a later one that fits is. */
/* SECURITY: full-disk */
static void test_full_disk(void **state)
{
	struct rlimit limit;
	struct rlimit old;
	struct nm_ledger_entry entry = entry_of(11, 1, "/a/long/enough/path");
	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	open_ledger();
	give(10, 1, "/");
	size_t size = strlen(fixture_read(root, NM_LEDGER_NAME));
	for (size_t room = 0; room < 40; room += 13) {
		limit = (struct rlimit){.rlim_cur = size + room, .rlim_max = old.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_int_equal(nm_ledger_give(ledger, &entry), -EFBIG);
		assert_int_equal(strlen(fixture_read(root, NM_LEDGER_NAME)), size);
	}
	const struct nm_ledger_entry *kept[] = {&entry, &entry, &entry, &entry};
	assert_int_equal(nm_ledger_compact(ledger, kept, 4), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(nm_ledger_lines(ledger), 1);
	give(12, 2, "/");
	read_ledger();
	assert_int_equal(contents.count, 2);
	assert_int_equal(contents.bad_lines, 0);
	assert_entry(&contents.entries[1], 12, 2);
	nm_ledger_entry_clear(&entry);
}

static void test_remove(void **state)
{
	(void)state;
	open_ledger();
	assert_int_equal(nm_ledger_remove(directory), 0);
	assert_int_equal(faccessat(directory, NM_LEDGER_NAME, F_OK, 0), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),
		TEST(test_cgroup),
		TEST(test_length_of_a_line_is_bounded),
		TEST(test_large_ledgers_are_read),
		TEST(test_copy),
		TEST(test_return),
		TEST(test_return_without_time),
		TEST(test_missing),
		TEST(test_torn_tail),
		TEST(test_torn_anywhere),
		TEST(test_damaged_lines),
		TEST(test_nul_byte),
		TEST(test_other_boot),
		TEST(test_no_ledger),
		TEST(test_compaction),
		TEST(test_compaction_leftovers),
		TEST(test_link),
		TEST(test_second_name),
		TEST(test_written_by_others),
		TEST(test_fifo),
		TEST(test_ledger_of_another_user),
		TEST(test_mode),
		TEST(test_full_disk),
		TEST(test_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
