/* SPDX-License-Identifier: MIT */
/* The facts about the unit that doctor gets from a fake systemd on a private bus. */
#define SET_UP set_up
#define TEAR_DOWN teardown
#include "../support/test.h"

#include <stdint.h>

#include <sys/mman.h>

#include "../../src/ctl/doctor/gather.h"
#include "../support/serve_bus.h"
#include "bus_fixture.h"

#define UNIT_PATH "/org/freedesktop/systemd1/unit/numa_2dmigrd_2eservice"
#define PATIENCE_US (200ULL * 1000)

/* Answers of systemd, in memory shared with the server. */
static struct answers {
	bool silent, odd; /* no answers; no property of that name */
	char load[64], active[64];
} * answers;

static int on_load_unit(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const char *name;

	(void)userdata, (void)error;
	if (answers->silent)
		return 1;
	int r = sd_bus_message_read(call, "s", &name);
	if (r < 0)
		return r;
	return sd_bus_reply_method_return(
		call, "o", strcmp(name, "numa-migrd.service") == 0 ? UNIT_PATH : "/other");
}

static int word(sd_bus *bus, const char *path, const char *interface, const char *property,
		sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	(void)bus, (void)path, (void)interface, (void)userdata;
	if (answers->odd)
		return sd_bus_error_set(error, SD_BUS_ERROR_UNKNOWN_PROPERTY, "no");
	return sd_bus_message_append(
		reply, "s", strcmp(property, "LoadState") == 0 ? answers->load : answers->active);
}

static const sd_bus_vtable manager[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("LoadUnit", "s", "o", on_load_unit, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

static const sd_bus_vtable unit[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("LoadState", "s", word, 0, 0),
	SD_BUS_PROPERTY("ActiveState", "s", word, 0, 0),
	SD_BUS_VTABLE_END,
};

static void serve_systemd(int ready)
{
	sd_bus *bus = NULL;
	int r = sd_bus_open_system(&bus);

	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1",
					     "org.freedesktop.systemd1.Manager", manager, NULL);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, UNIT_PATH, "org.freedesktop.systemd1.Unit",
					     unit, NULL);
	serve_bus(bus, r, "org.freedesktop.systemd1", ready);
}

static int set_up(void **state)
{
	*answers = (struct answers){.load = "loaded", .active = "inactive"};
	return setup(state, open_policy, serve_systemd);
}

static int set_up_without(void **state)
{
	return setup(state, open_policy, NULL);
}

static struct nm_facts_unit look(void **state)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	struct nm_doctor_options options = {.root_path = "/"};
	struct nm_facts facts = {0};

	need_bus(state);
	assert_true(sd_bus_open_system(&bus) >= 0);
	assert_true(sd_bus_set_method_call_timeout(bus, PATIENCE_US) >= 0);
	options.bus = bus;
	nm_gather_unit(&options, &facts);
	return facts.unit;
}

TEST(its_properties_are_read)
{
	struct nm_facts_unit found = look(state);

	assert_int_equal(found.error, 0);
	assert_true(found.exists);
	assert_string_equal(found.load, "loaded");
	assert_string_equal(found.active, "inactive");
}

TEST(a_unit_that_is_not_there)
{
	(void)snprintf(answers->load, sizeof(answers->load), "not-found");
	struct nm_facts_unit found = look(state);
	assert_int_equal(found.error, 0);
	assert_false(found.exists);
}

/* SECURITY: units */
TEST(words_are_escaped)
{
	(void)snprintf(answers->load, sizeof(answers->load), "a\x1b[31m");
	assert_string_equal(look(state).load, "a\\x1b[31m");
}

/* SECURITY: units */
TEST(a_property_may_be_missing)
{
	answers->odd = true;
	struct nm_facts_unit found = look(state);
	assert_true(found.error < 0);
	assert_false(found.exists);
}

/* SECURITY: units */
TEST(a_silent_systemd_times_out)
{
	answers->silent = true;
	struct nm_facts_unit found = look(state);
	assert_int_equal(found.error, -ETIMEDOUT);
	assert_false(found.exists);
}

TEST_BETWEEN(set_up_without, teardown, an_unreachable_systemd_is_reported)
{
	struct nm_facts_unit found = look(state);
	assert_true(found.error < 0);
	assert_false(found.exists);
}

TEST_BETWEEN(NULL, NULL, a_missing_bus_is_reported)
{
	const struct nm_doctor_options options = {.bus_error = -ENOENT};
	struct nm_facts facts = {0};

	nm_gather_unit(&options, &facts);
	assert_int_equal(facts.unit.error, -ENOENT);
}

int main(void)
{
	answers = mmap(NULL, sizeof(*answers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (answers == MAP_FAILED)
		return 1;
	return RUN_REGISTERED(NULL, NULL);
}
