/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "entry.h"

#define RATE_PER_S 20.0 /* shared: quota; entries of each kind, and those of one second */
#define IDENTIFIER "SYSLOG_IDENTIFIER=numa-migrd"

/* A limit for each: however many decisions there are, warnings arrive. */
enum kind { DECISIONS, WARNINGS, KINDS, UNLIMITED = KINDS };

struct limit {
	struct nm_quota quota; /* entries that the rate has not made up for yet */
	uint64_t repaid_ns;    /* up to this time */
};

struct nm_journal {
	int journald; /* socket, or -1: text on stderr */
	int most;     /* the lowest priority that is written (the highest number) */
	struct limit limits[KINDS];
	uint64_t suppressed;
};

/* JOURNAL_STREAM is "device:inode" of the journal's stream (systemd.exec(5)), which stderr must
 * match. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat status;
	char *end;
	if (!stream || fstat(STDERR_FILENO, &status) < 0)
		return false;
	unsigned long device = strtoul(stream, &end, 10);
	if (*end != ':' || device != status.st_dev)
		return false;
	return strtoul(end + 1, NULL, 10) == status.st_ino;
}

void nm_journal_new(struct nm_journal **ret)
{
	struct nm_journal *journal = nm_must(calloc(1, sizeof(*journal)));
	journal->journald = -1;
	if (stderr_is_journal())
		journal->journald = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	nm_journal_configure(journal, NM_JOURNAL_DECISIONS);
	for (unsigned i = 0; i < KINDS; i++)
		journal->limits[i].quota.limit = RATE_PER_S;
	*ret = journal;
}

void nm_journal_free(struct nm_journal *journal)
{
	if (journal && journal->journald >= 0)
		close(journal->journald);
	free(journal);
}

void nm_journal_configure(struct nm_journal *journal, enum nm_journal_level level)
{
	static const int most[] = {
		[NM_JOURNAL_ERROR] = LOG_ERR,
		[NM_JOURNAL_NOTICE] = LOG_NOTICE,
		[NM_JOURNAL_DECISIONS] = LOG_INFO,
		[NM_JOURNAL_DEBUG] = LOG_DEBUG,
	};
	journal->most = most[level];
}

/* Only these can occur in large numbers; other entries are rare, and a summary must not be lost. */
static enum kind kind_of(const struct nm_entry *entry)
{
	bool many = entry->message == NM_MESSAGE_DECISION || entry->message == NM_MESSAGE_VERDICT ||
		    entry->message == NM_MESSAGE_AFFINITY || entry->message == NM_MESSAGE_PROBLEM;
	if (!many || entry->priority <= LOG_ERR)
		return UNLIMITED;
	return entry->message == NM_MESSAGE_PROBLEM || entry->priority <= LOG_WARNING ? WARNINGS
										      : DECISIONS;
}

/*
 * All domains repay the rate together. Thus n busy ones owe equal parts of it, however long they
 * write, and a quiet one finds about 1/(n + 1) of it free. If each repaid at a rate of its own, two
 * would owe nothing, and take every entry as soon as it is free. An entry about no domain passes
 * while any is free.
 */
static bool take_entry(struct limit *limit, uint64_t domain, uint64_t now_ns)
{
	struct nm_quota *quota = &limit->quota;

	if (now_ns > limit->repaid_ns) {
		double passed_s = (double)(now_ns - limit->repaid_ns) / (double)NM_NSEC_PER_SEC;
		nm_quota_repay_together(quota, RATE_PER_S * passed_s);
		limit->repaid_ns = now_ns;
	}
	if (quota->used >= quota->limit || (domain && !nm_quota_permits(quota, domain)))
		return false;
	nm_quota_add(quota, domain, 1);
	return true;
}

static void add_line(struct iovec **next, const char *text)
{
	*(*next)++ = (struct iovec){.iov_base = (void *)text, .iov_len = strlen(text)};
	*(*next)++ = (struct iovec){.iov_base = "\n", .iov_len = 1};
}

/* Sends an entry in journald's native format, one line for each field, which contains no line break
 * (entry.c). sd_journal_sendv(3) would wait while journald does not read, which other programs can
 * cause. Returns 0, -EAGAIN if journald has no room, or another negative errno. */
static int send_to_journald(int journald, const struct nm_entry *entry)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX,
				      .sun_path = "/run/systemd/journal/socket"};
	struct iovec lines[2 * (NM_ENTRY_FIELDS + 4)], *next = lines;
	char message[sizeof("MESSAGE=") + sizeof(entry->text)];
	char id[64], priority[16];
	(void)snprintf(message, sizeof(message), "MESSAGE=%s", entry->text);
	(void)snprintf(id, sizeof(id), "MESSAGE_ID=%s", nm_message_id(entry->message));
	(void)snprintf(priority, sizeof(priority), "PRIORITY=%d", entry->priority);
	add_line(&next, message);
	add_line(&next, id);
	add_line(&next, priority);
	add_line(&next, IDENTIFIER);
	for (unsigned i = 0; i < entry->count; i++)
		add_line(&next, entry->fields[i]);
	struct msghdr datagram = {.msg_name = &address,
				  .msg_namelen = sizeof(address),
				  .msg_iov = lines,
				  .msg_iovlen = (size_t)(next - lines)};
	return sendmsg(journald, &datagram, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* A prefix "<4>" is the priority if stderr is a stream of journald (sd-daemon(3)). */
static void write_to_stderr(const struct nm_journal *journal, const struct nm_entry *entry)
{
	if (journal->journald >= 0)
		(void)dprintf(STDERR_FILENO, "<%d>%s\n", entry->priority, entry->text);
	else
		(void)dprintf(STDERR_FILENO, "%s\n", entry->text);
}

void nm_journal_emit(struct nm_journal *journal, const struct nm_entry *entry, uint64_t now_ns)
{
	if (entry->priority > journal->most)
		return;
	enum kind kind = kind_of(entry);
	if (kind != UNLIMITED && !take_entry(&journal->limits[kind], entry->domain, now_ns)) {
		journal->suppressed++;
		return;
	}
	int error = journal->journald < 0 ? -ENOTCONN : send_to_journald(journal->journald, entry);
	if (error == -EAGAIN)
		journal->suppressed++; /* the stream that is stderr would wait for journald, too */
	else if (error < 0)
		write_to_stderr(journal, entry);
}

uint64_t nm_journal_suppressed(struct nm_journal *journal)
{
	uint64_t suppressed = journal->suppressed;
	journal->suppressed = 0;
	return suppressed;
}
