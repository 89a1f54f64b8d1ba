/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "say.h"

#define ELLIPSIS "\xe2\x80\xa6"
#define ELLIPSIS_SIZE (sizeof(ELLIPSIS) - 1)
#define LINE_CHARACTERS 120 /* of the text of a decision, with its number */

struct message {
	const char *id;	  /* made by systemd-id128(1) for this project */
	const char *kind; /* KIND, unless the entry's builder sets a more exact one */
};

static const struct message messages[NM_MESSAGE_MAX] = {
	[NM_MESSAGE_START] = {"346fa998615f48feac4aead752736d6c", "start"},
	[NM_MESSAGE_STOP] = {"3945bda05bd54b539c183dd35969bc00", "stop"},
	[NM_MESSAGE_RELOAD] = {"6217d2e360d6468188be1d4dc31565f1", "reload"},
	[NM_MESSAGE_RELOAD_REFUSED] = {"a4ce12bff32444a88a5ec586a77d4b10", "reload-refused"},
	[NM_MESSAGE_PROBLEM] = {"42071d58a40b46f6a1a61f16514fe6a1", "problem"},
	[NM_MESSAGE_DECISION] = {"1c29c0693ea24c54ae9c74fd50ccec96", "none"},
	[NM_MESSAGE_VERDICT] = {"332472869fa048bbbbf2ea237006ab63", "verdict"},
	[NM_MESSAGE_LEASE] = {"1240f9c0cbac47ecb6ae125d49ba3acb", "lease"},
	[NM_MESSAGE_SUMMARY] = {"d2844a983d7547bea42d4f06051815ee", "summary"},
	[NM_MESSAGE_PAUSE] = {"98fecd5e0d42477f82e9e8d422809c30", "pause"},
	[NM_MESSAGE_RESUME] = {"22b72ec2214240cd822b6ef178d4e8f1", "resume"},
	[NM_MESSAGE_COEXIST] = {"e7581175b80547d29609f3e708fd973c", "coexist"},
	[NM_MESSAGE_RESTORE] = {"601357fadd8c4357aca38b797e3cd4d9", "restore"},
	[NM_MESSAGE_PAGES] = {"e5fb6223a44b4f46ab004f271c4f9608", "pages"},
	[NM_MESSAGE_RECORD] = {"cc8108fa79a949018bc11bd0306fd8bc", "record"},
};

const char *nm_message_id(enum nm_message message)
{
	return messages[message].id;
}

static bool ends_cut(const char *buffer, size_t used)
{
	return used >= ELLIPSIS_SIZE &&
	       memcmp(buffer + used - ELLIPSIS_SIZE, ELLIPSIS, ELLIPSIS_SIZE) == 0;
}

/* Ends a full buffer in "…" without splitting a character. */
static void cut(char *buffer, size_t size)
{
	size_t at = size - 1 - ELLIPSIS_SIZE;
	while (at > 0 && ((unsigned char)buffer[at] & 0xc0) == 0x80)
		at--;
	memcpy(buffer + at, ELLIPSIS, sizeof(ELLIPSIS));
}

/* Text of other programs comes escaped; an entry stays one line even if a caller forgets to. */
static void keep_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = ' ';
}

/* Formats behind the first `used` bytes. */
static void append(char *buffer, size_t size, size_t used, const char *format, va_list arguments)
	__attribute__((format(printf, 4, 0)));
static void append(char *buffer, size_t size, size_t used, const char *format, va_list arguments)
{
	if (used > size - 1 - ELLIPSIS_SIZE && ends_cut(buffer, used))
		return;
	int length = vsnprintf(buffer + used, size - used, format, arguments);
	if (length < 0)
		buffer[used] = '\0';
	else if ((size_t)length >= size - used)
		cut(buffer, size);
	keep_one_line(buffer + used);
}

void nm_entry_begin(struct nm_entry *entry, enum nm_message message, int priority)
{
	entry->message = message;
	entry->priority = priority;
	entry->count = 0;
	entry->text[0] = '\0';
	entry->reason = 0;
	nm_entry_field(entry, "KIND", "%s", messages[message].kind);
}

void nm_entry_text(struct nm_entry *entry, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	append(entry->text, sizeof(entry->text), 0, format, arguments);
	va_end(arguments);
}

void nm_entry_say(struct nm_entry *entry, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	append(entry->text, sizeof(entry->text), strlen(entry->text), format, arguments);
	va_end(arguments);
}

void nm_entry_because(struct nm_entry *entry)
{
	entry->reason = strlen(entry->text);
}

void nm_entry_detail(struct nm_entry *entry, const char *format, ...)
{
	va_list arguments;
	nm_entry_say(entry, strlen(entry->text) == entry->reason ? ": " : "; ");
	va_start(arguments, format);
	append(entry->text, sizeof(entry->text), strlen(entry->text), format, arguments);
	va_end(arguments);
}

void nm_say_subject(struct nm_entry *entry, const char *comm, uint32_t pid, uint32_t tid)
{
	if (tid > 0)
		nm_entry_say(entry, "%s[%u/%u]", comm, pid, tid);
	else
		nm_entry_say(entry, "%s[%u]", comm, pid);
}

