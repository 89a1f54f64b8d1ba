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

#define RATE_PER_S 20.0 /* of each kind */
#define IDENTIFIER "SYSLOG_IDENTIFIER=numa-migrd"

/* A limit for each: however many decisions there are, warnings arrive. */
enum kind { DECISIONS, WARNINGS, KINDS, UNLIMITED = KINDS };

struct limit {
	double tokens; /* entries that may be written now; at most those of one second */
	uint64_t filled_ns;
	struct nm_debts used; /* entries about each domain that are not made up for yet */
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
		journal->limits[i].tokens = RATE_PER_S;
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

/* A domain may take one more if it owes fewer than are left. It repays at half of the rate: what
 * it took in the last second would otherwise not count when the next one is shared out. */
static bool take_token(struct limit *limit, uint64_t domain, uint64_t now_ns)
{
	if (now_ns > limit->filled_ns) {
		double more =
			RATE_PER_S * (double)(now_ns - limit->filled_ns) / (double)NM_NSEC_PER_SEC;
		limit->tokens += more;
		nm_debts_repay(&limit->used, more / 2);
		limit->filled_ns = now_ns;
	}
	if (limit->tokens > RATE_PER_S)
		limit->tokens = RATE_PER_S;
	if (limit->tokens < 1 || (domain && nm_debts_of(&limit->used, domain) >= limit->tokens))
		return false;
	limit->tokens -= 1;
	if (domain)
		nm_debts_add(&limit->used, domain, 1, RATE_PER_S);
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
	if (kind != UNLIMITED && !take_token(&journal->limits[kind], entry->domain, now_ns)) {
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
