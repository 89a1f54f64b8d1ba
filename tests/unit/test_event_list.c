/* SPDX-License-Identifier: MIT */
/* Hardware events detected on machines made of files, and their perf attributes. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include <fcntl.h>

#include "../../src/platform/pmu.h"
#include "fixture.h"
#include "numa-migrd/base.h"
#include "platform/event.h"

#define DEVICES "sys/bus/event_source/devices/"

struct machine_files {
	char root[FIXTURE_PATH / 4];
	int fd;
	struct nm_event_selection selection;
	struct nm_event_list list;
};

static int set_up(void **state)
{
	struct machine_files *f = calloc(1, sizeof(*f));

	fixture_make(f->root, sizeof(f->root));
	f->fd = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->selection.load_latency = 30;
	*state = f;
	return f->fd < 0;
}

static int tear_down(void **state)
{
	struct machine_files *f = *state;

	close(f->fd);
	fixture_remove(f->root);
	free(f);
	return 0;
}

static void device(struct machine_files *f, const char *file, const char *text)
{
	char path[FIXTURE_PATH / 2];

	snprintf(path, sizeof(path), DEVICES "%s", file);
	fixture_file(f->root, path, text);
}

static void cpu(struct machine_files *f, const char *vendor, unsigned family, unsigned model)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %u\nmodel\t\t: %u\n", vendor,
		 family, model);
	fixture_file(f->root, "proc/cpuinfo", text);
	device(f, "cpu/type", "4\n");
}

static void numalab(struct machine_files *f)
{
	device(f, "numalab/type", "24\n");
	device(f, "numalab/format/period", "config:0-31\n");
	device(f, "numalab/format/odd", "config1:0-3,8,60-63\n");
	device(f, "numalab/events/all", "period=0x10,odd=3\n");
}

static int read_list(struct machine_files *f, enum nm_memory_source source)
{
	f->selection.source = source;
	return nm_event_list_read(f->fd, &f->selection, NM_EVENT_KIND_MAX, &f->list);
}

static unsigned count(const struct machine_files *f, enum nm_event_kind kind)
{
	unsigned found = 0;

	for (unsigned i = 0; i < f->list.count; i++)
		if (f->list.words[i].kind == kind)
			assert_int_equal(f->list.words[i].index, found++);
	return found;
}

/* ---- terms ---- */

TEST(terms_become_words)
{
	static const struct {
		const char *text;
		uint64_t config, config1, config2, period;
	} cases[] = {
		{"numalab/period=97/", 97, 0, 0, 0},
		{"numalab//", 0, 0, 0, 0},
		{"numalab/period=0xffffffff/", 0xffffffff, 0, 0, 0},
		{"numalab/odd=0x1ff/", 0, 0xf00000000000010f, 0, 0},
		{"numalab/odd=0x10/", 0, 0x100, 0, 0},
		{"numalab/odd/", 0, 1, 0, 0},
		{"numalab/all/", 16, 3, 0, 0},
		{"numalab/all,period=5/", 5, 3, 0, 0},
		{"numalab/config=7,config1=8,config2=9/", 7, 8, 9, 0},
		{"plain/config=1,period=1000/", 1, 0, 0, 1000},
	};
	struct machine_files *f = *state;

	numalab(f);
	device(f, "plain/type", "25\n");
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_event_word word = {.kind = NM_EVENT_MEMORY};
		assert_int_equal(nm_pmu_parse(f->fd, cases[i].text, &word), 0);
		assert_int_equal(word.config, cases[i].config);
		assert_int_equal(word.config1, cases[i].config1);
		assert_int_equal(word.config2, cases[i].config2);
		assert_int_equal(word.period, cases[i].period);
		assert_string_equal(word.name, cases[i].text);
		assert_int_equal(word.type, strncmp(cases[i].text, "plain", 5) == 0 ? 25 : 24);
	}
}

