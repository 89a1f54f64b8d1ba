/* SPDX-License-Identifier: MIT */
/* Parses the number of a process's pages on each node from numa_maps. */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "numa-migrd/residency.h"

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

static size_t word_length(const char *text)
{
	return strcspn(text, " \t\n");
}

/* Reads digits up to the end of the word. Returns 0 or -EBADMSG. */
static int read_number(const char *text, const char *end, unsigned long long *ret)
{
	char *after;
	if (!isdigit((unsigned char)*text))
		return -EBADMSG;
	errno = 0;
	unsigned long long number = strtoull(text, &after, 10);
	if (errno || after != end)
		return -EBADMSG;
	*ret = number;
	return 0;
}

/* Returns 1 for "N<node>=<count>", 0 for another word, -EBADMSG for damaged text. */
static int read_node(const char *word, size_t length, unsigned *ret_node,
		     unsigned long long *ret_count)
{
	const char *equals = memchr(word, '=', length);
	unsigned long long node;
	if (*word != 'N' || !isdigit((unsigned char)word[1]))
		return 0;
	if (!equals || read_number(word + 1, equals, &node) < 0 || node > UINT_MAX ||
	    read_number(equals + 1, word + length, ret_count) < 0)
		return -EBADMSG;
	*ret_node = (unsigned)node;
	return 1;
}

/* Adds the counts of the line, `scale` pages each. NULL: only checks the line. */
static int add_line(const char *line, const struct nm_topology *topology, double scale,
		    double *pages)
{
	for (const char *word = skip_blanks(line); *word && *word != '\n';
	     word = skip_blanks(word + word_length(word))) {
		unsigned long long count = 0;
		unsigned node = 0;
		int r = read_node(word, word_length(word), &node, &count);
		if (r < 0)
			return r;
		int index = r > 0 && pages ? nm_topology_node_index(topology, node) : -1;
		if (index >= 0)
			pages[index] += (double)count * scale;
	}
	return 0;
}

/* A line without this word has no pages. */
static int read_page_kb(const char *line, unsigned long long *ret)
{
	static const char name[] = "kernelpagesize_kB=";
	const char *at = strstr(line, name), *end = strchr(line, '\n');
	*ret = 0;
	if (!at || (end && at > end))
		return 0;
	at += sizeof(name) - 1;
	return read_number(at, at + word_length(at), ret);
}

int nm_residency_read_numa_maps_line(const char *line, const struct nm_topology *topology,
				     double page_bytes, double *pages)
{
	unsigned long long page_kb;
	int r = read_page_kb(line, &page_kb);
	if (r == 0)
		r = add_line(line, topology, 0, NULL);
	if (r < 0)
		return r;
	return add_line(line, topology, (double)page_kb * 1024 / page_bytes, pages);
}
