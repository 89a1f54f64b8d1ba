/* SPDX-License-Identifier: MIT */
/* Pages of recordings, parsed by an XML library. Include cmocka.h first. */
#ifndef NM_TEST_REPORT_FIXTURE_H
#define NM_TEST_REPORT_FIXTURE_H

#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "../../src/ctl/page/page.h"
#include "../support/made_recording.h"

struct page {
	char *text;
	size_t length;
	xmlDocPtr document;
	xmlXPathContextPtr paths;
};

static inline int memory_file(void)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static inline void page_clear(struct page *page)
{
	xmlXPathFreeContext(page->paths);
	xmlFreeDoc(page->document);
	free(page->text);
}

/* Any message of the parser is a failure; no recovery and no network access. */
static inline void page_parse(struct page *page)
{
	page->document = xmlReadMemory(page->text, (int)page->length, "page", NULL,
				       XML_PARSE_NONET | XML_PARSE_NOENT | XML_PARSE_HUGE);
	if (!page->document)
		fail_msg("not well-formed: %s",
			 xmlGetLastError() ? xmlGetLastError()->message : "");
	page->paths = xmlXPathNewContext(page->document);
	xmlXPathRegisterNs(page->paths, BAD_CAST "h", BAD_CAST "http://www.w3.org/1999/xhtml");
}

/* Closes fd, the descriptor of the recording. */
static inline struct page page_of_file(int fd, const char *name)
{
	struct page page = {0};
	char error[256] = "";
	struct nm_recording *recording;
	if (nm_recording_open(fd, error, sizeof(error), &recording) < 0)
		fail_msg("%s", error);
	FILE *out = open_memstream(&page.text, &page.length);
	int r = nm_report_write(recording, name, out);
	if (r < 0)
		fail_msg("%d: %s", r, nm_recording_error(recording));
	fclose(out);
	nm_recording_free(recording);
	page_parse(&page);
	return page;
}

static inline struct page page_of(const struct made_recording_options *options, const char *name)
{
	int fd = memory_file();
	assert_int_equal(made_recording(fd, options), 0);
	return page_of_file(fd, name);
}

/* Returns the number of nodes that an XPath expression finds. */
static inline int count_of(const struct page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline int count_of(const struct page *page, const char *format, ...)
{
	char path[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	xmlXPathObjectPtr found = xmlXPathEvalExpression(BAD_CAST path, page->paths);
	assert_non_null(found);
	int count = found->nodesetval ? found->nodesetval->nodeNr : 0;
	xmlXPathFreeObject(found);
	return count;
}

/* Returns the string value of an XPath expression; the caller frees it. */
static inline char *string_of(const struct page *page, const char *path)
{
	xmlXPathObjectPtr found = xmlXPathEvalExpression(BAD_CAST path, page->paths);
	assert_non_null(found);
	xmlChar *text = xmlXPathCastToString(found);
	char *copy = strdup((const char *)text);
	xmlFree(text);
	xmlXPathFreeObject(found);
	return copy;
}

static inline void assert_string_of(const struct page *page, const char *path, const char *expected)
{
	char *found = string_of(page, path);
	assert_string_equal(found, expected);
	free(found);
}

static inline bool page_contains(const struct page *page, const char *words)
{
	return strstr(page->text, words) != NULL;
}

#endif
