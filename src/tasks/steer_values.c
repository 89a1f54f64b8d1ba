/* SPDX-License-Identifier: MIT */
/* The values of the attribute, and their combination. Pure. */
#include <string.h>

#include "tasks/tasks.h"

static const char *const names[] = {
	[NM_STEER_NONE] = "",
	[NM_STEER_OFF] = "off",
	[NM_STEER_OBSERVE] = "observe",
	[NM_STEER_ON] = "on",
};

int nm_steer_parse(const char *text, size_t length, enum nm_steer_value *ret)
{
	while (length > 0 && memchr(" \t\n", text[length - 1], sizeof(" \t\n")))
		length--;
	for (unsigned i = NM_STEER_OFF; i < NM_ARRAY_SIZE(names); i++) {
		if (strlen(names[i]) != length || memcmp(names[i], text, length) != 0)
			continue;
		*ret = (enum nm_steer_value)i;
		return 0;
	}
	return -EINVAL;
}

const char *nm_steer_name(enum nm_steer_value value)
{
	return names[value];
}

struct nm_steering nm_steer_counted(enum nm_steer_value value, const struct nm_owner *owner,
				    uint32_t uid)
{
	bool roots = owner->uid == 0 && !owner->others_write;
	bool counts = value == NM_STEER_ON ? roots : owner->uid == 0 || owner->uid == uid;
	if (!counts)
		return (struct nm_steering){0};
	return (struct nm_steering){
		.value = value,
		.asked = roots && (value == NM_STEER_ON || value == NM_STEER_OBSERVE),
	};
}

struct nm_steering nm_steer_under(struct nm_steering above, struct nm_steering said)
{
	if (above.value == NM_STEER_OFF || said.value == NM_STEER_NONE)
		return above;
	said.asked = said.asked || above.asked;
	return said;
}
