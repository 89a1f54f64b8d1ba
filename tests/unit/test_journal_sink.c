/* SPDX-License-Identifier: MIT */
/* The sink with a real stderr and a real socket instead of that of journald. */
#include "../support/test.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/journal.h"

static struct nm_entry entry;

/* Returns the number of lines on stderr while `emit` runs. */
static unsigned lines_of(void (*emit)(struct nm_journal *), struct nm_journal *journal, char *text,
			 size_t size)
{
	FILE *file = tmpfile();
	assert_non_null(file);
	int saved = dup(STDERR_FILENO);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	emit(journal);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	rewind(file);
	size_t length = fread(text, 1, size - 1, file);
	(void)fclose(file);
	text[length] = '\0';
	unsigned lines = 0;
	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

static void emit_at(struct nm_journal *journal, unsigned count, enum nm_message message,
		    int priority, uint64_t now_ns)
{
	nm_entry_begin(&entry, message, priority);
	nm_entry_text(&entry, "hello");
	for (unsigned i = 0; i < count; i++)
		nm_journal_emit(journal, &entry, now_ns);
}

/* Twenty per second: 20 of thirty at once pass, 0.5 s later 10, and credit is limited to 20. */
static void storm(struct nm_journal *journal)
{
	const uint64_t start = 5 * NM_NSEC_PER_SEC, half = NM_NSEC_PER_SEC / 2;
	emit_at(journal, 30, NM_MESSAGE_DECISION, LOG_INFO, start);
	emit_at(journal, 30, NM_MESSAGE_VERDICT, LOG_INFO, start + half);
	emit_at(journal, 30, NM_MESSAGE_AFFINITY, LOG_INFO, start + 200 * half);
}

/* About one domain, then about another one. */
static void storm_of_one_domain(struct nm_journal *journal)
{
	const uint64_t start = 5 * NM_NSEC_PER_SEC;
	nm_entry_begin(&entry, NM_MESSAGE_DECISION, LOG_INFO);
	nm_entry_text(&entry, "greedy");
	entry.domain = 1;
	for (unsigned i = 0; i < 100; i++)
		nm_journal_emit(journal, &entry, start);
	nm_entry_text(&entry, "other");
	entry.domain = 2;
	for (unsigned i = 0; i < 3; i++)
		nm_journal_emit(journal, &entry, start);
}

/* SECURITY: journal-flood */
TEST(test_entries_are_shared_among_domains)
{
	char text[4096];
	nm_auto(nm_journal_freep) struct nm_journal *journal = NULL;
	unsetenv("JOURNAL_STREAM");
	nm_journal_new(&journal);
	assert_in_range(lines_of(storm_of_one_domain, journal, text, sizeof(text)), 4, 19);
	const char *other = strstr(text, "other\n");
	assert_non_null(other);
	assert_string_equal(other, "other\nother\nother\n");
}

/* Busy domains write a thousand times a second for a minute, a quiet one once a second. */
static void write_beside(struct nm_journal *journal, uint64_t busy)
{
	static const struct {
		const char *text;
		enum nm_message message;
		int priority;
	} quiet[] = {{"moved", NM_MESSAGE_DECISION, LOG_INFO},
		     {"problem", NM_MESSAGE_PROBLEM, LOG_NOTICE},
		     {"restoration", NM_MESSAGE_AFFINITY, LOG_WARNING}};
	for (unsigned ms = 0; ms < 60000; ms++) {
		uint64_t now_ns = 5 * NM_NSEC_PER_SEC + ms * NM_NSEC_PER_MSEC;
		for (uint64_t domain = 1; domain <= busy; domain++) {
			nm_entry_begin(&entry, NM_MESSAGE_DECISION, LOG_INFO);
			nm_entry_text(&entry, "busy %u", (unsigned)domain);
			entry.domain = domain;
			nm_journal_emit(journal, &entry, now_ns);
		}
		for (unsigned i = 0; ms % 1000 == 999 && i < NM_ARRAY_SIZE(quiet); i++) {
			nm_entry_begin(&entry, quiet[i].message, quiet[i].priority);
			nm_entry_text(&entry, "%s", quiet[i].text);
			entry.domain = busy + 1;
			nm_journal_emit(journal, &entry, now_ns);
		}
	}
}

static void beside_one(struct nm_journal *journal)
{
	write_beside(journal, 1);
}

static void beside_two(struct nm_journal *journal)
{
	write_beside(journal, 2);
}

static void beside_eight(struct nm_journal *journal)
{
	write_beside(journal, 8);
}

static unsigned count_of(const char *text, const char *line)
{
	unsigned count = 0;
	for (const char *at = text; (at = strstr(at, line)); at++)
		count++;
	return count;
}

/* SECURITY: journal-flood */
TEST(test_a_quiet_domain_is_heard)
{
	static char text[1 << 16];
	nm_auto(nm_journal_freep) struct nm_journal *journal = NULL;
	unsetenv("JOURNAL_STREAM");
	nm_journal_new(&journal);
	(void)lines_of(beside_one, journal, text, sizeof(text));
	assert_int_equal(count_of(text, "moved\n"), 60);
	nm_journal_free(NM_TAKE(journal));
	nm_journal_new(&journal);
	(void)lines_of(beside_two, journal, text, sizeof(text));
	assert_int_equal(count_of(text, "moved\n"), 60);
	assert_int_equal(count_of(text, "problem\n"), 60);
	assert_int_equal(count_of(text, "restoration\n"), 60);
	assert_in_range(count_of(text, "busy "), 1080, 1200); /* the rest of the rate is used */
	nm_journal_free(NM_TAKE(journal));
	nm_journal_new(&journal);
	(void)lines_of(beside_eight, journal, text, sizeof(text));
	assert_int_equal(count_of(text, "moved\n"), 60);
}

/* Errors and rare kinds always pass; entries below the level are not "suppressed". */
static void beyond_the_limit(struct nm_journal *journal)
{
	const uint64_t start = 500 * NM_NSEC_PER_SEC;
	emit_at(journal, 30, NM_MESSAGE_DECISION, LOG_ERR, start);
	emit_at(journal, 30, NM_MESSAGE_SUMMARY, LOG_INFO, start);
	emit_at(journal, 30, NM_MESSAGE_DECISION, LOG_DEBUG, start);
}

/* SECURITY: journal-flood */
TEST(test_rate_limit)
{
	char text[4096];
	nm_auto(nm_journal_freep) struct nm_journal *journal = NULL;
	unsetenv("JOURNAL_STREAM");
	nm_journal_new(&journal);
	assert_int_equal(lines_of(storm, journal, text, sizeof(text)), 20 + 10 + 20);
	assert_memory_equal(text, "hello\n", 6);
	assert_int_equal(nm_journal_suppressed(journal), 10 + 20 + 10);
	assert_int_equal(nm_journal_suppressed(journal), 0);
	assert_int_equal(lines_of(beyond_the_limit, journal, text, sizeof(text)), 30 + 30);
	assert_int_equal(nm_journal_suppressed(journal), 0);
}

static void one_entry_of_each_priority(struct nm_journal *journal)
{
	for (int priority = LOG_ERR; priority <= LOG_DEBUG; priority++) {
		nm_entry_begin(&entry, NM_MESSAGE_SUMMARY, priority);
		nm_entry_text(&entry, "hello");
		nm_journal_emit(journal, &entry, NM_NSEC_PER_SEC);
	}
}

TEST(test_levels)
{
	static const unsigned lines[] = {[NM_JOURNAL_ERROR] = 1,
					 [NM_JOURNAL_NOTICE] = 3,
					 [NM_JOURNAL_DECISIONS] = 4,
					 [NM_JOURNAL_DEBUG] = 5};
	char text[256];
	nm_auto(nm_journal_freep) struct nm_journal *journal = NULL;
	unsetenv("JOURNAL_STREAM");
	nm_journal_new(&journal);
	for (unsigned i = 0; i < NM_ARRAY_SIZE(lines); i++) {
		nm_journal_configure(journal, (enum nm_journal_level)i);
		assert_int_equal(lines_of(one_entry_of_each_priority, journal, text, sizeof(text)),
				 lines[i]);
	}
}

/* A private /run with a socket instead of that of journald; returns -1 if not permitted. */
static int private_journal_socket(void)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX,
					    .sun_path = "/run/systemd/journal/socket"};
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0)
		return -1;
	if (mkdir("/run/systemd", 0755) < 0 || mkdir("/run/systemd/journal", 0755) < 0)
		return -1;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return fd;
}

