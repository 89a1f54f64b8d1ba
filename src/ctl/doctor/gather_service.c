/* SPDX-License-Identifier: MIT */
/* Collects facts about the service: its unit, privileges of its processes, its configuration, and
 * the state left by an earlier run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "gather.h"
#include "numa-migrd/base.h"
#include "numa-migrd/helper.h"
#include "numa-migrd/ledger.h"

#define CONFIG_PATH "/etc/numa-migrd.conf"
#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"

/* ---- the unit, from systemd (org.freedesktop.systemd1(5)) ---- */

/*
 * Returns the path of the unit's object, loading the unit if necessary. The caller frees the path.
 */
static int find_unit(sd_bus *bus, char **ret_path)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *path;
	int r = sd_bus_call_method(bus, SYSTEMD, SYSTEMD_PATH, SYSTEMD ".Manager", "LoadUnit", NULL,
				   &reply, "s", NM_FACTS_UNIT);

	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &path);
	if (r < 0)
		return r;
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	*ret_path = copy;
	return 0;
}

static int read_word(sd_bus *bus, const char *path, const char *property, char *ret, size_t size)
{
	nm_autofree char *word = NULL;
	int r = sd_bus_get_property_string(bus, SYSTEMD, path, SYSTEMD ".Unit", property, NULL,
					   &word);

	if (r < 0)
		return r;
	(void)nm_escape(ret, size, word, strlen(word));
	return 0;
}

/* UINT64_MAX, which means no limit, becomes INT64_MAX. */
static struct nm_reading read_property(sd_bus *bus, const char *path, const char *property)
{
	uint64_t value = 0;
	int r = sd_bus_get_property_trivial(bus, SYSTEMD, path, SYSTEMD ".Service", property, NULL,
					    't', &value);

	if (r < 0)
		return (struct nm_reading){.error = r};
	return (struct nm_reading){.value = value > INT64_MAX ? INT64_MAX : (int64_t)value};
}

static struct nm_reading read_capabilities(sd_bus *bus, const char *path)
{
	struct nm_reading ambient = read_property(bus, path, "AmbientCapabilities");
	struct nm_reading bounding = read_property(bus, path, "CapabilityBoundingSet");

	if (ambient.error || bounding.error)
		return (struct nm_reading){.error = ambient.error ? ambient.error : bounding.error};
	return (struct nm_reading){.value = ambient.value & bounding.value};
}

static int read_unit(sd_bus *bus, struct nm_facts_unit *unit)
{
	nm_autofree char *path = NULL;
	int r = find_unit(bus, &path);

	if (r == 0)
		r = read_word(bus, path, "LoadState", unit->load, sizeof(unit->load));
	if (r < 0 || strcmp(unit->load, "not-found") == 0)
		return r;
	r = read_word(bus, path, "ActiveState", unit->active, sizeof(unit->active));
	if (r < 0)
		return r;
	unit->exists = true;
	unit->capabilities = read_capabilities(bus, path);
	unit->files = read_property(bus, path, "LimitNOFILE");
	unit->locked = read_property(bus, path, "LimitMEMLOCK");
	return 0;
}

void nm_gather_unit(const struct nm_doctor_options *options, struct nm_facts *facts)
{
	if (options->bus)
		facts->unit.error = read_unit(options->bus, &facts->unit);
	else
		facts->unit.error = options->bus_error ? options->bus_error : -ENOTCONN;
}

/* ---- processes and files ---- */

/* Returns the number after "name" in a file with such lines; "unlimited" becomes INT64_MAX. */
static struct nm_reading number_after(const char *text, const char *name, int base)
{
	const char *found = strstr(text, name);
	char *end;

	if (!found)
		return (struct nm_reading){.error = -ENODATA};
	found += strlen(name);
	found += strspn(found, ": \t");
	if (strncmp(found, "unlimited", strlen("unlimited")) == 0)
		return (struct nm_reading){.value = INT64_MAX};
	int64_t value = (int64_t)strtoull(found, &end, base);
	if (end == found)
		return (struct nm_reading){.error = -ENODATA};
	return (struct nm_reading){.value = value};
}

static void read_daemon(struct nm_platform *platform, struct nm_facts_service *service)
{
	char path[64], text[8192];

	(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/status", service->pid);
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) <= 0)
		text[0] = '\0';
	service->capabilities = number_after(text, "\nCapEff:", 16);
	(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/limits", service->pid);
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) <= 0)
		text[0] = '\0';
	service->files = number_after(text, "Max open files", 10);
	service->locked = number_after(text, "Max locked memory", 10);
}

/* Uses the path that an administrator would type; other roots are only used in tests. */
static int read_config(const struct nm_doctor_options *options, struct nm_facts *facts)
{
	const char *root = strcmp(options->root_path, "/") == 0 ? "" : options->root_path;
	const char *path = options->config_path ? options->config_path : CONFIG_PATH;

	(void)snprintf(facts->config_path, sizeof(facts->config_path), "%s%s", root, path);
	facts->config_error =
		nm_config_load(facts->config_path, &facts->config_errors, &facts->config);
	bool before_installing = facts->config_error == -ENOENT && !facts->unit.exists;
	if (before_installing || facts->config_error == -EACCES)
		return nm_config_default(&facts->config);
	return facts->config_error == -ENOMEM ? -ENOMEM : 0;
}

int nm_gather_service(struct nm_platform *platform, const struct nm_doctor_options *options,
		      struct nm_facts *facts)
{
	if (facts->daemon.pid)
		read_daemon(platform, &facts->daemon);
	if (facts->helper.pid)
		read_daemon(platform, &facts->helper);
	facts->helper_socket =
		nm_gather_name(platform, "run", strrchr(NM_HELPER_SOCKET_PATH, '/') + 1);
	facts->ledger = nm_gather_name(platform, "run/numa-migrd", NM_LEDGER_NAME);
	return read_config(options, facts);
}
