/* SPDX-License-Identifier: MIT */
/* numa-migrd --list-events: shows the events that would be opened, and why. */
#include <inttypes.h>
#include <string.h>

#include "platform/event.h"
#include "source.h"

static void print_word(FILE *out, const struct nm_event_word *word, const char *name)
{
	char config[24] = "-", config1[24] = "-", each[16] = "-";

	if (!word->unencoded) {
		snprintf(config, sizeof(config), "%#" PRIx64, word->config);
		snprintf(config1, sizeof(config1), "%#" PRIx64, word->config1);
	}
	if (word->unit)
		snprintf(each, sizeof(each), "%u", word->unit);
	fprintf(out, "  %-12s %-12s %-14s %4s  %s\n", nm_event_name(word->kind), config, config1,
		each, name);
	if (word->remark)
		fprintf(out, "  %-12s %s: %s\n", "",
			word->unencoded ? "libpfm4 does not encode it" : "raw value", word->remark);
}

int nm_list_events_table(FILE *out, const char *name)
{
	const struct nm_event_table *table = nm_event_table_find(name);
	size_t raw = 0, unencoded = 0;

	if (!table) {
		fprintf(out, "No entry \"%s\". The entries are:\n", name);
		for (size_t i = 0; i < nm_event_table_count; i++)
			fprintf(out, "  %-8s %s\n", nm_event_tables[i].name,
				nm_event_tables[i].machines);
		return -ENOENT;
	}
	fprintf(out, "%s: %s\n", table->name, table->machines);
	fprintf(out, "  %-12s %-12s %-14s %4s  %s\n", "kind", "config", "config1", "each", "event");
	for (size_t i = 0; i < table->count; i++) {
		const struct nm_event_row *row = &table->rows[i];
		struct nm_event_word word;
		unencoded += nm_event_row_encode(table, row, NM_LOAD_LATENCY, &word) < 0;
		raw += row->raw != NULL;
		print_word(out, &word, row->name);
	}
	fprintf(out, "Encoded by libpfm4: %zu; by raw value: %zu; not encoded: %zu.\n",
		table->count - raw - unencoded, raw, unencoded);
	return 0;
}

int nm_list_events_check(FILE *out, int root, const struct nm_config *config)
{
	const char *event = config->sampling.event;
	const char *why = event[0] ? nm_event_named_check(root, event) : NULL;
	int r = config->sampling.pmu[0] ? nm_event_pmu_check(root, config->sampling.pmu) : 0;

	if (r < 0)
		fprintf(out,
			"%s: warning: sampling.event: \"%s\" has no effect: this machine has no "
			"such %s\n",
			config->sampling.event_place, config->sampling.pmu,
			r == -ENOENT ? "PMU" : "term of the PMU");
	if (!why)
		return 0;
	fprintf(out,
		"%s: sampling.event: found \"%s\", allowed: an event of this CPU that libpfm4 "
		"encodes (%s); remove the line, or choose an event as numa-migrd.conf(5) "
		"describes\n",
		config->sampling.event_place, event, why);
	return -EINVAL;
}

/* ---- this machine ---- */

/* Opens one event on the first CPU and closes it again. */
static int try_word(struct nm_platform *platform, const struct nm_event_selection *selection,
		    const struct nm_event_word *word)
{
	const struct nm_event_request request = {.kind = word->kind,
						 .index = word->index,
						 .period = 0x1000000,
						 .selection = *selection};
	struct nm_event_fds fds = {-1, -1};
	int r = platform->ops->hardware_open(platform, &request, &fds);

	nm_event_close(platform, fds);
	return r;
}

static void print_source(FILE *out, struct nm_platform *platform,
			 const struct nm_event_selection *selection,
			 const struct nm_event_list *list)
{
	for (unsigned i = 0; i < list->count; i++) {
		const struct nm_event_word *word = &list->words[i];
		bool access = word->unit == 0;
		if (access != (selection->source != NM_MEMORY_NONE))
			continue;
		print_word(out, word, word->name);
		if (word->unencoded)
			continue;
		int r = try_word(platform, selection, word);
		const char *remedy = nm_problem_remedy(r);
		fprintf(out, "  %-12s type %u%s%s: ", "", word->type,
			word->aux_leader ? ", after event 0x8203" : "",
			word->precise ? ", precise" : "");
		if (r == 0)
			fprintf(out, "opens on CPU 0\n");
		else
			fprintf(out, "%s%s%s\n", strerrordesc_np(-r), remedy ? ": " : "",
				remedy ? remedy : "");
	}
}

