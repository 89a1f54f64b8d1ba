/* SPDX-License-Identifier: MIT */
/* Commands of an administrator. */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "ctl.h"
#include "tasks/tasks.h"

static int simple(const struct nm_ctl *ctl, const char *method, const char *result)
{
	int r = nm_ctl_change(method, "");
	return r == EXIT_SUCCESS ? nm_ctl_done(ctl, result) : r;
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
	return r == EXIT_SUCCESS ? nm_ctl_done(ctl, result) : r;
}

/* Each process that the unit has now. One that has just ended is no failure. */
static int release_unit(const struct nm_ctl *ctl, const char *word)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_autofree char *cgroup = NULL;
	char path[PATH_MAX];
	struct nm_pids pids = {0};
	int r = nm_ctl_open(&bus);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_unit_cgroup(bus, word, &cgroup);
	if (r != EXIT_SUCCESS)
		return r;
	(void)snprintf(path, sizeof(path), NM_CTL_CGROUPS "%s", cgroup);
	nm_ctl_cgroup_pids(path, &pids);
	for (size_t i = 0; i < pids.count && r != NM_CTL_NOT_ALLOWED && r != NM_CTL_UNAVAILABLE;
	     i++)
		r = nm_ctl_change("Release", "u", pids.items[i]);
	free(pids.items);
	if (pids.count == 0)
		return nm_ctl_fail(word, "has no process");
	return r == NM_CTL_NOT_ALLOWED || r == NM_CTL_UNAVAILABLE ? r
								  : nm_ctl_done(ctl, "released");
}

int nm_ctl_release(const struct nm_ctl *ctl, char *const *words)
{
	if (words[0][strspn(words[0], "0123456789-")] != '\0')
		return release_unit(ctl, words[0]);
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
	return r == EXIT_SUCCESS ? nm_ctl_done(ctl, on ? "dry-run on" : "dry-run off") : r;
}

/* ---- the attribute of a unit ---- */

static int set_attribute(const char *cgroup, const char *value)
{
	char path[4096];
	(void)snprintf(path, sizeof(path), NM_CTL_CGROUPS "%s", cgroup);
	int r = strcmp(value, "reset") == 0
			? removexattr(path, NM_STEER_ATTRIBUTE)
			: setxattr(path, NM_STEER_ATTRIBUTE, value, strlen(value), 0);
	return r < 0 && errno != ENODATA ? -errno : 0;
}

/* ---- at every start of a service ---- */

#define DROP_IN "numa-migrd.conf"

/* As the installed example. */
static const char drop_in[] =
	"# Written by numa-migrctl(1), --permanent\n"
	"[Service]\n"
	"ExecStartPre=-+/bin/sh -c 'group=$$(sed -n \"s/^0:://p\" /proc/self/cgroup) && setfattr "
	"-n " NM_STEER_ATTRIBUTE " -v %s \"/sys/fs/cgroup$${group%%%%/.control}\"'\n";

int nm_ctl_write_drop_in(const char *units, const char *unit, const char *value)
{
	char folder[PATH_MAX], path[PATH_MAX];
	if (snprintf(folder, sizeof(folder), "%s/%s.d", units, unit) >= (int)sizeof(folder) ||
	    snprintf(path, sizeof(path), "%s/" DROP_IN, folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (strcmp(value, "reset") == 0)
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return -errno;
	FILE *file = fopen(path, "we");
	if (!file)
		return -errno;
	bool written = fprintf(file, drop_in, value) > 0;
	return fclose(file) == 0 && written ? 0 : -EIO;
}

static int steer_permanently(sd_bus *bus, const char *word, const char *value)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	char unit[NM_CTL_UNIT_BYTES];
	const char *suffix = nm_ctl_unit_name(word, unit) ? strrchr(unit, '.') : NULL;
	if (!suffix || strcmp(suffix, ".service") != 0)
		return nm_ctl_fail(word, "--permanent is for services");
	int r = nm_ctl_write_drop_in("/etc/systemd/system", unit, value);
	if (r < 0) {
		(void)nm_ctl_fail(unit, strerror(-r));
		return r == -EACCES ? NM_CTL_NOT_ALLOWED : EXIT_FAILURE;
	}
	if (sd_bus_call_method(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
			       "org.freedesktop.systemd1.Manager", "Reload", &error, NULL, "") < 0)
		return nm_ctl_fail(unit, "the drop-in is written; run systemctl daemon-reload");
	return EXIT_SUCCESS;
}

/* The service may not write to cgroups. */
int nm_ctl_steer(const struct nm_ctl *ctl, char *const *words)
{
	static const char *const values[] = {"off", "observe", "on", "reset"};
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_autofree char *cgroup = NULL;
	size_t i = 0;
	while (i < NM_ARRAY_SIZE(values) && (!words[1] || strcmp(words[1], values[i]) != 0))
		i++;
	if (i == NM_ARRAY_SIZE(values))
		return nm_ctl_wrong_usage("the value must be off, observe, on or reset", words[1]);
	int r = nm_ctl_open(&bus);
	if (r != EXIT_SUCCESS)
		return r;
	r = nm_ctl_unit_cgroup(bus, words[0], &cgroup);
	if (r == EXIT_SUCCESS && ctl->permanent)
		r = steer_permanently(bus, words[0], values[i]);
	if (r != EXIT_SUCCESS)
		return r;
	r = set_attribute(cgroup, values[i]);
	if (r < 0)
		(void)nm_ctl_fail(words[0], strerror(-r));
	if (r == -EACCES || r == -EPERM)
		return NM_CTL_NOT_ALLOWED;
	return r < 0 ? EXIT_FAILURE : nm_ctl_done(ctl, values[i]);
}
