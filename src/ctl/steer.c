/* SPDX-License-Identifier: MIT */
/* Commands of an administrator. */
#include <string.h>

#include "ctl.h"

/* On success nothing is printed, as with kill(1); with --json a document is printed. */
static int done(const struct nm_ctl *ctl, const char *result)
{
	if (ctl->json)
		(void)printf("{\"version\": %d, \"result\": \"%s\"}\n", NM_CTL_JSON_VERSION,
			     result);
	return nm_ctl_close_output();
}

static int simple(const struct nm_ctl *ctl, const char *method, const char *result)
{
	int r = nm_ctl_change(method, "");
	return r == EXIT_SUCCESS ? done(ctl, result) : r;
}

int nm_ctl_pause(const struct nm_ctl *ctl, char *const *words)
{
	(void)words;
	return simple(ctl, "Pause", "paused");
}

int nm_ctl_resume(const struct nm_ctl *ctl, char *const *words)
{
	(void)words;
	return simple(ctl, "Resume", "resumed");
}

int nm_ctl_reload(const struct nm_ctl *ctl, char *const *words)
{
	(void)words;
	return simple(ctl, "Reload", "reloaded");
}

static int of_process(const struct nm_ctl *ctl, const char *method, const char *word,
		      const char *result)
{
	uint32_t pid;
	int r = nm_ctl_pid(word, &pid);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_change(method, "u", pid);
	return r == EXIT_SUCCESS ? done(ctl, result) : r;
}

int nm_ctl_release(const struct nm_ctl *ctl, char *const *words)
{
	return of_process(ctl, "Release", words[0], "released");
}

int nm_ctl_manage(const struct nm_ctl *ctl, char *const *words)
{
	return of_process(ctl, "Manage", words[0], "managed");
}

int nm_ctl_dry_run(const struct nm_ctl *ctl, char *const *words)
{
	bool on = strcmp(words[0], "on") == 0;
	if (!on && strcmp(words[0], "off") != 0)
		return nm_ctl_wrong_usage("dry-run must be on or off", words[0]);
	int r = nm_ctl_change("SetDryRun", "b", (int)on);
	return r == EXIT_SUCCESS ? done(ctl, on ? "dry-run on" : "dry-run off") : r;
}