static const char *reason_text(enum nm_memory_source source)
{
	switch (source) {
	case NM_MEMORY_PEBS:
		return "not available: the kernel has no PMU of the cores (cpu, cpu_core), or "
		       "neither the table nor the PMU's events/mem-loads has precise loads";
	case NM_MEMORY_IBS:
		return "not available: the kernel has no PMU ibs_op";
	case NM_MEMORY_SPE:
		return "not available: the kernel has no PMU arm_spe_0";
	case NM_MEMORY_EVENT:
		return "not available: the kernel has no PMU of the cores (cpu, cpu_core)";
	default:
		return "not available";
	}
}

static const char *verdict(enum nm_memory_source source, int r, const struct nm_event_list *list)
{
	if (r == -ENOPKG)
		return "not an event of this CPU; numa-migrd --check-config prints the reason";
	if (r == -ENOENT && source == NM_MEMORY_PMU)
		return "not available: /sys/bus/event_source/devices has no such PMU";
	if (r < 0 && source == NM_MEMORY_PMU)
		return "not usable: a term is not a format of this PMU, or its value is too large";
	return list->count > 0 && list->words[0].kind == NM_EVENT_MEMORY ? "available"
									 : reason_text(source);
}

static void list_source(FILE *out, struct nm_platform *platform, const struct nm_config *config,
			enum nm_memory_source source)
{
	const struct nm_event_selection selection = nm_event_selection_of(config, source);
	const char *name = nm_memory_source_name(source),
		   *named = source == NM_MEMORY_PMU	? config->sampling.pmu
			    : source == NM_MEMORY_EVENT ? config->sampling.event
							: NULL;
	struct nm_event_list list = {0};

	if (named && !*named) {
		fprintf(out, "\n%s: sampling.event is not set to %s\n", name,
			source == NM_MEMORY_PMU ? "a PMU with its terms" : "an event");
		return;
	}
	int r = platform->ops->hardware_list(platform, &selection, &list);
	fprintf(out, "\n%s%s%s: %s\n", name, named ? " " : "", named ? named : "",
		verdict(source, r, &list));
	print_source(out, platform, &selection, &list);
}

static const char *source_text(const struct nm_config *config)
{
	switch (config->sampling.source) {
	case NM_SOURCE_AUTO:
		return "Memory accesses are sampled by the first of these sources that counts in "
		       "a trial, otherwise by page faults.\n";
	case NM_SOURCE_FAULTS:
		return "sampling.source is \"faults\": none of these sources is tried.\n";
	case NM_SOURCE_NONE:
		return "sampling.source is \"none\": nothing is sampled.\n";
	default:
		return "sampling.source selects one of these sources; page faults replace it if "
		       "it does not count.\n";
	}
}

void nm_list_events_here(FILE *out, struct nm_platform *platform, const struct nm_config *config)
{
	const struct nm_event_selection none = {.source = NM_MEMORY_NONE};
	struct nm_event_list list = {0};

	(void)platform->ops->hardware_list(platform, &none, &list);
	const struct nm_event_table *table =
		nm_event_table_find(list.table ? list.table : "generic");
	fprintf(out, "Entry of this CPU: %s (%s)\n", table->name, table->machines);
	fprintf(out, "%s", source_text(config));
	list_source(out, platform, config, NM_MEMORY_PMU);
	list_source(out, platform, config, NM_MEMORY_EVENT);
	list_source(out, platform, config, NM_MEMORY_PEBS);
	list_source(out, platform, config, NM_MEMORY_IBS);
	list_source(out, platform, config, NM_MEMORY_SPE);
	fprintf(out, "\nEvents that are counted: %s\n",
		list.count > 0 ? "" : "none, the kernel has no PMU of this CPU");
	print_source(out, platform, &none, &list);
}
