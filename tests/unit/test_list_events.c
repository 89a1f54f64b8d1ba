/* SPDX-License-Identifier: MIT */
/* What --list-events prints. */
#define SET_UP open_words
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "fixture.h"
#include "source_words.h"

/* ---- words ---- */

static char text[65536];

/* Runs `call` with the stream `out`. The text is its result and what it prints, with commas for
 * semicolons, which end a step. */
#define PRINTED(call)                                                                              \
	({                                                                                         \
		FILE *out = fmemopen(text, sizeof(text), "w");                                     \
		assert_non_null(out);                                                              \
		int result = call;                                                                 \
		fprintf(out, "result %s", result < 0 ? strerrorname_np(-result) : "0");            \
		fclose(out);                                                                       \
		for (char *at = text; (at = strchr(at, ';'));)                                     \
			*at = ',';                                                                 \
		text;                                                                              \
	})

static int list_here(FILE *out)
{
	nm_list_events_here(out, &f->fake->platform, &f->config);
	return 0;
}

static int list_json(FILE *out, bool may_try)
{
	return nm_list_events_json(out, &f->fake->platform, may_try ? f->topology : NULL,
				   &f->config, may_try);
}

/* On a machine with the events of Skylake. */
static int check(FILE *out)
{
	char root[FIXTURE_PATH / 2];
	fixture_make(root, sizeof(root));
	fixture_file(root, "proc/cpuinfo",
		     "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n");
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = nm_list_events_check(out, fd, &f->config);
	close(fd);
	fixture_remove(root);
	return r;
}

TEXT(table, PRINTED(nm_list_events_table(out, step->word[0])))
TEXT(here, PRINTED(list_here(out)))
TEXT(json, PRINTED(list_json(out, false)))
TEXT(trial, PRINTED(list_json(out, true)))
TEXT(check, PRINTED(check(out)))

/* hardware pebs loads LOADS: an event of a source; also "precise", or "unencoded" with a reason */
WORD(hardware)
{
	struct nm_event_list *list = &f->fake->hardware[memory_of(step)];
	const bool unencoded = step_has(step, "unencoded");
	list->words[list->count] = (struct nm_event_word){
		.kind = (enum nm_event_kind)script_value(step, "kind", step->word[1]),
		.precise = step_has(step, "precise"),
		.unencoded = unencoded,
		.remark = unencoded ? "event not found" : NULL};
	snprintf(list->words[list->count++].name, sizeof(list->words->name), "%s", step->word[2]);
}

ACTION(entry,
       f->fake->hardware[NM_MEMORY_PEBS].table = f->fake->hardware[NM_MEMORY_NONE].table = "skx")
ACTION(pmu, strcpy(f->config.sampling.pmu, step_rest(step)))

/* event MEM_LOAD_RETIRED:L3_MISS: as in line 7 of the configuration */
ACTION(event, strcpy(f->config.sampling.event, step_rest(step)),
       strcpy(f->config.sampling.event_place, "conf:7"))

/* ---- entries ---- */

SCRIPT(an_entry_by_name, "table spr ~ Intel Sapphire Rapids",
       "table spr ~ config1        each  event",
       "table spr ~ OCR:READS_TO_CORE_REMOTE_DRAM; table spr ~ 0x730004477",
       "table spr ~ raw value: libpfm4 encodes 0x3cd",
       "table spr ~ Encoded by libpfm4: 9, by raw value: 1, not encoded: 0.",
       "table spr ~ result 0")

SCRIPT(an_unknown_name_shows_the_known,
       "table z80 ~ zen5; table z80 ~ snb_ep; table z80 ~ result ENOENT")

/* ---- this machine ---- */

SCRIPT(events_of_this_machine,
       "entry; hardware pebs loads LOADS precise; hardware pebs stores STORES",
       "hardware pebs stores LATER unencoded; set open_error stores = EACCES",
       "here ~ Entry of this CPU: skx",
       "here ~ pmu: sampling.event is not set to a PMU with its terms; here ~ pebs: available",
       "here ~ opens on CPU 0; here ~ Permission denied: CAP_PERFMON missing",
       "here ~ libpfm4 does not encode it: event not found",
       "here !~ event not found\n               type",
       "here ~ the first of these sources that counts; here ~ ibs: not available",
       "here ~ spe: not available: the kernel has no PMU arm_spe_0")

/* For numa-migrctl doctor. */
SCRIPT(sources_are_listed_as_json, "entry; hardware pebs loads LOADS; json ~ result 0",
       "json ~ \"sources\": [\n    \"pebs\"\n  ]; json ~ \"counters\": false; json !~ \"trial\"")

SCRIPT(a_trial_that_is_refused_has_a_reason,
       "set open_error sideband = EACCES; trial ~ \"errno\": 13; trial ~ result 0")

SCRIPT(configuration_restrictions_are_reported,
       "set source = faults; here ~ none of these sources is tried",
       "set source = ibs; here ~ page faults replace it")

SCRIPT(a_misspelt_pmu, "pmu numalab/x=1/; set list_error pmu = EINVAL",
       "here ~ pmu numalab/x=1/: not usable: a term is not a format")

SCRIPT(a_misspelt_event, "here ~ event: sampling.event is not set to an event",
       "event MEM_LOAD_RETIRED:L9_MISS; set list_error event = ENOPKG",
       "here ~ event MEM_LOAD_RETIRED:L9_MISS: not an event of this CPU",
       "check ~ conf:7: sampling.event: found \"MEM_LOAD_RETIRED:L9_MISS\", allowed: an event of "
       "this CPU that libpfm4 encodes (invalid event attribute), remove",
       "check ~ result EINVAL; event MEM_LOAD_RETIRED:L3_MISS; check = result 0; event ",
       "check = result 0; pmu numalab/period=9/; check ~ result 0",
       "check ~ conf:7: warning: sampling.event: \"numalab/period=9/\" has no effect: this machine "
       "has no such PMU")

RUN_TESTS()