TEST(strange_terms_are_refused)
{
	static const char *const texts[] = {
		"numalab",
		"numalab/",
		"numalab/none=1/",
		"numalab/period=0x100000000/",
		"numalab/odd=0x200/",
		"numalab/period=/",
		"numalab/period=-1/",
		"numalab/period=1x/",
		"numalab/=1/",
		"numalab/period=1/2/",
		"numalab/../all=1/",
		"../numalab/period=1/",
		"/period=1/",
		"numalab/none/",
		"numalab/broken=1/",
		"numalab/bits=1/",
		"numalab/recursive/",
		"numalab/period=99999999999999999999/",
	};
	struct machine_files *f = *state;

	numalab(f);
	device(f, "numalab/format/broken", "config7:0-3\n");
	device(f, "numalab/format/bits", "config:5-64\n");
	device(f, "numalab/events/recursive", "recursive\n");
	for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++) {
		struct nm_event_word word = {.config = 77};
		if (nm_pmu_parse(f->fd, texts[i], &word) != -EINVAL)
			fail_msg("%s was taken", texts[i]);
		assert_int_equal(word.config, 77);
	}
	struct nm_event_word word = {0};
	assert_int_equal(nm_pmu_parse(f->fd, "nothere/x=1/", &word), -ENOENT);
}

/* ---- machines ---- */

TEST(a_machine_with_software_events_only)
{
	struct machine_files *f = *state;

	for (int source = 0; source < NM_MEMORY_PMU; source++) {
		assert_int_equal(read_list(f, (enum nm_memory_source)source), 0);
		assert_string_equal(f->list.table, "generic");
		assert_int_equal(count(f, NM_EVENT_MEMORY), 0);
		assert_int_equal(f->list.count, 2); /* the kernel may know these by name */
	}
	assert_int_equal(read_list(f, NM_MEMORY_PMU), -EINVAL);
	f->selection.pmu = "numalab/period=1/";
	assert_int_equal(read_list(f, NM_MEMORY_PMU), -ENOENT);
}

/* A guest whose CPU is known but has no PMU would refuse each event. */
TEST(a_cpu_without_a_pmu)
{
	struct machine_files *f = *state;

	fixture_file(f->root, "proc/cpuinfo",
		     "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\n");
	assert_int_equal(read_list(f, NM_MEMORY_PEBS), 0);
	assert_string_equal(f->list.table, "zen4");
	assert_int_equal(f->list.count, 0);
}

TEST(pebs_of_skylake)
{
	struct machine_files *f = *state;

	cpu(f, "GenuineIntel", 6, 85);
	f->selection.load_latency = 77;
	assert_int_equal(read_list(f, NM_MEMORY_PEBS), 0);
	assert_string_equal(f->list.table, "skx");
	assert_int_equal(count(f, NM_EVENT_MEMORY), 1);
	assert_int_equal(count(f, NM_EVENT_STORE), 1);
	assert_int_equal(count(f, NM_EVENT_INSTRUCTIONS), 1);
	assert_int_equal(count(f, NM_EVENT_FLOPS), 5);
	assert_int_equal(count(f, NM_EVENT_DRAM), 2);
	assert_int_equal(f->list.words[0].config, 0x1cd);
	assert_int_equal(f->list.words[0].config1, 77);
	assert_true(f->list.words[0].precise && !f->list.words[0].aux_leader);
	assert_int_equal(read_list(f, NM_MEMORY_NONE), 0);
	assert_int_equal(f->list.count, 8);
}

TEST(one_kind_alone_is_encoded)
{
	struct machine_files *f = *state;

	cpu(f, "GenuineIntel", 6, 85);
	assert_int_equal(read_list(f, NM_MEMORY_PEBS), 0);
	const struct nm_event_list all = f->list;
	assert_int_equal(nm_event_list_read(f->fd, &f->selection, NM_EVENT_FLOPS, &f->list), 0);
	assert_int_equal(f->list.count, all.count);
	for (unsigned i = 0; i < all.count; i++) {
		const struct nm_event_word *word = &f->list.words[i];
		assert_int_equal(word->kind, all.words[i].kind);
		assert_int_equal(word->index, all.words[i].index);
		assert_int_equal(word->unencoded, word->kind != NM_EVENT_FLOPS);
		assert_false(all.words[i].unencoded);
	}
	assert_int_equal(f->list.words[3].config, all.words[3].config);
}

