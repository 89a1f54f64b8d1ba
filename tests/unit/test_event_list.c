/* SPDX-License-Identifier: MIT */
/* Hardware events detected on machines made of files, and their perf attributes. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <fcntl.h>
#include <inttypes.h>

#include "../../src/platform/pmu.h"
#include "../support/script.h"
#include "fixture.h"
#include "numa-migrd/base.h"
#include "platform/event.h"

static struct files {
	char root[FIXTURE_PATH / 4];
	int fd;
	struct nm_event_selection selection;
	char named[64];
	struct nm_event_list list;
} files;

static int set_up(void **state)
{
	(void)state;
	files = (struct files){.selection.load_latency = 30};
	fixture_make(files.root, sizeof(files.root));
	files.fd = open(files.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return files.fd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(files.fd);
	fixture_remove(files.root);
	return 0;
}

static void device(const char *file, const char *text)
{
	char path[FIXTURE_PATH / 2], line[200];
	snprintf(path, sizeof(path), "sys/bus/event_source/devices/%s", file);
	snprintf(line, sizeof(line), "%s\n", text);
	fixture_file(files.root, path, line);
}

/* device numalab/type 24: a file of a PMU */
ACTION(device, device(step->word[0], step->word[1]))

static void processor(const char *vendor, unsigned family, unsigned model)
{
	char text[256];
	snprintf(text, sizeof(text),
		 "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %u\nmodel\t\t: %u\n", vendor,
		 family, model);
	fixture_file(files.root, "proc/cpuinfo", text);
}

/* processor AuthenticAMD 25 17: without a PMU; cpu GenuineIntel 6 85: with one */
ACTION(processor, processor(step->word[0], U(0), U(1)))
ACTION(cpu, processor(step->word[0], U(0), U(1)); device("cpu/type", "4"))

static void numalab(void)
{
	device("numalab/type", "24");
	device("numalab/format/period", "config:0-31");
	device("numalab/format/odd", "config1:0-3,8,60-63");
	device("numalab/events/all", "period=0x10,odd=3");
}

ACTION(numalab, numalab())
KNOB(load_latency, files.selection.load_latency)

static const char *named(const char *name)
{
	snprintf(files.named, sizeof(files.named), "%s", name);
	return files.named;
}

ACTION(named_pmu, files.selection.pmu = named(step->word[0]))
ACTION(named_event, files.selection.event = step->count ? named(step->word[0]) : NULL)
NAMES(read, {"none", NM_MEMORY_NONE}, {"pebs", NM_MEMORY_PEBS}, {"ibs", NM_MEMORY_IBS},
      {"spe", NM_MEMORY_SPE}, {"pmu", NM_MEMORY_PMU}, {"event", NM_MEMORY_EVENT})

static int read_list(const struct step *step)
{
	files.selection.source = (enum nm_memory_source)script_value(step, "read", step->word[0]);
	return nm_event_list_read(files.fd, &files.selection, NM_EVENT_KIND_MAX, &files.list);
}

/* read pebs; refused pmu = EINVAL */
ACTION(read, if (read_list(step) < 0) script_fail(step, "it was refused"))
QUANTITY(refused, read_list(step))
TEXT(table, files.list.table)
TEXT(objection, nm_event_named_check(files.fd, files.selection.event))

static const char *const kinds[NM_EVENT_KIND_MAX] = {
	[NM_EVENT_MEMORY] = "loads",
	[NM_EVENT_STORE] = "stores",
	[NM_EVENT_DRAM] = "dram",
	[NM_EVENT_FLOPS] = "flops",
	[NM_EVENT_INSTRUCTIONS] = "instructions",
};

/* "loads 1 stores 1": how many events of each kind the list has, in its order. */
static const char *counts(void)
{
	static char text[200];
	size_t length = 0;
	text[0] = '\0';
	for (unsigned i = 0, first = 0; i < files.list.count; i++) {
		const struct nm_event_word *word = &files.list.words[i];
		assert_int_equal(word->index, i - first);
		if (i + 1 < files.list.count && files.list.words[i + 1].kind == word->kind)
			continue;
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %u",
					   length ? " " : "", kinds[word->kind], i + 1 - first);
		first = i + 1;
	}
	return text;
}

TEXT(counts, counts())

/* "loads type 4 config 1cd 1e 0 precise": all of an event but its name; the remark is not
 * compared. */
