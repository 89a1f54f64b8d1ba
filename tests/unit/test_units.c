/* SPDX-License-Identifier: MIT */
/* The units of systemd where the machine lacks what they need, as a container does. */
#include "../support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

#define UNIT_BYTES 16384

static void read_unit(const char *name, char text[UNIT_BYTES])
{
	char path[512];

	snprintf(path, sizeof(path), NM_SOURCE_DIR "/systemd/%s", name);
	assert_true(nm_read_text(AT_FDCWD, path, text, UNIT_BYTES) > 0);
}

/* Returns whether a line of the unit is exactly this one. */
static bool has_line(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, line, length) == 0 && (at[length] == '\n' || !at[length]))
			return true;
	}
	return false;
}

/* Returns the value of a setting, allocated; fails if there is none. */
static char *value_of(const char *text, const char *setting)
{
	const char *found = strstr(text, setting);

	assert_non_null(found);
	found += strlen(setting);
	char *value = strndup(found, strcspn(found, "\n"));
	assert_non_null(value);
	return value;
}

/* Otherwise systemd fails to start the unit, and tries again without end. */
TEST(a_unit_without_its_capabilities_is_skipped)
{
	static const struct {
		const char *unit, *setting, *skipped;
	} units[] = {
		{"numa-migrd.service", "\nAmbientCapabilities=", "numa-migrd.service"},
		{"numa-migrd-worker@.service",
		 "\nAmbientCapabilities=", "numa-migrd-worker@.service"},
		{"numa-migrd-worker@.service",
		 "\nAmbientCapabilities=", "numa-migrd-worker.socket"},
		{"numa-migrd-helper.service",
		 "\nCapabilityBoundingSet=", "numa-migrd-helper.service"},
		{"numa-migrd-helper.service",
		 "\nCapabilityBoundingSet=", "numa-migrd-helper.socket"},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(units); i++) {
		char text[UNIT_BYTES], skipped[UNIT_BYTES], line[128], *rest = NULL;
		read_unit(units[i].unit, text);
		read_unit(units[i].skipped, skipped);
		nm_autofree char *names = value_of(text, units[i].setting);
		assert_true(*names);
		for (char *name = strtok_r(names, " ", &rest); name;
		     name = strtok_r(NULL, " ", &rest)) {
			snprintf(line, sizeof(line), "ConditionCapability=%s", name);
			if (!has_line(skipped, line))
				fail_msg("%s has no %s", units[i].skipped, line);
		}
	}
}

/* Of wrong options, a wrong configuration, and what systemd could not set up. */
TEST(a_restart_that_would_not_help_is_not_tried)
{
	static const char *const statuses[] = {"64", "78", "218", "226"};
	char text[UNIT_BYTES];

	read_unit("numa-migrd.service", text);
	nm_autofree char *value = value_of(text, "\nRestartPreventExitStatus=");
	for (size_t i = 0; i < NM_ARRAY_SIZE(statuses); i++)
		assert_non_null(strstr(value, statuses[i]));
}

RUN_TESTS()
