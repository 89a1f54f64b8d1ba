/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* journald's CODE_FILE would be this file for every entry: the MESSAGE_ID is more informative. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "entry.h"

#define IDENTIFIER "SYSLOG_IDENTIFIER=numa-migrd"

struct nm_journal {
	bool journald;
	int most; /* the lowest priority that is written (the highest number) */
	uint64_t rate_per_s;
	double tokens; /* entries that may be written now; at most those of one second */
	uint64_t filled_ns;
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

int nm_journal_new(struct nm_journal **ret)
{
	struct nm_journal *journal = calloc(1, sizeof(*journal));
	if (!journal)
		return -ENOMEM;
	journal->journald = stderr_is_journal();
	nm_journal_configure(journal, NM_JOURNAL_DECISIONS, 20);
	journal->tokens = (double)journal->rate_per_s;
	*ret = journal;
	return 0;
}

void nm_journal_free(struct nm_journal *journal)
{
	free(journal);
}

void nm_journal_configure(struct nm_journal *journal, enum nm_journal_level level,
			  uint64_t rate_per_s)
{
	static const int most[] = {
		[NM_JOURNAL_ERROR] = LOG_ERR,
		[NM_JOURNAL_NOTICE] = LOG_NOTICE,
		[NM_JOURNAL_DECISIONS] = LOG_INFO,
		[NM_JOURNAL_DEBUG] = LOG_DEBUG,
	};
	journal->most = most[level];
	journal->rate_per_s = rate_per_s;
	if (journal->tokens > (double)rate_per_s)
		journal->tokens = (double)rate_per_s;
}

/* Only these can occur in large numbers; other entries are rare, and a summary must not be lost. */
static bool is_limited(const struct nm_entry *entry)
{
	if (entry->priority <= LOG_ERR)
		return false;
	return entry->message == NM_MESSAGE_DECISION || entry->message == NM_MESSAGE_VERDICT ||
	       entry->message == NM_MESSAGE_LEASE || entry->message == NM_MESSAGE_PROBLEM;
}

static bool take_token(struct nm_journal *journal, uint64_t now_ns)
{
	double rate = (double)journal->rate_per_s;
	if (journal->filled_ns == 0)
		journal->tokens = rate;
	else if (now_ns > journal->filled_ns)
		journal->tokens +=
			rate * (double)(now_ns - journal->filled_ns) / (double)NM_NSEC_PER_SEC;
	if (journal->tokens > rate)
		journal->tokens = rate;
	journal->filled_ns = now_ns;
	if (journal->tokens < 1)
		return false;
	journal->tokens -= 1;
	return true;
}

static struct iovec line(const char *text)
{
	return (struct iovec){.iov_base = (void *)text, .iov_len = strlen(text)};
}

static int send_to_journald(const struct nm_entry *entry)
{
	struct iovec lines[NM_ENTRY_FIELDS + 4];
	char message[sizeof("MESSAGE=") + sizeof(entry->text)];
	char id[64], priority[16];
	(void)snprintf(message, sizeof(message), "MESSAGE=%s", entry->text);
	(void)snprintf(id, sizeof(id), "MESSAGE_ID=%s", nm_message_id(entry->message));
	(void)snprintf(priority, sizeof(priority), "PRIORITY=%d", entry->priority);
	lines[0] = line(message);
	lines[1] = line(id);
	lines[2] = line(priority);
	lines[3] = line(IDENTIFIER);
	for (unsigned i = 0; i < entry->count; i++)
		lines[4 + i] = line(entry->fields[i]);
	return sd_journal_sendv(lines, (int)(4 + entry->count));
}

/* A prefix "<4>" is the priority if stderr is a stream of journald (sd-daemon(3)). */
static void write_to_stderr(const struct nm_journal *journal, const struct nm_entry *entry)
{
	if (journal->journald)
		(void)dprintf(STDERR_FILENO, "<%d>%s\n", entry->priority, entry->text);
	else
		(void)dprintf(STDERR_FILENO, "%s\n", entry->text);
}

void nm_journal_emit(struct nm_journal *journal, const struct nm_entry *entry, uint64_t now_ns)
{
	if (entry->priority > journal->most)
		return;
	if (is_limited(entry) && !take_token(journal, now_ns)) {
		journal->suppressed++;
		return;
	}
	if (!journal->journald || send_to_journald(entry) < 0)
		write_to_stderr(journal, entry);
}

uint64_t nm_journal_suppressed(struct nm_journal *journal)
{
	uint64_t suppressed = journal->suppressed;
	journal->suppressed = 0;
	return suppressed;
}
