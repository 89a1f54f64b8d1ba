/* SPDX-License-Identifier: MIT */
/* The [Service] section of a unit with its drop-ins (systemd.unit(5)). Pure. */
#ifndef NUMA_MIGRD_DOCTOR_UNIT_H
#define NUMA_MIGRD_DOCTOR_UNIT_H

#include "numa-migrd/base.h"

struct nm_unit_setting {
	char *key, *value; /* an empty value ends what was said before */
};

/* Begins as {0}. */
struct nm_unit {
	struct nm_unit_setting *settings; /* in the order in which they hold */
	size_t count, capacity;
};

/* Puts what a file says behind what was read before it. -ENOMEM. */
int nm_unit_read(struct nm_unit *unit, const char *text);

/* What was assigned last; NULL: nothing. */
const char *nm_unit_value(const struct nm_unit *unit, const char *key);

/* Is the word among what was assigned since the last empty assignment? */
bool nm_unit_has_word(const struct nm_unit *unit, const char *key, const char *word);

/* 1 or 0, however it is spelled; -EINVAL for anything else, and nothing. */
int nm_unit_boolean(const char *value);

void nm_unit_clear(struct nm_unit *unit);

#endif