static const char *print_word(unsigned i)
{
	static char text[300];
	const struct nm_event_word *word = &files.list.words[i];
	FILE *out = fmemopen(text, sizeof(text), "w");
	assert_true(i < files.list.count);
	(void)fprintf(out, "%s type %u config %" PRIx64 " %" PRIx64 " %" PRIx64, kinds[word->kind],
		      word->type, word->config, word->config1, word->config2);
	if (word->period)
		(void)fprintf(out, " period %" PRIu64, word->period);
	if (word->period_multiple != 1)
		(void)fprintf(out, " times %u", word->period_multiple);
	if (word->unit)
		(void)fprintf(out, " unit %u", word->unit);
	(void)fprintf(out, "%s%s%s%s%s%s", word->precise ? " precise" : "",
		      word->aux_leader ? " leader" : "", word->user_only ? " user" : "",
		      word->remote ? " remote" : "", word->aux ? " aux" : "",
		      word->unencoded ? " unencoded" : "");
	(void)fclose(out);
	return text;
}

TEXT(word, print_word(U(0)))

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
	numalab();
	device("plain/type", "25");
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_event_word word = {.kind = NM_EVENT_MEMORY};
		assert_int_equal(nm_pmu_parse(files.fd, cases[i].text, &word), 0);
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
	numalab();
	device("numalab/format/broken", "config7:0-3");
	device("numalab/format/bits", "config:5-64");
	device("numalab/events/recursive", "recursive");
	for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++) {
		struct nm_event_word word = {.config = 77};
		if (nm_pmu_parse(files.fd, texts[i], &word) != -EINVAL)
			fail_msg("%s was taken", texts[i]);
		assert_int_equal(word.config, 77);
	}
	struct nm_event_word word = {0};
	assert_int_equal(nm_pmu_parse(files.fd, "nothere/x=1/", &word), -ENOENT);
}

/* ---- machines ---- */

/* The kernel may know two of them by name. */
SCRIPT(a_machine_with_software_events_only,
       "read none; table = generic; counts = instructions 1 dram 1; read pebs; table = generic",
       "counts = instructions 1 dram 1; read ibs; table = generic; counts = instructions 1 dram 1",
       "read spe; table = generic; counts = instructions 1 dram 1; refused pmu = EINVAL",
       "named_pmu numalab/period=1/; refused pmu = ENOENT")

/* A guest whose CPU is known but has no PMU would refuse each event. */
SCRIPT(a_cpu_without_a_pmu, "processor AuthenticAMD 25 17; read pebs; table = zen4; counts = ")

SCRIPT(pebs_of_skylake, "cpu GenuineIntel 6 85; set load_latency = 77; read pebs; table = skx",
       "counts = loads 1 stores 1 instructions 1 flops 5 dram 2",
       "word 0 = loads type 4 config 1cd 4d 0 precise user",
       "word 1 = stores type 4 config 82d0 0 0 precise user",
       "word 2 = instructions type 4 config c0 0 0 unit 1 user",
       "word 3 = flops type 4 config 3c7 0 0 unit 1 user; read none",
       "counts = instructions 1 flops 5 dram 2")

TEST(one_kind_alone_is_encoded)
{
	processor("GenuineIntel", 6, 85);
	device("cpu/type", "4");
	files.selection.source = NM_MEMORY_PEBS;
	assert_int_equal(
		nm_event_list_read(files.fd, &files.selection, NM_EVENT_KIND_MAX, &files.list), 0);
	const struct nm_event_list all = files.list;
	assert_int_equal(
		nm_event_list_read(files.fd, &files.selection, NM_EVENT_FLOPS, &files.list), 0);
	assert_int_equal(files.list.count, all.count);
	for (unsigned i = 0; i < all.count; i++) {
		const struct nm_event_word *word = &files.list.words[i];
		assert_int_equal(word->kind, all.words[i].kind);
		assert_int_equal(word->index, all.words[i].index);
		assert_int_equal(word->unencoded, word->kind != NM_EVENT_FLOPS);
		assert_false(all.words[i].unencoded);
	}
	assert_int_equal(files.list.words[3].config, all.words[3].config);
}

#define AUX_EVENT "device cpu/events/mem-loads-aux event=0x03,umask=0x82; "

SCRIPT(sapphire_rapids_has_a_leader, "cpu GenuineIntel 6 143", AUX_EVENT "read pebs",
       "word 0 = loads type 4 config 1cd 1e 0 precise leader user",
       "word 1 = stores type 4 config 2cd 0 0 precise user",
       "word 2 = instructions type 4 config c0 0 0 unit 1 user")

