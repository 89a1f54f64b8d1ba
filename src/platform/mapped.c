// SPDX-License-Identifier: MIT
/* Parses lines of /proc/PID/maps and numa_maps into struct nm_mapped. */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/proc.h"
#include "page_jobs.h"
#include "platform/maps.h"

#define KIB 1024U

/* Parses a hexadecimal number that is followed by `end`; returns the text after that, or NULL.
 * strtoull() alone would accept signs, spaces and 0x. */
static const char *parse_address(const char *text, char end, uint64_t *ret)
{
	char *after;

	if (!isxdigit((unsigned char)text[0]) || (text[0] == '0' && text[1] == 'x'))
		return NULL;
	errno = 0;
	uint64_t value = strtoull(text, &after, 16);
	if (errno != 0 || *after != end)
		return NULL;
	*ret = value;
	return after + 1;
}

static const char *next_word(const char *word)
{
	word = strchr(word, ' ');
	return word ? word + strspn(word, " ") : NULL;
}

/* "start-end perms offset device inode  path" */
int nm_mapped_parse_extent(const char *line, struct nm_mapped *ret)
{
	struct nm_mapped mapped = {0};

	const char *mode = parse_address(line, '-', &mapped.start);
	mode = mode ? parse_address(mode, ' ', &mapped.end) : NULL;
	if (!mode || mapped.end <= mapped.start || strcspn(mode, " ") != 4)
		return -EINVAL;
	const char *word = mode;
	for (unsigned i = 0; word && i < 3; i++)
		word = next_word(word);
	if (!word || !isdigit((unsigned char)*word))
		return -EINVAL;
	mapped.shared = mode[3] != 'p';
	mapped.file = strtoull(word, NULL, 10) != 0;
	*ret = mapped;
	return 0;
}

/* The kernel's names, some of which contain a space. A longer name precedes the names that it
 * begins with. */
static const struct {
	const char *word;
	enum nm_memory_policy policy;
} policies[] = {
	{"default", NM_MEMORY_DEFAULT},
	{"local", NM_MEMORY_LOCAL},
	{"prefer (many)", NM_MEMORY_PREFERRED},
	{"prefer", NM_MEMORY_PREFERRED},
	{"bind", NM_MEMORY_BIND},
	{"weighted interleave", NM_MEMORY_INTERLEAVE},
	{"interleave", NM_MEMORY_INTERLEAVE},
};

static bool ends_word(char c)
{
	return c == '\0' || c == '\n' || c == ' ' || c == ':' || c == '=';
}

static enum nm_memory_policy parse_policy(const char *text)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies); i++) {
		size_t length = strlen(policies[i].word);
		if (strncmp(text, policies[i].word, length) == 0 && ends_word(text[length]))
			return policies[i].policy;
	}
	return NM_MEMORY_OTHER;
}

/* Parses the number in "name=number" if the word has this form; a word ends at a space. */
static bool word_value(const char *word, const char *name, uint64_t *ret)
{
	size_t length = strlen(name);
	char *after;

	if (strncmp(word, name, length) != 0 || word[length] != '=' ||
	    !isdigit((unsigned char)word[length + 1]))
		return false;
	errno = 0;
	*ret = strtoull(word + length + 1, &after, 10);
	return errno == 0 && ends_word(*after);
}

static bool is_word(const char *word, const char *wanted)
{
	size_t length = strlen(wanted);

	return strncmp(word, wanted, length) == 0 && ends_word(word[length]);
}

static bool begins(const char *word, const char *start)
{
	return strncmp(word, start, strlen(start)) == 0;
}

/* Parses the number of pages on a node: "N3=12". */
static bool is_of_node(const char *word, unsigned *ret_node, uint64_t *ret_pages)
{
	char *after;

	if (word[0] != 'N' || !isdigit((unsigned char)word[1]))
		return false;
	errno = 0;
	unsigned long node = strtoul(word + 1, &after, 10);
	if (*after != '=' || !isdigit((unsigned char)after[1]) || node > INT_MAX)
		return false;
	*ret_node = (unsigned)node;
	*ret_pages = strtoull(after + 1, &after, 10);
	return errno == 0 && ends_word(*after);
}

static void take_node(struct nm_mapped *mapped, unsigned node, uint64_t pages)
{
	if (pages == 0 || pages > UINT64_MAX - mapped->resident)
		return;
	mapped->only_on = mapped->resident == 0 ? (int)node : -1;
	mapped->resident += pages;
}

static void take_word(struct nm_mapped *mapped, const char *word)
{
	uint64_t value;
	unsigned node;

	if (is_of_node(word, &node, &value))
		take_node(mapped, node, value);
	else if (begins(word, "file="))
		mapped->file = true;
	else if (is_word(word, "huge"))
		mapped->huge = true;
	else if (word_value(word, "dirty", &value))
		mapped->written = value > 0;
	else if (word_value(word, "kernelpagesize_kB", &value) &&
		 value <= NM_PAGE_BYTES_MOST / KIB && nm_is_page_size(value * KIB)) {
		mapped->page_bytes = value * KIB;
		mapped->empty = false;
	}
}

/* "start policy[:nodes] [file=…|heap|stack] [huge] [anon=n] [mapmax=n] … [kernelpagesize_kB=n]"; a
 * space in a file's name is written as \040, so it cannot look like a word. */
int nm_mapped_parse_policy(const char *line, struct nm_mapped *ret)
{
	struct nm_mapped mapped = {.empty = true, .only_on = -1};
	bool anonymous_huge = false;

	const char *word = parse_address(line, ' ', &mapped.start);
	if (!word || ends_word(*word))
		return -EINVAL;
	mapped.policy = (uint8_t)parse_policy(word);
	while ((word = next_word(word))) {
		anonymous_huge |= begins(word, "file=/anon_hugepage");
		take_word(&mapped, word);
	}
	if (mapped.huge && anonymous_huge)
		mapped.file = false;
	*ret = mapped;
	return 0;
}

/* Returns the next word of a node after `word`, or NULL. */
static const char *next_node(const char *word, unsigned *ret_node, uint64_t *ret_pages)
{
	do
		word = next_word(word);
	while (word && !is_of_node(word, ret_node, ret_pages));
	return word;
}

/* Returns whether these pages stay where they are: memory that other processes can map, data of
 * files, and huge pages of files. Programs and libraries do not count. */
static bool stays(const struct nm_mapped *mapped)
{
	return mapped->file && (mapped->huge || mapped->written ||
				mapped->resident * mapped->page_bytes > NM_PROC_PROGRAM_BYTES);
}

/* Huge pages from the pool stay where they are while the pools of other nodes are used up. */
void nm_node_pages_add(struct nm_node_pages *pages, const char *line, uint64_t page_bytes)
{
	struct nm_mapped mapped;
	uint64_t count;
	unsigned node;

	if (nm_mapped_parse_policy(line, &mapped) < 0)
		return;
	bool own = strstr(line, " anon=") && !(mapped.file && mapped.huge);
	if (!own && !stays(&mapped))
		return;
	if (own && mapped.huge)
		pages->huge_bytes += mapped.resident * mapped.page_bytes;
	else if (own)
		pages->own_bytes += mapped.resident * mapped.page_bytes;
	uint64_t *of_kind = own ? pages->own : pages->staying;
	while ((line = next_node(line, &node, &count)))
		if (node < NM_NODE_NUMBERS)
			of_kind[node] += count * mapped.page_bytes / page_bytes;
}
