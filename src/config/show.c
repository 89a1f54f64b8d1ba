/* SPDX-License-Identifier: MIT */
/* Effective values, as they would be written in a file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "settings.h"

static void show_flags(const struct nm_setting *setting, unsigned flags, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "(");
	for (unsigned i = 0; setting->choices[i]; i++)
		if (flags & 1U << i)
			used += (size_t)snprintf(out + used, size - used, "%s\"%s\"",
						 used > 1 ? ", " : "", setting->choices[i]);
	(void)snprintf(out + used, size - used, ")");
}

/* Several policies and selections share a value of their enum. */
static const char *name_of_choice(const struct nm_config *config, const struct nm_setting *setting,
				  unsigned choice)
{
	if (setting->offset == offsetof(struct nm_config, threads.policy))
		return nm_config_policy_name(config);
	if (setting->offset == offsetof(struct nm_config, threads.selection) &&
	    config->threads.dtas)
		return "dtas";
	return setting->choices[choice];
}

static void show_targets(const struct nm_target_list *list, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "(");
	for (size_t i = 0; i < list->count && used < size; i++) {
		used += (size_t)snprintf(out + used, size - used, "%s", i > 0 ? ", " : "");
		if (used < size)
			used += strlen(
				nm_config_print_target(&list->items[i], out + used, size - used));
	}
	if (used < size)
		(void)snprintf(out + used, size - used, ")");
}

static void show_value(const struct nm_config *config, const struct nm_setting *setting, char *out,
		       size_t size)
{
	const void *value = (const char *)config + setting->offset;
	switch (setting->type) {
	case NM_SETTING_BOOL:
		(void)snprintf(out, size, "%s", *(const bool *)value ? "true" : "false");
		return;
	case NM_SETTING_COUNT:
		(void)snprintf(out, size, "%" PRIu64, *(const uint64_t *)value);
		return;
	case NM_SETTING_REAL:
		(void)snprintf(out, size, "%.15g", *(const double *)value);
		return;
	case NM_SETTING_CHOICE:
		(void)snprintf(out, size, "\"%s\"",
			       name_of_choice(config, setting, *(const unsigned *)value));
		return;
	case NM_SETTING_FLAGS:
		show_flags(setting, *(const unsigned *)value, out, size);
		return;
	case NM_SETTING_EVENT:
		(void)snprintf(out, size, "\"%s%s\"", config->sampling.pmu, config->sampling.event);
		return;
	case NM_SETTING_PATH:
		(void)snprintf(out, size, "\"%s\"", (const char *)value);
		return;
	case NM_SETTING_TARGETS:
		show_targets(value, out, size);
		return;
	}
}

bool nm_config_show(const struct nm_config *config, size_t index, struct nm_config_value *ret)
{
	if (index >= nm_setting_count + nm_parameter_count)
		return false;
	const struct nm_setting *setting = index < nm_setting_count
						   ? &nm_settings[index]
						   : &nm_parameters[index - nm_setting_count];
	*ret = (struct nm_config_value){
		.group = setting->group,
		.name = setting->name,
		.place = config->places ? config->places[index] : NULL,
		.parameter = setting->parameter || !setting->group[0],
	};
	show_value(config, setting, ret->text, sizeof(ret->text));
	return true;
}