/* In characters: a continuation byte of UTF-8 is none. */
static size_t characters(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

/* Drops the last part of the details: false if there is none. */
static bool drop_detail(struct nm_entry *entry)
{
	if (entry->reason == 0 || !entry->text[entry->reason])
		return false;
	size_t at = strlen(entry->text) - 1;
	while (at > entry->reason && strncmp(entry->text + at, "; ", 2) != 0 &&
	       strncmp(entry->text + at, ", ", 2) != 0)
		at--;
	entry->text[at] = '\0';
	return true;
}

void nm_say_decision(struct nm_entry *entry, uint64_t decision)
{
	char number[NM_WORD_BYTES + 4];
	int length = snprintf(number, sizeof(number), " [#%lu]", (unsigned long)decision);
	while (characters(entry->text) + (size_t)length > LINE_CHARACTERS)
		if (!drop_detail(entry))
			break;
	nm_entry_say(entry, "%s", number);
}

const char *nm_verdict_kind_name(enum nm_verdict_kind kind)
{
	static const char *const names[] = {
		[NM_VERDICT_IMPROVED] = "improved",	    [NM_VERDICT_NEUTRAL] = "neutral",
		[NM_VERDICT_ROLLED_BACK] = "rolled-back",   [NM_VERDICT_CANCELLED] = "cancelled",
		[NM_VERDICT_INCONCLUSIVE] = "inconclusive",
	};
	return names[kind];
}

void nm_entry_begin_verdict(struct nm_entry *entry, uint64_t decision, enum nm_verdict_kind kind)
{
	const char *name = nm_verdict_kind_name(kind);
	nm_entry_begin(entry, NM_MESSAGE_VERDICT, LOG_INFO);
	nm_entry_field(entry, "DECISION", "%lu", (unsigned long)decision);
	nm_entry_field(entry, "VERDICT", "%s", name);
	nm_entry_say(entry, "#%lu %s: ", (unsigned long)decision,
		     kind == NM_VERDICT_ROLLED_BACK ? "rolled back" : name);
}

/* The place of the field: the one that has the name, else a new one; NULL when all are taken. */
static char *field_slot(struct nm_entry *entry, const char *name)
{
	size_t length = strlen(name);
	for (unsigned i = 0; i < entry->count; i++)
		if (strncmp(entry->fields[i], name, length) == 0 && entry->fields[i][length] == '=')
			return entry->fields[i];
	return entry->count < NM_ENTRY_FIELDS ? entry->fields[entry->count++] : NULL;
}

void nm_entry_field(struct nm_entry *entry, const char *name, const char *format, ...)
{
	char *slot = field_slot(entry, name);
	if (!slot)
		return;
	int length = snprintf(slot, sizeof(entry->fields[0]), "%s=", name);
	va_list arguments;
	va_start(arguments, format);
	append(slot, sizeof(entry->fields[0]), (size_t)length, format, arguments);
	va_end(arguments);
}

void nm_say_size(struct nm_entry *entry, uint64_t bytes)
{
	if (bytes >= 1 << 20)
		nm_entry_say(entry, "%lu MiB", (unsigned long)(bytes >> 20));
	else
		nm_entry_say(entry, "%lu KiB", (unsigned long)(bytes >> 10));
}

const char *nm_say_percent(double share, char out[static NM_WORD_BYTES])
{
	if (isfinite(share))
		(void)snprintf(out, NM_WORD_BYTES, "%.0f %%", share * 100);
	else
		(void)snprintf(out, NM_WORD_BYTES, NM_DASH);
	return out;
}

const char *nm_say_change(double change, char out[static NM_WORD_BYTES])
{
	if (isfinite(change))
		(void)snprintf(out, NM_WORD_BYTES, "%+.0f %%", change * 100);
	else
		(void)snprintf(out, NM_WORD_BYTES, NM_DASH);
	return out;
}

const char *nm_say_figure(double figure, char out[static NM_WORD_BYTES])
{
	if (isfinite(figure))
		(void)snprintf(out, NM_WORD_BYTES, "%.3g", figure);
	else
		(void)snprintf(out, NM_WORD_BYTES, NM_DASH);
	return out;
}

static bool known_node(const struct nm_entry_context *context, int node)
{
	return node >= 0 && (unsigned)node < context->topology->nr_nodes;
}

const char *nm_say_node(const struct nm_entry_context *context, int node,
			char out[static NM_WORD_BYTES])
{
	if (known_node(context, node))
		(void)snprintf(out, NM_WORD_BYTES, "node %u", context->topology->nodes[node].os_id);
	else
		(void)snprintf(out, NM_WORD_BYTES, "an unknown node");
	return out;
}

void nm_field_node(struct nm_entry *entry, const struct nm_entry_context *context, const char *name,
		   int node)
{
	if (known_node(context, node))
		nm_entry_field(entry, name, "%u", context->topology->nodes[node].os_id);
}

void nm_field_cpu(struct nm_entry *entry, const char *name, int cpu)
{
	if (cpu >= 0)
		nm_entry_field(entry, name, "%d", cpu);
}

void nm_field_permille(struct nm_entry *entry, const char *name, double share)
{
	if (isfinite(share))
		nm_entry_field(entry, name, "%.0f", share * 1000);
}

void nm_field_figure(struct nm_entry *entry, const char *name, double figure)
{
	if (isfinite(figure))
		nm_entry_field(entry, name, "%.9g", figure);
}

void nm_field_errno(struct nm_entry *entry, int error)
{
	if (error < 0)
		nm_entry_field(entry, "ERRNO", "%d", -error);
}

const char *nm_numbered(const char *name, unsigned index, char out[static NM_NAME_BYTES])
{
	if (index == 0)
		return name;
	(void)snprintf(out, NM_NAME_BYTES, "%s_%u", name, index + 1);
	return out;
}

const char *nm_decision_kind_name(enum nm_decision_kind kind)
{
	switch (kind) {
	case NM_DECISION_MIGRATE:
		return "migrate";
	case NM_DECISION_SWAP:
		return "swap";
	case NM_DECISION_ROLLBACK:
		return "rollback";
	}
	return "none";
}

const char *nm_say_error(int error)
{
	const char *words = strerrordesc_np(-error);
	return words ? words : "unknown error";
}
