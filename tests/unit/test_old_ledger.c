/* SPDX-License-Identifier: MIT */
/* The ledger that versions before 0.9 left after a crash is restored once. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <string.h>

#include "move_fixture.h"

#define HEADER "numa-migrd-ledger 1 " WORLD_BOOT "\n"

static char ledger[4096];

static void begin(const char *header)
{
	snprintf(ledger, sizeof(ledger), "%s", header);
}

/* The thread had all CPUs, and is on those of node 1 since 5 s after its start. */
static void give(uint32_t tid)
{
	const struct fake_thread *thread = fake_get(fake, tid);
	snprintf(ledger + strlen(ledger), sizeof(ledger) - strlen(ledger),
		 "give %u %u %llu %llu 1 50 1000 0 0 0 1 0-7 2-3 .\n", tid, thread->pid,
		 (unsigned long long)thread->start_ticks,
		 (unsigned long long)thread->start_ticks + 500);
}

static void give_back(uint32_t tid)
{
	snprintf(ledger + strlen(ledger), sizeof(ledger) - strlen(ledger),
		 "return %u %llu %llu .\n", tid,
		 (unsigned long long)fake_get(fake, tid)->start_ticks,
		 (unsigned long long)fake_ticks(fake));
}

/* Narrowed by the service, not by its owner. */
static void narrow(uint32_t tid)
{
	(void)fake_set_mask(fake, tid, world_node(1));
}

static int restore(struct nm_restoration *found)
{
	const struct nm_restore_input input = {.platform = &fake->platform,
					       .topology = world->topology,
					       .directory = world->directory,
					       .boot_id = WORLD_BOOT};
	fixture_file(world->root, NM_LEDGER_NAME, ledger);
	return nm_ledger_restore(&input, found);
}

static bool there_is(const char *name)
{
	return faccessat(world->directory, name, F_OK, 0) == 0;
}

TEST(threads_and_inheritors_are_restored)
{
	struct nm_restoration found;
	begin(HEADER);
	give(101);
	narrow(101);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 50, 201);
	fake_pin(fake, 201, world_node(1));
	assert_int_equal(restore(&found), 2);
	assert_no_trace();
	assert_false(there_is(NM_LEDGER_NAME));
}

/* Its owner has chosen the same CPUs since. */
/* SECURITY: others-pins */
TEST(a_returned_affinity_is_its_owners)
{
	struct nm_restoration found;
	begin(HEADER);
	give(101);
	give_back(101);
	fake_pin(fake, 101, world_node(1));
	assert_int_equal(restore(&found), 0);
	assert_no_trace();
}

/* Also in the line that a crash has cut. */
/* SECURITY: ledger */
TEST(a_damaged_ledger_is_kept)
{
	struct nm_restoration found;
	begin(HEADER "give 7 7 rubbish .\n");
	give(101);
	narrow(101);
	strcat(ledger, "give 10");
	assert_int_equal(restore(&found), 1);
	assert_int_equal(found.bad_lines, 1);
	assert_int_equal(found.first_bad_line, 2);
	assert_no_trace();
	assert_false(there_is(NM_LEDGER_NAME));
	assert_true(there_is(NM_LEDGER_DAMAGED));
}

TEST(a_refusal_keeps_the_ledger)
{
	struct nm_restoration found;
	begin(HEADER);
	give(101);
	narrow(101);
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	assert_int_equal(restore(&found), 0);
	assert_int_equal(found.failed, 1);
	assert_true(there_is(NM_LEDGER_NAME));
	assert_int_equal(restore(&found), 1);
	assert_no_trace();
}

TEST(another_boot_or_form_moves_nothing)
{
	struct nm_restoration found;
	begin("numa-migrd-ledger 1 another\n");
	give(101);
	fake_pin(fake, 101, world_node(1));
	assert_int_equal(restore(&found), 0);
	assert_no_trace();
	begin("numa-migrd-ledger 0 " WORLD_BOOT "\n");
	give(101);
	assert_int_equal(restore(&found), -EBADMSG);
	assert_no_trace();
	assert_true(there_is(NM_LEDGER_NAME));
}

RUN_TESTS()
