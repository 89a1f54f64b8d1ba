/* SPDX-License-Identifier: MIT */
/* Commands of an administrator. */
#include <string.h>
#include <sys/xattr.h>

#include "ctl.h"
#include "numa-migrd/tasks.h"

#define CGROUPS "/sys/fs/cgroup"

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

/* Finds the cgroup of a unit, "" if it does not run (org.freedesktop.systemd1(5)). A name without a
 * type is that of a service. Returns 0, -EINVAL for a type without cgroups, or another negative
 * errno. */
static int find_cgroup(sd_bus *bus, const char *word, char **ret)
{
	static const struct {
		const char *suffix, *interface;
	} types[] = {
		{".service", "org.freedesktop.systemd1.Service"},
		{".scope", "org.freedesktop.systemd1.Scope"},
		{".slice", "org.freedesktop.systemd1.Slice"},
	};
	nm_autofree char *path = NULL;
	char unit[256];
	(void)snprintf(unit, sizeof(unit), "%s%s", word, strchr(word, '.') ? "" : ".service");
	const char *suffix = strrchr(unit, '.');
	for (size_t i = 0; i < NM_ARRAY_SIZE(types); i++) {
		if (!suffix || strcmp(suffix, types[i].suffix) != 0)
			continue;
		int r = sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit, &path);
		return r < 0 ? r
			     : sd_bus_get_property_string(bus, "org.freedesktop.systemd1", path,
							  types[i].interface, "ControlGroup", NULL,
							  ret);
	}
	return -EINVAL;
}

static int set_attribute(const char *cgroup, const char *value)
{
	char path[4096];
	(void)snprintf(path, sizeof(path), CGROUPS "%s", cgroup);
	int r = strcmp(value, "reset") == 0
			? removexattr(path, NM_STEER_ATTRIBUTE)
			: setxattr(path, NM_STEER_ATTRIBUTE, value, strlen(value), 0);
	return r < 0 && errno != ENODATA ? -errno : 0;
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
	r = find_cgroup(bus, words[0], &cgroup);
	if (r < 0)
		return nm_ctl_fail(words[0],
				   r == -EINVAL ? "not a service, scope or slice" : strerror(-r));
	if (cgroup[0] == '\0')
		return nm_ctl_fail(words[0], "has no cgroup, because it does not run");
	r = set_attribute(cgroup, values[i]);
	if (r < 0)
		(void)nm_ctl_fail(words[0], strerror(-r));
	if (r == -EACCES || r == -EPERM)
		return NM_CTL_NOT_ALLOWED;
	return r < 0 ? EXIT_FAILURE : done(ctl, values[i]);
}