/* As systemd does for a service whose stderr is the journal. */
static void set_journal_stream(void)
{
	char stream[64];
	struct stat status;
	if (fstat(STDERR_FILENO, &status) < 0)
		_exit(1);
	(void)snprintf(stream, sizeof(stream), "%lu:%lu", (unsigned long)status.st_dev,
		       (unsigned long)status.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
}

/* An entry with the maximum number of fields. */
static void full_entry(void)
{
	const struct nm_move_event event = {
		.kind = NM_MOVE_RETURNED, .tid = 1240, .pid = 1234, .decision = 17};
	nm_entry_move(&entry, &event);
	while (entry.count < NM_ENTRY_FIELDS) {
		char name[16];
		(void)snprintf(name, sizeof(name), "F%u", entry.count + 1);
		nm_entry_field(&entry, name, "%u", entry.count);
	}
}

/* In a child: returns 0 if the socket received the expected entry, 77 if no such socket is possible
 * here. */
static int journald_child(void)
{
	static const char *const expected[] = {
		"MESSAGE=Affinity of 1234/1240 restored",
		"\nPRIORITY=6\n",
		"\nSYSLOG_IDENTIFIER=numa-migrd\n",
		"\nDECISION=17\n",
		"\nF40=",
	};
	char datagram[8192];
	struct nm_journal *journal = NULL;
	int fd = private_journal_socket();
	if (fd < 0)
		return 77;
	set_journal_stream();
	nm_journal_new(&journal);
	full_entry();
	nm_journal_emit(journal, &entry, NM_NSEC_PER_SEC);
	nm_journal_free(journal);
	ssize_t length = recv(fd, datagram, sizeof(datagram) - 1, 0);
	if (length <= 0)
		return 2;
	datagram[length] = '\0';
	for (size_t i = 0; i < NM_ARRAY_SIZE(expected); i++)
		if (!strstr(datagram, expected[i]))
			return 3;
	return strstr(datagram, nm_message_id(NM_MESSAGE_AFFINITY)) ? 0 : 4;
}

/* In a child, as above: journald does not read, as when other programs keep it busy. */
static int unread_child(void)
{
	struct nm_journal *journal = NULL;
	if (private_journal_socket() < 0)
		return 77;
	set_journal_stream();
	nm_journal_new(&journal);
	(void)alarm(60); /* a call that waits for journald ends here */
	for (unsigned i = 0; i < 1000; i++) {
		nm_entry_begin(&entry, NM_MESSAGE_SUMMARY, LOG_INFO);
		nm_entry_text(&entry, "hello");
		nm_journal_emit(journal, &entry, NM_NSEC_PER_SEC);
	}
	uint64_t lost = nm_journal_suppressed(journal);
	nm_journal_free(journal);
	return lost > 0 && lost < 1000 ? 0 : 2;
}

static void expect_success(int (*run)(void))
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(run());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: no private mount namespace (needs root)\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(test_journald_gets_the_fields)
{
	expect_success(journald_child);
}

/* SECURITY: journal-unread */
TEST(test_journald_that_does_not_read_stops_nothing)
{
	expect_success(unread_child);
}

RUN_TESTS()
