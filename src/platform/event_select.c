/* SPDX-License-Identifier: MIT */
/* Selects the table of a CPU by family and model, as the vendors number them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "platform/event.h"

struct models {
	const char *vendor;
	unsigned family, first, last;
	const char *table;
};

#define INTEL(first, last, table)                                                                  \
	{                                                                                          \
		"GenuineIntel", 6, first, last, table                                              \
	}
#define AMD(family, first, last, table)                                                            \
	{                                                                                          \
		"AuthenticAMD", family, first, last, table                                         \
	}

/* clang-format off */
static const struct models all_models[] = {
	INTEL(0x2a, 0x2a, "snb"), INTEL(0x2d, 0x2d, "snb_ep"),
	INTEL(0x3a, 0x3a, "ivb"), INTEL(0x3e, 0x3e, "ivb_ep"),
	INTEL(0x3c, 0x3c, "hsw"), INTEL(0x45, 0x46, "hsw"), INTEL(0x3f, 0x3f, "hsw_ep"),
	INTEL(0x3d, 0x3d, "bdw"), INTEL(0x47, 0x47, "bdw"),
	INTEL(0x4f, 0x4f, "bdw_ep"), INTEL(0x56, 0x56, "bdw_ep"),
	INTEL(0x4e, 0x4e, "skl"), INTEL(0x5e, 0x5e, "skl"), INTEL(0x8e, 0x8e, "skl"),
	INTEL(0x9e, 0x9e, "skl"), INTEL(0xa5, 0xa6, "skl"),
	INTEL(0x55, 0x55, "skx"),
	INTEL(0x7d, 0x7e, "icl"), INTEL(0x8c, 0x8d, "icl"), INTEL(0xa7, 0xa7, "icl"),
	INTEL(0x6a, 0x6a, "icx"), INTEL(0x6c, 0x6c, "icx"),
	INTEL(0x97, 0x97, "adl"), INTEL(0x9a, 0x9a, "adl"), INTEL(0xb7, 0xb7, "adl"),
	INTEL(0xba, 0xba, "adl"), INTEL(0xbf, 0xbf, "adl"), INTEL(0xaa, 0xaa, "adl"),
	INTEL(0xac, 0xac, "adl"),
	INTEL(0x8f, 0x8f, "spr"), INTEL(0xcf, 0xcf, "emr"), INTEL(0xad, 0xae, "gnr"),
	AMD(0x17, 0x00, 0x2f, "zen1"), AMD(0x17, 0x30, 0xff, "zen2"),
	AMD(0x19, 0x00, 0x0f, "zen3"), AMD(0x19, 0x10, 0x1f, "zen4"),
	AMD(0x19, 0x20, 0x5f, "zen3"), AMD(0x19, 0x60, 0xaf, "zen4"),
	AMD(0x1a, 0x00, 0xff, "zen5"),
	{"HygonGenuine", 0x18, 0x00, 0xff, "zen1"},
};
/* clang-format on */

/* Returns the text after "name <blanks>:" at the beginning of a line, or NULL. */
static const char *field(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) != 0)
			continue;
		const char *colon = line + length + strspn(line + length, " \t");
		if (*colon == ':')
			return colon + 1 + strspn(colon + 1, " \t");
	}
	return NULL;
}

static int number_field(const char *text, const char *name, unsigned *ret)
{
	const char *value = field(text, name);
	char *end;

	if (!value)
		return -ENODATA;
	unsigned long number = strtoul(value, &end, 10);
	if (end == value || number > 0xffff)
		return -ENODATA;
	*ret = (unsigned)number;
	return 0;
}

int nm_cpu_identity_parse(const char *cpuinfo, struct nm_cpu_identity *ret)
{
	struct nm_cpu_identity identity = {0};
	const char *vendor = field(cpuinfo, "vendor_id");

	if (!vendor || number_field(cpuinfo, "cpu family", &identity.family) < 0 ||
	    number_field(cpuinfo, "model", &identity.model) < 0)
		return -ENODATA;
	size_t length = strcspn(vendor, "\n");
	if (length >= sizeof(identity.vendor))
		return -ENODATA;
	memcpy(identity.vendor, vendor, length);
	*ret = identity;
	return 0;
}

const struct nm_event_table *nm_event_table_find(const char *name)
{
	for (size_t i = 0; i < nm_event_table_count; i++)
		if (strcmp(nm_event_tables[i].name, name) == 0)
			return &nm_event_tables[i];
	return NULL;
}

const struct nm_event_table *nm_event_table_for(const struct nm_cpu_identity *identity)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(all_models); i++) {
		const struct models *models = &all_models[i];
		if (strcmp(models->vendor, identity->vendor) == 0 &&
		    models->family == identity->family && models->first <= identity->model &&
		    identity->model <= models->last)
			return nm_event_table_find(models->table);
	}
	return nm_event_table_find("generic");
}
