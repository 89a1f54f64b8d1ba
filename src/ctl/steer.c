/* SPDX-License-Identifier: MIT */
/* Commands of an administrator. */
#include <string.h>
#include <sys/xattr.h>

#include "ctl.h"
#include "numa-migrd/tasks.h"

#define CGROUPS "/sys/fs/cgroup"

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
	return r == EXIT_SUCCESS ? nm_ctl_done(ctl, on ? "dry-run on" : "dry-run off") : r;
}

/* ---- the cgroup of a unit ---- */

#define SYSTEMD "org.freedesktop.systemd1"
#define UNIT_BYTES 256

/* The types of units (systemd.unit(5)); the first ones have cgroups with processes. */
static const struct {
	const char *suffix, *interface;
} types[] = {
	{".service", SYSTEMD ".Service"},
	{".scope", SYSTEMD ".Scope"},
	{".slice", SYSTEMD ".Slice"},
	{".socket", NULL},
	{".target", NULL},
	{".device", NULL},
	{".mount", NULL},
	{".automount", NULL},
	{".swap", NULL},
	{".timer", NULL},
	{".path", NULL},
};

/* Returns the index of the type of a name, or the number of types. */
static size_t type_of(const char *name)
{
	const char *suffix = strrchr(name, '.');
	size_t i = 0;
	while (i < NM_ARRAY_SIZE(types) && (!suffix || strcmp(suffix, types[i].suffix) != 0))
		i++;
	return i;
}

/* As systemctl: a name without a type is that of a service, also with dots in it. Returns false if
 * it cannot be the name of a unit. */
static bool complete_name(const char *word, char unit[UNIT_BYTES])
{
	const char *end = type_of(word) < NM_ARRAY_SIZE(types) ? "" : types[0].suffix;
	if (word[0] == '\0' || strchr(word, '/'))
		return false;
	return snprintf(unit, UNIT_BYTES, "%s%s", word, end) < UNIT_BYTES;
}

static int read_property(sd_bus *bus, const char *unit, const char *interface, const char *name,
			 sd_bus_error *error, char **ret)
{
	nm_autofree char *path = NULL;
	int r = sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit, &path);
	return r < 0 ? r
		     : sd_bus_get_property_string(bus, SYSTEMD, path, interface, name, error, ret);
}

/* Writes the active instances of a service, "a@*.service", in a list; "" if there are none. */
static void list_instances(sd_bus *bus, const char *unit, char *out, size_t size)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *name, *end = strrchr(unit, '.');
	char pattern[UNIT_BYTES + 2];
	size_t used = 0;
	(void)snprintf(pattern, sizeof(pattern), "%.*s@*%s", (int)(end - unit), unit, end);
	out[0] = '\0';
	if (sd_bus_call_method(bus, SYSTEMD, "/org/freedesktop/systemd1", SYSTEMD ".Manager",
			       "ListUnitsByPatterns", NULL, &reply, "asas", 1, "active", 1,
			       pattern) < 0 ||
	    sd_bus_message_enter_container(reply, 'a', "(ssssssouso)") < 0)
		return;
	while (sd_bus_message_read(reply, "(ssssssouso)", &name, NULL, NULL, NULL, NULL, NULL, NULL,
				   NULL, NULL, NULL) > 0) {
		char clean[UNIT_BYTES];
		(void)nm_escape(clean, sizeof(clean), name, strlen(name));
		if (used + strlen(clean) + 3 > size)
			return;
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", clean);
	}
}

/* Returns whether the cgroup has no process, or does not exist. */
static bool is_empty(const char *cgroup)
{
	char path[4096], text[256] = "";
	(void)snprintf(path, sizeof(path), CGROUPS "%s/cgroup.events", cgroup);
	FILE *file = fopen(path, "re");
	if (!file)
		return true;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	(void)fclose(file);
	return strstr(text, "populated 0") != NULL;
}

static int unreachable(const char *unit, const sd_bus_error *error, int r)
{
	struct nm_failure failure;
	nm_ctl_explain_failure(error, r, true, &failure);
	if (failure.status == NM_CTL_UNAVAILABLE)
		(void)snprintf(failure.text, sizeof(failure.text),
			       "systemd does not answer on the system bus (systemctl status)");
	(void)nm_ctl_fail(unit, failure.text);
	return failure.status;
}

/* Finds the cgroup of a unit (org.freedesktop.systemd1(5)). Returns the exit status, and prints why
 * there is none. */
static int find_cgroup(sd_bus *bus, const char *word, char **ret)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	nm_autofree char *load = NULL, *cgroup = NULL;
	char unit[UNIT_BYTES], instances[2048] = "", text[2304];
	if (!complete_name(word, unit))
		return nm_ctl_fail(word, "not the name of a unit");
	const char *interface = types[type_of(unit)].interface;
	if (!interface)
		return nm_ctl_fail(unit, "not a service, scope or slice");
	int r = read_property(bus, unit, SYSTEMD ".Unit", "LoadState", &error, &load);
	if (r >= 0 && strcmp(load, "not-found") == 0)
		return nm_ctl_fail(unit, "there is no such unit");
	if (r >= 0)
		r = read_property(bus, unit, interface, "ControlGroup", &error, &cgroup);
	if (r < 0)
		return unreachable(unit, &error, r);
	if (cgroup[0] == '\0' || is_empty(cgroup))
		list_instances(bus, unit, instances, sizeof(instances));
	if (instances[0]) {
		(void)snprintf(text, sizeof(text), "has no process; name one of its instances: %s",
			       instances);
		return nm_ctl_fail(unit, text);
	}
	if (cgroup[0] == '\0')
		return nm_ctl_fail(unit, "has no cgroup, because it does not run");
	*ret = NM_TAKE(cgroup);
	return EXIT_SUCCESS;
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
	if (r != EXIT_SUCCESS)
		return r;
	r = set_attribute(cgroup, values[i]);
	if (r < 0)
		(void)nm_ctl_fail(words[0], strerror(-r));
	if (r == -EACCES || r == -EPERM)
		return NM_CTL_NOT_ALLOWED;
	return r < 0 ? EXIT_FAILURE : nm_ctl_done(ctl, values[i]);
}
