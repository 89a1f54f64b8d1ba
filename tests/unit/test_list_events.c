/* SPDX-License-Identifier: MIT */
/* What --list-events prints. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../support/fake_perf.h"
#include "../support/machine.h"
#include "fixture.h"
#include "sample/sample.h"

struct printed {
	FILE *out;
	char *text;
	size_t size;
	struct fake_perf *fake;
	struct nm_config config;
};

static int set_up(void **state)
{
	struct printed *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->out = open_memstream(&p->text, &p->size);
	p->fake = calloc(1, sizeof(*p->fake));
	assert_non_null(p->out);
	assert_non_null(p->fake);
	p->fake->platform.ops = &fake_perf_ops;
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct printed *p = *state;

	assert_int_equal(p->fake->open_count, 0);
	fclose(p->out);
	free(p->text);
	free(p->fake);
	free(p);
	return 0;
}

static bool output(struct printed *p, const char *words)
{
	fflush(p->out);
	return strstr(p->text, words) != NULL;
}

TEST(an_entry_by_name)
{
	struct printed *p = *state;

	assert_int_equal(nm_list_events_table(p->out, "spr"), 0);
	assert_true(output(p, "Intel Sapphire Rapids"));
	assert_true(output(p, "OCR:READS_TO_CORE_REMOTE_DRAM"));
	assert_true(output(p, "0x730004477"));
	assert_true(output(p, "raw value: libpfm4 encodes 0x3cd"));
	assert_true(output(p, "Encoded by libpfm4: 9; by raw value: 1; not encoded: 0."));
}

TEST(an_unknown_name_shows_the_known)
{
	struct printed *p = *state;

	assert_int_equal(nm_list_events_table(p->out, "z80"), -ENOENT);
	assert_true(output(p, "zen5"));
	assert_true(output(p, "snb_ep"));
}

TEST(events_of_this_machine)
{
	struct printed *p = *state;
	struct nm_event_list *pebs = &p->fake->hardware[NM_MEMORY_PEBS];

	pebs->table = p->fake->hardware[NM_MEMORY_NONE].table = "skx";
	pebs->words[pebs->count++] =
		(struct nm_event_word){.kind = NM_EVENT_MEMORY, .name = "LOADS", .precise = true};
	pebs->words[pebs->count++] =
		(struct nm_event_word){.kind = NM_EVENT_STORE, .name = "STORES"};
	pebs->words[pebs->count++] = (struct nm_event_word){.kind = NM_EVENT_STORE,
							    .name = "LATER",
							    .unencoded = true,
							    .remark = "event not found"};
	p->fake->open_error[NM_EVENT_STORE] = -EACCES;
	nm_list_events_here(p->out, &p->fake->platform, &p->config);
	assert_true(output(p, "Entry of this CPU: skx"));
	assert_true(output(p, "pmu: sampling.event is not set to a PMU with its terms"));
	assert_true(output(p, "pebs: available"));
	assert_true(output(p, "opens on CPU 0"));
	assert_true(output(p, "Permission denied: CAP_PERFMON missing"));
	assert_true(output(p, "libpfm4 does not encode it: event not found"));
	assert_true(output(p, "the first of these sources that counts"));
	assert_true(output(p, "ibs: not available"));
	assert_true(output(p, "spe: not available: the kernel has no PMU arm_spe_0"));
}

/* For numa-migrctl doctor. */
TEST(sources_are_listed_as_json)
{
	struct printed *p = *state;

	p->fake->hardware[NM_MEMORY_PEBS] = (struct nm_event_list){
		.table = "skx", .count = 1, .words = {{.kind = NM_EVENT_MEMORY, .name = "LOADS"}}};
	assert_int_equal(nm_list_events_json(p->out, &p->fake->platform, NULL, &p->config, false),
			 0);
	assert_true(output(p, "\"sources\": [\n    \"pebs\"\n  ]"));
	assert_true(output(p, "\"counters\": false"));
	assert_false(output(p, "\"trial\""));
}

TEST(a_trial_that_is_refused_has_a_reason)
{
	struct printed *p = *state;
	struct nm_topology *topology = machine_topology(2, 2);

	assert_non_null(topology);
	for (int kind = 0; kind < NM_EVENT_KIND_MAX; kind++)
		p->fake->open_error[kind] = -EACCES;
	assert_int_equal(
		nm_list_events_json(p->out, &p->fake->platform, topology, &p->config, true), 0);
	assert_true(output(p, "\"errno\": 13"));
	nm_topology_free(topology);
}

TEST(configuration_restrictions_are_reported)
{
	struct printed *p = *state;

	p->config.sampling.source = NM_SOURCE_FAULTS;
	nm_list_events_here(p->out, &p->fake->platform, &p->config);
	assert_true(output(p, "none of these sources is tried"));
	p->config.sampling.source = NM_SOURCE_IBS;
	nm_list_events_here(p->out, &p->fake->platform, &p->config);
	assert_true(output(p, "page faults replace it"));
}

TEST(a_misspelt_pmu)
{
	struct printed *p = *state;

	strcpy(p->config.sampling.pmu, "numalab/x=1/");
	p->fake->list_error[NM_MEMORY_PMU] = -EINVAL;
	nm_list_events_here(p->out, &p->fake->platform, &p->config);
	assert_true(output(p, "pmu numalab/x=1/: not usable: a term is not a format"));
}

TEST(a_misspelt_event)
{
	char root[FIXTURE_PATH / 2];
	struct printed *p = *state;

	nm_list_events_here(p->out, &p->fake->platform, &p->config);
	assert_true(output(p, "event: sampling.event is not set to an event"));
	strcpy(p->config.sampling.event, "MEM_LOAD_RETIRED:L9_MISS");
	strcpy(p->config.sampling.event_place, "conf:7");
	p->fake->list_error[NM_MEMORY_EVENT] = -ENOPKG;
	nm_list_events_here(p->out, &p->fake->platform, &p->config);
	assert_true(output(p, "event MEM_LOAD_RETIRED:L9_MISS: not an event of this CPU"));

	fixture_make(root, sizeof(root));
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fixture_file(root, "proc/cpuinfo",
		     "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n");
	assert_int_equal(nm_list_events_check(p->out, fd, &p->config), -EINVAL);
	assert_true(output(
		p, "conf:7: sampling.event: found \"MEM_LOAD_RETIRED:L9_MISS\", allowed: an "
		   "event of this CPU that libpfm4 encodes (invalid event attribute); remove"));
	strcpy(p->config.sampling.event, "MEM_LOAD_RETIRED:L3_MISS");
	assert_int_equal(nm_list_events_check(p->out, fd, &p->config), 0);
	p->config.sampling.event[0] = '\0';
	assert_int_equal(nm_list_events_check(p->out, fd, &p->config), 0);
	strcpy(p->config.sampling.pmu, "numalab/period=9/");
	assert_int_equal(nm_list_events_check(p->out, fd, &p->config), 0);
	assert_true(output(p,
			   "conf:7: warning: sampling.event: \"numalab/period=9/\" has no effect: "
			   "this machine has no such PMU"));
	close(fd);
	fixture_remove(root);
}

RUN_TESTS()