SCRIPT(an_unknown_cpu_by_the_kernels_names,
       "cpu GenuineIntel 6 250; device cpu/format/event config:0-7",
       "device cpu/format/umask config:8-15; device cpu/format/ldlat config1:0-15",
       "device cpu/events/mem-loads event=0xcd,umask=0x1,ldlat=3",
       "device cpu/events/mem-stores event=0xcd,umask=0x2; read pebs; table = generic",
       "counts = loads 1 stores 1 instructions 1 dram 1",
       "word 0 = loads type 4 config 1cd 1e 0 precise user",
       "word 1 = stores type 4 config 2cd 0 0 precise user",
       AUX_EVENT "read pebs; word 0 = loads type 4 config 1cd 1e 0 precise leader user",
       "word 1 = stores type 4 config 2cd 0 0 precise user")

#define IBS                                                                                        \
	"cpu AuthenticAMD 25 17; device ibs_op/type 11; device ibs_op/format/cnt_ctl config:19; "

/* Any exclude bit would be refused unless the PMU can filter. */
SCRIPT(ibs_follows_kernel_support,
       IBS "set load_latency = 500; read ibs; counts = loads 1 instructions 1 flops 1 dram 2",
       "word 0 = loads type 11 config 80000 0 0 times 16",
       "device ibs_op/format/l3missonly config:16; read ibs",
       "word 0 = loads type 11 config 90000 0 0 times 16; device ibs_op/format/ldlat config1:0-11",
       "device ibs_op/format/swfilt config2:0; read ibs",
       "word 0 = loads type 11 config 80000 1f4 1 times 16 user; set load_latency = 60000",
       "read ibs; word 0 = loads type 11 config 80000 800 1 times 16 user; set load_latency = 127",
       "read ibs; word 0 = loads type 11 config 80000 0 1 times 16 user",
       "counts = loads 1 instructions 1 flops 1 dram 2")

#define SPE                                                                                        \
	"device arm_spe_0/type 9; device arm_spe_0/format/ts_enable config:0; "                    \
	"device arm_spe_0/format/pa_enable config:1; device arm_spe_0/format/jitter config:16; "   \
	"device arm_spe_0/format/load_filter config:33; "                                          \
	"device arm_spe_0/format/store_filter config:34; "                                         \
	"device arm_spe_0/format/min_latency config2:0-11; "

/* Cores of another kind have no filters. */
SCRIPT(spe_follows_kernel_support, "read spe; counts = instructions 1 dram 1",
       SPE "read spe; counts = loads 1 instructions 1 dram 1",
       "word 0 = loads type 9 config 600010003 0 1e user aux; set load_latency = 60000",
       "device arm_spe_1/type 10; read spe; counts = loads 2 instructions 1 dram 1",
       "word 0 = loads type 9 config 600010003 0 fff user aux",
       "word 1 = loads type 10 config 0 0 0 user aux")

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

SCRIPT(a_named_pmu,
       "numalab; named_pmu numalab/odd,config=97/; read pmu; word 0 = loads type 24 config 61 1 0")

/* Amounts that the PMU counts replace those of the CPU's table; the others, near and far memory,
 * stay. */
SCRIPT(a_named_pmu_that_counts,
       "cpu AuthenticAMD 25 17; device bus/type 25; device bus/format/event config:0-7",
       "device bus/events/instructions event=1,period=10007; device bus/events/flops event=2",
       "named_pmu bus/period=97/; read pmu; counts = loads 1 instructions 1 flops 1 dram 2",
       "word 0 = loads type 25 config 0 0 0 period 97",
       "word 1 = instructions type 25 config 1 0 0 period 10007 unit 1",
       "word 2 = flops type 25 config 2 0 0 unit 1; device bus/events/cache-misses event=3",
       "read pmu; counts = loads 1 instructions 1 flops 1 dram 1",
       "word 3 = dram type 25 config 3 0 0 unit 64; read none",
       "counts = instructions 1 flops 1 dram 2")

/* Without a PMU there are no events. */
SCRIPT(a_named_event, "named_event MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=99; refused event = ENOENT",
       "cpu GenuineIntel 6 143; read event; counts = loads 1 instructions 1 flops 5 dram 2",
       "word 0 = loads type 4 config 1cd 63 0 precise user", AUX_EVENT "",
       "read event; word 0 = loads type 4 config 1cd 63 0 precise leader user",
       "named_event MEM_LOAD_RETIRED:L3_MISS; read event",
       "word 0 = loads type 4 config 20d1 0 0 precise user; objection = none",
       "named_event skx::MEM_LOAD_RETIRED:L3_MISS; refused event = ENOPKG",
       "objection = an event of another PMU; named_event; refused event = ENOPKG")

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