TEST(sapphire_rapids_has_a_leader)
{
	struct machine_files *f = *state;

	cpu(f, "GenuineIntel", 6, 143);
	device(f, "cpu/events/mem-loads-aux", "event=0x03,umask=0x82\n");
	assert_int_equal(read_list(f, NM_MEMORY_PEBS), 0);
	for (unsigned i = 0; i < f->list.count; i++)
		assert_int_equal(f->list.words[i].aux_leader,
				 f->list.words[i].kind == NM_EVENT_MEMORY);
}

TEST(an_unknown_cpu_by_the_kernels_names)
{
	struct machine_files *f = *state;

	cpu(f, "GenuineIntel", 6, 250);
	device(f, "cpu/format/event", "config:0-7\n");
	device(f, "cpu/format/umask", "config:8-15\n");
	device(f, "cpu/format/ldlat", "config1:0-15\n");
	device(f, "cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
	device(f, "cpu/events/mem-stores", "event=0xcd,umask=0x2\n");
	assert_int_equal(read_list(f, NM_MEMORY_PEBS), 0);
	assert_string_equal(f->list.table, "generic");
	assert_int_equal(f->list.words[0].config, 0x1cd);
	assert_int_equal(f->list.words[0].config1, 30);
	assert_int_equal(f->list.words[1].config, 0x2cd);
	assert_true(f->list.words[0].precise && f->list.words[1].precise);
	assert_int_equal(count(f, NM_EVENT_INSTRUCTIONS), 1);
	assert_false(f->list.words[0].aux_leader);
	device(f, "cpu/events/mem-loads-aux", "event=0x3,umask=0x82\n");
	assert_int_equal(read_list(f, NM_MEMORY_PEBS), 0);
	assert_true(f->list.words[0].aux_leader && !f->list.words[1].aux_leader);
}

static void ibs(struct machine_files *f)
{
	cpu(f, "AuthenticAMD", 0x19, 0x11);
	device(f, "ibs_op/type", "11\n");
	device(f, "ibs_op/format/cnt_ctl", "config:19\n");
}

TEST(ibs_follows_kernel_support)
{
	struct machine_files *f = *state;

	ibs(f);
	f->selection.load_latency = 500;
	assert_int_equal(read_list(f, NM_MEMORY_IBS), 0);
	assert_int_equal(count(f, NM_EVENT_MEMORY), 1);
	const struct nm_event_word *word = &f->list.words[0];
	assert_int_equal(word->type, 11);
	assert_int_equal(word->config, 1 << 19);
	assert_int_equal(word->config1 | word->config2, 0);
	assert_int_equal(word->period_multiple, 16);
	assert_false(word->user_only); /* any exclude bit would be refused */

	device(f, "ibs_op/format/l3missonly", "config:16\n");
	assert_int_equal(read_list(f, NM_MEMORY_IBS), 0);
	assert_int_equal(f->list.words[0].config, 1 << 19 | 1 << 16);

	device(f, "ibs_op/format/ldlat", "config1:0-11\n");
	device(f, "ibs_op/format/swfilt", "config2:0\n");
	assert_int_equal(read_list(f, NM_MEMORY_IBS), 0);
	assert_int_equal(f->list.words[0].config, 1 << 19);
	assert_int_equal(f->list.words[0].config1, 500);
	assert_int_equal(f->list.words[0].config2, 1);
	assert_true(f->list.words[0].user_only);

	f->selection.load_latency = 60000;
	assert_int_equal(read_list(f, NM_MEMORY_IBS), 0);
	assert_int_equal(f->list.words[0].config1, 2048);
	f->selection.load_latency = 127;
	assert_int_equal(read_list(f, NM_MEMORY_IBS), 0);
	assert_int_equal(f->list.words[0].config1, 0);
	assert_int_equal(count(f, NM_EVENT_FLOPS), 1);
}

static void spe(struct machine_files *f, unsigned pmu, const char *type)
{
	static const struct {
		const char *term, *format;
	} formats[] = {
		{"ts_enable", "config:0\n"},	 {"pa_enable", "config:1\n"},
		{"jitter", "config:16\n"},	 {"load_filter", "config:33\n"},
		{"store_filter", "config:34\n"}, {"min_latency", "config2:0-11\n"},
	};
	char file[64];

	snprintf(file, sizeof(file), "arm_spe_%u/type", pmu);
	device(f, file, type);
	for (size_t i = 0; i < NM_ARRAY_SIZE(formats); i++) {
		snprintf(file, sizeof(file), "arm_spe_%u/format/%s", pmu, formats[i].term);
		device(f, file, formats[i].format);
	}
}

TEST(spe_follows_kernel_support)
{
	struct machine_files *f = *state;

	assert_int_equal(read_list(f, NM_MEMORY_SPE), 0);
	assert_int_equal(count(f, NM_EVENT_MEMORY), 0);
	spe(f, 0, "9\n");
	assert_int_equal(read_list(f, NM_MEMORY_SPE), 0);
	assert_int_equal(count(f, NM_EVENT_MEMORY), 1);
	const struct nm_event_word *word = &f->list.words[0];
	assert_int_equal(word->type, 9);
	assert_int_equal(word->config, 0x600010003);
	assert_int_equal(word->config2, 30);
	assert_true(word->aux && word->user_only);
	assert_false(word->precise || word->unit);
	f->selection.load_latency = 60000;
	device(f, "arm_spe_1/type", "10\n"); /* cores of another kind, without filters */
	assert_int_equal(read_list(f, NM_MEMORY_SPE), 0);
	assert_int_equal(count(f, NM_EVENT_MEMORY), 2);
	assert_int_equal(f->list.words[0].config2, 4095);
	assert_int_equal(f->list.words[1].type, 10);
	assert_int_equal(f->list.words[1].config | f->list.words[1].config2, 0);
}

TEST(spe_records_context_switches)
{
	const struct nm_event_word word = {
		.type = 9, .aux = true, .user_only = true, .period_multiple = 1};
	struct perf_event_attr attr;

	assert_int_equal(nm_event_word_attr(&word, 0x40000, &attr), 0);
	assert_int_equal(attr.sample_type,
			 PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
	assert_true(attr.context_switch && attr.watermark && attr.sample_id_all && attr.disabled);
	assert_true(attr.wakeup_watermark > 0 && attr.exclude_kernel);
	assert_false(attr.freq || attr.exclude_idle || attr.precise_ip); /* all refused */
	assert_int_equal(attr.sample_period, 0x40000);
}

TEST(a_named_pmu)
{
	struct machine_files *f = *state;

	numalab(f);
	f->selection.pmu = "numalab/odd,config=97/";
	assert_int_equal(read_list(f, NM_MEMORY_PMU), 0);
	assert_int_equal(f->list.words[0].kind, NM_EVENT_MEMORY);
	assert_int_equal(f->list.words[0].config, 97);
	assert_false(f->list.words[0].user_only || f->list.words[0].precise);
}

/* Amounts that the PMU counts replace those of the CPU's table; the others stay. */
TEST(a_named_pmu_that_counts)
{
	struct machine_files *f = *state;

	cpu(f, "AuthenticAMD", 0x19, 0x11);
	device(f, "bus/type", "25\n");
	device(f, "bus/format/event", "config:0-7\n");
	device(f, "bus/events/instructions", "event=1,period=10007\n");
	device(f, "bus/events/flops", "event=2\n");
	f->selection.pmu = "bus/period=97/";
	assert_int_equal(read_list(f, NM_MEMORY_PMU), 0);
	assert_int_equal(count(f, NM_EVENT_MEMORY), 1);
	assert_int_equal(f->list.words[0].period, 97);
	assert_int_equal(count(f, NM_EVENT_INSTRUCTIONS), 1);
	assert_int_equal(f->list.words[1].kind, NM_EVENT_INSTRUCTIONS);
	assert_int_equal(f->list.words[1].type, 25);
	assert_int_equal(f->list.words[1].config, 1);
	assert_int_equal(f->list.words[1].period, 10007);
	assert_int_equal(f->list.words[1].unit, 1);
	assert_int_equal(count(f, NM_EVENT_FLOPS), 1);
	assert_int_equal(f->list.words[2].config, 2);
	assert_int_equal(count(f, NM_EVENT_DRAM), 2); /* near and far, of the table */
	device(f, "bus/events/cache-misses", "event=3\n");
	assert_int_equal(read_list(f, NM_MEMORY_PMU), 0);
	assert_int_equal(count(f, NM_EVENT_DRAM), 1);
	assert_int_equal(f->list.words[3].unit, 64);
	assert_int_equal(read_list(f, NM_MEMORY_NONE), 0);
	assert_int_equal(count(f, NM_EVENT_DRAM), 2);
}

TEST(a_named_event)
{
	struct machine_files *f = *state;

	f->selection.event = "MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=99";
	assert_int_equal(read_list(f, NM_MEMORY_EVENT), -ENOENT); /* no PMU */
	cpu(f, "GenuineIntel", 6, 143);
	assert_int_equal(read_list(f, NM_MEMORY_EVENT), 0);
	assert_int_equal(count(f, NM_EVENT_MEMORY), 1);
	assert_int_equal(count(f, NM_EVENT_STORE), 0);
	assert_int_equal(count(f, NM_EVENT_INSTRUCTIONS), 1);
	assert_int_equal(f->list.words[0].config, 0x1cd);
	assert_int_equal(f->list.words[0].config1, 99);
	assert_false(f->list.words[0].aux_leader);
	device(f, "cpu/events/mem-loads-aux", "event=0x03,umask=0x82\n");
	assert_int_equal(read_list(f, NM_MEMORY_EVENT), 0);
	assert_true(f->list.words[0].aux_leader);
	f->selection.event = "MEM_LOAD_RETIRED:L3_MISS";
	assert_int_equal(read_list(f, NM_MEMORY_EVENT), 0);
	assert_false(f->list.words[0].aux_leader);
	assert_null(nm_event_named_check(f->fd, f->selection.event));
	f->selection.event = "skx::MEM_LOAD_RETIRED:L3_MISS";
	assert_int_equal(read_list(f, NM_MEMORY_EVENT), -ENOPKG);
	assert_string_equal(nm_event_named_check(f->fd, f->selection.event),
			    "an event of another PMU");
	f->selection.event = NULL;
	assert_int_equal(read_list(f, NM_MEMORY_EVENT), -ENOPKG);
}

/* ---- attributes ---- */

TEST(accesses_request_the_decoded_fields)
{
	const struct nm_event_word load = {.kind = NM_EVENT_MEMORY,
					   .type = 4,
					   .config = 0x1cd,
					   .config1 = 30,
					   .precise = true,
					   .user_only = true,
					   .period_multiple = 1};
	const struct nm_event_word op = {
		.kind = NM_EVENT_MEMORY, .type = 11, .period_multiple = 16};
	struct perf_event_attr attr;

	assert_int_equal(nm_event_word_attr(&load, 1009, &attr), 0);
	assert_int_equal(attr.sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
						   PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
						   PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
						   PERF_SAMPLE_PHYS_ADDR);
	assert_int_equal(attr.precise_ip, 3);
	assert_int_equal(attr.sample_period, 1009);
	assert_int_equal(attr.config1, 30);
	assert_true(attr.disabled && attr.sample_id_all && attr.exclude_kernel && !attr.freq);
	assert_int_equal(nm_event_word_attr(&op, 1009, &attr), 0);
	assert_int_equal(attr.sample_period, 1008);
	assert_false(attr.exclude_kernel || attr.exclude_hv || attr.exclude_guest ||
		     attr.exclude_host || attr.exclude_idle);
}

TEST(periods_have_bounds)
{
	const struct nm_event_word amount = {.unit = 8, .period_multiple = 1};
	const struct nm_event_word access = {.period_multiple = 1};
	struct perf_event_attr attr;

	assert_int_equal(nm_event_word_attr(&amount, 999, &attr), -EINVAL);
	assert_int_equal(nm_event_word_attr(&amount, 1000, &attr), 0);
	assert_int_equal(attr.sample_type & PERF_SAMPLE_ADDR, 0);
	assert_int_equal(nm_event_word_attr(&amount, 1000000000001, &attr), -EINVAL);
	assert_int_equal(nm_event_word_attr(&access, 15, &attr), -EINVAL);
	assert_int_equal(nm_event_word_attr(&access, 16, &attr), 0);
}

RUN_TESTS()
