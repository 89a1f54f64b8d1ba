/* SPDX-License-Identifier: MIT */
/* Units of systemd: their names, their cgroups and the processes in these. */
#include <dirent.h>
#include <limits.h>
#include <string.h>

#include "ctl.h"
#include "numa-migrd/file.h"

#define SYSTEMD "org.freedesktop.systemd1"

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

bool nm_ctl_unit_name(const char *word, char ret[NM_CTL_UNIT_BYTES])
{
	const char *end = type_of(word) < NM_ARRAY_SIZE(types) ? "" : types[0].suffix;
	if (word[0] == '\0' || strchr(word, '/'))
		return false;
	return snprintf(ret, NM_CTL_UNIT_BYTES, "%s%s", word, end) < NM_CTL_UNIT_BYTES;
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
	char pattern[NM_CTL_UNIT_BYTES + 2];
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
		char clean[NM_CTL_UNIT_BYTES];
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
	(void)snprintf(path, sizeof(path), NM_CTL_CGROUPS "%s/cgroup.events", cgroup);
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

int nm_ctl_unit_cgroup(sd_bus *bus, const char *word, char **ret)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	nm_autofree char *load = NULL, *cgroup = NULL;
	char unit[NM_CTL_UNIT_BYTES], instances[2048] = "", text[2304];
	if (!nm_ctl_unit_name(word, unit))
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

/* ---- processes ---- */

static void add_processes(FILE *list, struct nm_pids *ret)
{
	unsigned pid;
	while (fscanf(list, "%u", &pid) == 1) {
		NM_RESERVE(ret->items, ret->capacity, ret->count);
		ret->items[ret->count++] = pid;
	}
}

void nm_ctl_cgroup_pids(const char *directory, struct nm_pids *ret)
{
	nm_auto(nm_closedirp) DIR *listing = opendir(directory);
	char path[PATH_MAX];
	struct dirent *entry;
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
	FILE *list = fopen(path, "re");
	if (list) {
		add_processes(list, ret);
		(void)fclose(list);
	}
	while (listing && (entry = readdir(listing)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) <
			    (int)sizeof(path))
			nm_ctl_cgroup_pids(path, ret);
}
