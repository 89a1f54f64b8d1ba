/* SPDX-License-Identifier: MIT */
/* Attributes of cgroups and pages: the values that prevent page moves. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"

/* A thread on node 0 whose pages are all on node 2. */
#define GROUP "space 24 node2; touch 1000 0-23 from cpu0; group /; move_group 1000 /a.slice; "

QUANTITY(tracked, nm_pages_counts(nm_memory_pages(world.daemon.pipeline.memory)).tracked)

SCRIPT(observed_pages_stay_and_are_counted,
       GROUP "attribute /a.slice observe; begin pages; run 30; pages node2 = 24",
       "page_decisions = 0; tracked = 24; attribute /a.slice on; until pages node0 = 24 within 30")

SCRIPT(pages_of_excluded_processes_are_ignored,
       GROUP "attribute /a.slice off; begin pages; run 30; pages node2 = 24; tracked = 0")

/* Pages in the queue of the mover when the attribute is set are not moved. */
SCRIPT(queued_pages_are_dropped,
       GROUP "begin pages; set mover_asleep = 1; until batches > 0 within 30",
       "attribute /a.slice observe; run 10; set mover_asleep = 0; run 20; pages node2 = 24")

RUN_TESTS()
