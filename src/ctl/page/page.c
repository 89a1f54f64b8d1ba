/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "html.h"
#include "page.h"
#include "picture.h"

static void put_head(const char *name, FILE *out)
{
	nm_html(out,
		"<!DOCTYPE html>\n"
		"<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
		"<meta charset=\"utf-8\"/>\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\"/>\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
		"<meta name=\"color-scheme\" content=\"light dark\"/>\n"
		"<meta name=\"referrer\" content=\"no-referrer\"/>\n<title>",
		nm_style_hash);
	nm_html_printf(out, "%s \xe2\x80\x93 numa-migrd", name);
	nm_html(out, "</title>\n<style>%s</style>\n</head>\n", nm_style_text);
}

/* Each is a plot, or the reason for its absence. */
static const struct {
	const char *id, *link, *title;
	void (*show)(const struct nm_picture *picture, FILE *out);
} sections[] = {
	{"timeline", "Threads", "Nodes of the threads, and decisions", nm_show_timeline},
	{"locality", "Locality", "Local accesses", nm_show_locality},
	{"decisions", "Decisions", "Decisions", nm_show_decisions},
	{"configuration", "Configuration", "Configuration", nm_show_config},
};

static void put_links(FILE *out)
{
	nm_html(out, "<nav>");
	for (size_t i = 0; i < NM_ARRAY_SIZE(sections); i++)
		nm_html(out, "%s<a href=\"#%s\">%s</a>", i ? " " : "", sections[i].id,
			sections[i].link);
	nm_html(out, "</nav>\n");
}

static void put_body(const struct nm_picture *picture, FILE *out)
{
	nm_html(out, "<body>\n");
	nm_show_marks(out);
	nm_html(out, "<header><h1>");
	nm_html_printf(out, "%s", picture->name);
	nm_html(out, "</h1><p>A recording of numa-migrd: samples, decisions and verdicts.</p>"
		     "</header>\n<main>\n");
	nm_show_facts(picture, out);
	put_links(out);
	for (size_t i = 0; i < NM_ARRAY_SIZE(sections); i++) {
		nm_html(out, "<section id=\"%s\">\n<h2>%s</h2>\n", sections[i].id,
			sections[i].title);
		sections[i].show(picture, out);
		nm_html(out, "</section>\n");
	}
	nm_html(out, "</main>\n</body>\n</html>\n");
}

int nm_report_write(struct nm_recording *recording, const char *name, FILE *out)
{
	nm_auto(nm_picture_freep) struct nm_picture *picture = NULL;
	nm_auto(nm_census_clear) struct nm_census census = {0};
	int r = nm_census_take(recording, &census);
	if (r == 0)
		r = nm_picture_new(&census, name, &picture);
	if (r == 0)
		r = nm_picture_gather(picture, recording);
	if (!picture || r < 0)
		return r;
	put_head(name, out);
	put_body(picture, out);
	return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
