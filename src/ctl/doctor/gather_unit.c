/* SPDX-License-Identifier: MIT */
/* Reads the unit of the service from systemd (org.freedesktop.systemd1(5)). */
#include <string.h>
#include <systemd/sd-bus.h>

#include "gather.h"
#include "numa-migrd/base.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"

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
