/* SPDX-License-Identifier: MIT */
/* Attributes of cgroups: which processes are managed, and how soon a change applies: within ten
 * seconds. */
#define SET_UP set_up_attributes
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sched.h>

#include "task_table_words.h"

/* Process 100 in a service of a slice, 200 elsewhere. */
static int set_up_attributes(void **state)
{
	(void)set_up(state);
	fake_group(fake, "/");
	fake_group(fake, "/a.slice");
	fake_group(fake, "/a.slice/x.service");
	fake_move(fake, 100, "/a.slice/x.service");
	fake_move(fake, 200, "/other");
	return 0;
}

/* slice off, service off: the attribute of the group; without a value it is removed */
static void set_attribute(const struct step *step, const char *group)
{
	fake_set_attribute(fake, group, step->count > 0 ? step->word[0] : NULL);
}

ACTION(slice, set_attribute(step, "/a.slice"))
ACTION(service, set_attribute(step, "/a.slice/x.service"))
ACTION(group_off, fake_set_attribute(fake, step->word[0], "off"))
ACTION(group, fake_group(fake, step->word[0]))
ACTION(own_service, fake_own_group(fake, "/a.slice/x.service", U(0)))
QUANTITY(attribute_reads, fake->attribute_reads)
KNOB(attribute, config->targets.cgroup_attribute)
NAMES(attribute, {"only", NM_ATTRIBUTE_ONLY}, {"ignore", NM_ATTRIBUTE_IGNORE})

SCRIPT(test_off_and_back,
       "run 0.5; managed 101; slice off; run 0.5 10; unmanaged 101; managed 200; processes_off = 1",
       "threads_known = 1; slice; run 0.5 10; managed 101")

/* Also for a sleeping process, as its threads may be assigned. */
SCRIPT(test_off_asleep, "run 0.5; service off; idle 10; unmanaged 101; managed 200")

/* Sleep alone changes nothing: the process keeps its assignments. */
SCRIPT(test_asleep, "run 0.5; idle 30; managed 101 200")

/* The attributes are read when a process is checked, once in ten seconds, also if it sleeps. */
/* SECURITY: many-groups */
SCRIPT(test_reads_in_ten_seconds,
       "group /other; run 0.5; attribute_reads = 5; idle 40; attribute_reads in 25..30")

/* With longer intervals the attribute is read in each. */
SCRIPT(test_long_intervals, "run 0.5",
       "each 2: slice off; sleep_ms 7000; run 0.5; unmanaged 101; slice; sleep_ms 7000; run 0.5; "
       "managed 101")

/* Attributes of a process that is too small to be managed are not read. */
SCRIPT(test_attributes_of_small_processes_are_not_read,
       "slice off; run 0.01 2; attribute_reads = 0; set rss_kb 100 = 1024; set rss_kb 200 = 1024",
       "run 0.5 10; attribute_reads = 0")

SCRIPT(test_observe, "run 0.5; slice observe; run 0.5 10; managed 101; only_watched 101 = 1",
       "never_moves 101 = 1; only_watched 200 = 0; processes_observed = 1; slice on; run 0.5 10",
       "only_watched 101 = 0; barred_until 101 = 0")

SCRIPT(test_on_includes,
       "include command prog200; configure; run 0.5; unmanaged 101; slice on; run 0.5 10",
       "managed 101 200")

SCRIPT(test_exclude_takes_precedence,
       "slice on; exclude command prog100; configure; run 0.5 2; unmanaged 101")

SCRIPT(test_only,
       "set attribute = only; include command prog*; configure; run 0.5; unmanaged 101 200",
       "slice on; run 0.5 10; managed 101; unmanaged 200")

/* Users may restrict processes included by root to observing; their "on" is ignored. */
#define RESTRICTS(word, watched)                                                                   \
	"slice; service " word "; configure; run 0.5; unmanaged 101; processes_observed = 0; "     \
	"slice on; run 0.5 10; managed 101; only_watched 101 = " watched
#define ONLY_RESTRICTS                                                                             \
	RESTRICTS("observe", "1"), RESTRICTS("on", "0"), RESTRICTS("lbma", "1"),                   \
		RESTRICTS("rubbish", "1"), RESTRICTS("of\x1b[1m", "1")

/* The owner of a directory can only exclude processes; only root includes them. */
/* SECURITY: user, attributes */
SCRIPT(test_only_root_includes_processes, "own_service 1000; include command other", ONLY_RESTRICTS,
       "set attribute = only", ONLY_RESTRICTS)

/* An attribute set by root expires when another user becomes owner of the directory. */
SCRIPT(test_an_attribute_expires_with_its_owner,
       "include command other; service observe; configure; run 0.5; managed 101",
       "own_service 1000; run 0.5 10; unmanaged 101")

SCRIPT(test_ignore,
       "slice off; set attribute = ignore; configure; run 0.5; managed 101; attribute_reads = 0")

/* Eligibility by size is still required. */
SCRIPT(test_on_does_not_override_size, "set rss_kb 100 = 1024; slice on; run 0.5 10; unmanaged 101")

/* A process that moves to another group is detected at its next check. */
SCRIPT(test_moved,
       "group /off; group_off /off; run 0.5 10; move 100 /off; idle 10; run 0.5; unmanaged 101")

RUN_TESTS()
