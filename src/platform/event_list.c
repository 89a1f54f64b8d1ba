/* SPDX-License-Identifier: MIT */
/* Combines the table and sysfs for this machine. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "platform/event.h"
#include "pmu.h"
#include "privileged.h"

#define CPUINFO_BYTES 2048
#define IBS_PERIOD_MULTIPLE 16
#define IBS_LATENCY_MIN 128U /* Zen 5 accepts 128 to 2048 */
#define IBS_LATENCY_MAX 2048U
#define EVENT_MASK 0xffffU
#define LOADS_BY_LATENCY 0x1cdU
#define SPE_PMUS_MAX 4U
#define SPE_LATENCY_MAX 4095U
#define LINE_BYTES 64U

struct builder {
	int root;
	const struct nm_event_selection *selection;
	enum nm_event_kind kind; /* kind of the rows to encode; NM_EVENT_KIND_MAX: all */
	const struct nm_event_table *table;
	unsigned kinds_of_pmu; /* that the PMU of `selection` counts, as bits */
	struct nm_event_list list;
};

/* Reads only the lines of the first CPU: on a machine with many CPUs, the whole file is large and
 * slow to read. */
static const struct nm_event_table *own_table(int root)
{
	nm_auto(nm_closep) int fd = openat(root, "proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	struct nm_cpu_identity identity = {0};
	char text[CPUINFO_BYTES];
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = '\0';
	(void)nm_cpu_identity_parse(text, &identity);
	return nm_event_table_for(&identity);
}

/* The performance cores of hybrid machines have a PMU of another name, but of the same type. */
static const char *core_pmu(int root)
{
	if (nm_pmu_has(root, "cpu", "type"))
		return "cpu";
	return nm_pmu_has(root, "cpu_core", "type") ? "cpu_core" : NULL;
}

static void add(struct builder *builder, struct nm_event_word word)
{
	struct nm_event_list *list = &builder->list;

	if (list->count == NM_EVENT_LIST_MAX)
		return;
	for (unsigned i = 0; i < list->count; i++)
		word.index += list->words[i].kind == word.kind;
	if (!word.period_multiple)
		word.period_multiple = 1;
	list->words[list->count++] = word;
}

/* A row that is not encoded has a place, too; otherwise an index would refer to another event. */
static void add_row(struct builder *builder, const struct nm_event_row *row, bool aux_leader)
{
	struct nm_event_word word = {.kind = row->kind, .unencoded = true};

	if (builder->kind == row->kind || builder->kind == NM_EVENT_KIND_MAX)
		(void)nm_event_row_encode(builder->table, row, builder->selection->load_latency,
					  &word);
	word.aux_leader = row->has_threshold && aux_leader;
	add(builder, word);
}

/* If the table does not know the CPU, the kernel may still know its PEBS events. */
static void add_named(struct builder *builder, enum nm_event_kind kind, const char *text,
		      bool aux_leader)
{
	struct nm_event_word word = {
		.kind = kind, .precise = true, .aux_leader = aux_leader, .user_only = true};

	if (nm_pmu_parse(builder->root, text, &word) == 0)
		add(builder, word);
}

static void add_pebs(struct builder *builder)
{
	const struct nm_event_table *table = builder->table;
	const char *pmu = core_pmu(builder->root);
	char text[NM_PMU_TEXT];
	unsigned rows = 0;

	if (!pmu)
		return;
	bool aux_leader = nm_pmu_has(builder->root, pmu, "events/mem-loads-aux");
	for (size_t i = 0; i < table->count; i++) {
		if (!table->rows[i].precise)
			continue;
		add_row(builder, &table->rows[i], aux_leader);
		rows++;
	}
	if (rows > 0)
		return;
	snprintf(text, sizeof(text), "%s/mem-loads,ldlat=%u/", pmu,
		 builder->selection->load_latency);
	add_named(builder, NM_EVENT_MEMORY, text, aux_leader);
	snprintf(text, sizeof(text), "%s/mem-stores/", pmu);
	add_named(builder, NM_EVENT_STORE, text, false);
}

/*
 * Counts micro-operations instead of cycles, so that each has the same chance of being sampled. A
 * high threshold is set in the hardware if that supports it (Zen 5), or is replaced by "misses of
 * the third level" (Zen 4). The software filter makes it possible to exclude the kernel.
 */
static void add_ibs(struct builder *builder)
{
	int root = builder->root;
	unsigned latency = builder->selection->load_latency;
	bool high = latency >= IBS_LATENCY_MIN;
	struct nm_event_word word = {.kind = NM_EVENT_MEMORY,
				     .period_multiple = IBS_PERIOD_MULTIPLE,
				     .user_only = nm_pmu_has(root, "ibs_op", "format/swfilt")};
	char text[NM_PMU_TEXT], threshold[32] = "";

	if (latency > IBS_LATENCY_MAX)
		latency = IBS_LATENCY_MAX;
	if (high && nm_pmu_has(root, "ibs_op", "format/ldlat"))
		snprintf(threshold, sizeof(threshold), ",ldlat=%u", latency);
	else if (high && nm_pmu_has(root, "ibs_op", "format/l3missonly"))
		snprintf(threshold, sizeof(threshold), ",l3missonly=1");
	snprintf(text, sizeof(text), "ibs_op/%s%s%s/",
		 nm_pmu_has(root, "ibs_op", "format/cnt_ctl") ? "cnt_ctl=1" : "config=0", threshold,
		 word.user_only ? ",swfilt=1" : "");
	if (nm_pmu_parse(root, text, &word) == 0)
		add(builder, word);
}

/*
 * A machine with two kinds of cores has one such PMU for each. Filters are set if the hardware
 * lists them; without filters for loads and stores, other records are dropped when they are
 * decoded. Jitter prevents resonance of the period with loops.
 */
static void add_spe(struct builder *builder)
{
	static const char *const terms[] = {"ts_enable",   "pa_enable",	   "jitter",
					    "load_filter", "store_filter", "min_latency"};
	unsigned latency = builder->selection->load_latency;

	if (latency > SPE_LATENCY_MAX)
		latency = SPE_LATENCY_MAX;
	for (unsigned pmu = 0; pmu < SPE_PMUS_MAX; pmu++) {
		struct nm_event_word word = {
			.kind = NM_EVENT_MEMORY, .user_only = true, .aux = true};
		char name[16], file[48], text[NM_PMU_TEXT];
		snprintf(name, sizeof(name), "arm_spe_%u", pmu);
		int length = snprintf(text, sizeof(text), "%s/", name);
		for (size_t i = 0; i < NM_ARRAY_SIZE(terms); i++) {
			snprintf(file, sizeof(file), "format/%s", terms[i]);
			bool is_latency = i == NM_ARRAY_SIZE(terms) - 1;
			if (nm_pmu_has(builder->root, name, file))
				length += snprintf(text + length, sizeof(text) - (size_t)length,
						   "%s=%u,", terms[i], is_latency ? latency : 1);
		}
		length -= text[length - 1] == ',';
		snprintf(text + length, sizeof(text) - (size_t)length, "/");
		if (nm_pmu_parse(builder->root, text, &word) == 0)
			add(builder, word);
	}
}

/*
 * The PMU may count amounts, too. The names of the first and the last are those of the kernel's own
 * PMUs; flops are operations, so that a vector counts by its width.
 */
static const struct {
	enum nm_event_kind kind;
	const char *event;
	uint16_t unit;
} pmu_amounts[] = {
	{NM_EVENT_INSTRUCTIONS, "instructions", 1},
	{NM_EVENT_FLOPS, "flops", 1},
	{NM_EVENT_DRAM, "cache-misses", LINE_BYTES},
};

static int add_pmu(struct builder *builder, const char *text)
{
	struct nm_event_word word = {.kind = NM_EVENT_MEMORY};
	int r = text ? nm_pmu_parse(builder->root, text, &word) : -EINVAL;

	if (r < 0)
		return r;
	add(builder, word);
	for (size_t i = 0; i < NM_ARRAY_SIZE(pmu_amounts); i++) {
		struct nm_event_word amount = {.kind = pmu_amounts[i].kind,
					       .unit = pmu_amounts[i].unit};
		char event[NM_PMU_TEXT];
		snprintf(event, sizeof(event), "%.*s/%s/", (int)strcspn(text, "/"), text,
			 pmu_amounts[i].event);
		if (nm_pmu_parse(builder->root, event, &amount) < 0)
			continue;
		add(builder, amount);
		builder->kinds_of_pmu |= 1U << amount.kind;
	}
	return 0;
}

/*
 * Sapphire Rapids needs the leader for loads by latency, even if the configuration names the event.
 */
static int add_event(struct builder *builder, const char *name)
{
	const char *pmu = core_pmu(builder->root);
	struct nm_event_word word;

	if (!pmu)
		return -ENOENT;
	int r = name ? nm_event_named_encode(builder->table, name, &word) : -ENOPKG;
	if (r < 0)
		return r;
	word.aux_leader = (word.config & EVENT_MASK) == LOADS_BY_LATENCY &&
			  nm_pmu_has(builder->root, pmu, "events/mem-loads-aux");
	add(builder, word);
	return 0;
}

static int add_memory(struct builder *builder)
{
	switch (builder->selection->source) {
	case NM_MEMORY_PEBS:
		add_pebs(builder);
		return 0;
	case NM_MEMORY_IBS:
		add_ibs(builder);
		return 0;
	case NM_MEMORY_SPE:
		add_spe(builder);
		return 0;
	case NM_MEMORY_PMU:
		return add_pmu(builder, builder->selection->pmu);
	case NM_MEMORY_EVENT:
		return add_event(builder, builder->selection->event);
	default:
		return 0;
	}
}

int nm_event_list_read(int root, const struct nm_event_selection *selection,
		       enum nm_event_kind kind, struct nm_event_list *ret)
{
	const struct nm_event_table *table = own_table(root);
	struct builder builder = {
		.root = root,
		.selection = selection,
		.kind = kind,
		.table = table,
		.list = {.table = table->name},
	};
	int r = add_memory(&builder);

	if (r < 0)
		return r;
	bool has_core = core_pmu(root) != NULL;
	for (size_t i = 0; i < table->count; i++) {
		const struct nm_event_row *row = &table->rows[i];
		/* The kernel's own constants are available without a PMU that we know. */
		bool offered = has_core || (row->raw && row->type == PERF_TYPE_HARDWARE);
		if (offered && !row->precise && !(builder.kinds_of_pmu & 1U << row->kind))
			add_row(&builder, row, false);
	}
	*ret = builder.list;
	return 0;
}

const char *nm_event_named_check(int root, const char *name)
{
	struct nm_event_word word;

	(void)nm_event_named_encode(own_table(root), name, &word);
	return word.remark;
}

int nm_event_pmu_check(int root, const char *pmu)
{
	struct nm_event_word word = {0};
	int r = nm_pmu_parse(root, pmu, &word);
	return r < 0 ? r : 0;
}
