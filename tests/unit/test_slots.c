/* SPDX-License-Identifier: MIT */
/* The file of narrowed affinities: what is read of it, and when it counts as another boot's. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/affinity/slots.h"
#include "move_fixture.h"

#define ANOTHER_BOOT "ffffffff-0000-0000-0000-000000000001"

static struct nm_narrowing narrowing(void)
{
	const struct nm_narrowing terms = {.tid = 101,
					   .pid = 100,
					   .start_ticks = 500,
					   .given_ticks = 1500,
					   .decision = 7,
					   .unrestricted = true,
					   .original = hwloc_bitmap_alloc_full(),
					   .target = hwloc_bitmap_alloc()};
	hwloc_bitmap_clr_range(terms.original, 8, -1);
	hwloc_bitmap_set_range(terms.target, 2, 3);
	return terms;
}

static void take_a_slot(const char *boot)
{
	nm_auto(nm_narrowing_clear) struct nm_narrowing terms = narrowing();
	nm_auto(nm_slots_freep) struct nm_slots *slots = NULL;
	assert_int_equal(nm_slots_open(world->directory, boot, &slots), 0);
	assert_int_equal(nm_slots_take(slots, 3, &terms), 0);
}

static size_t used(const char *boot)
{
	nm_auto(nm_slots_contents_clear) struct nm_slots_contents contents = {0};
	assert_int_equal(nm_slots_read(world->directory, boot, &contents), 0);
	assert_int_equal(contents.damaged, 0);
	return contents.used;
}

TEST(slots_are_those_of_their_boot)
{
	take_a_slot(WORLD_BOOT);
	assert_int_equal(used(WORLD_BOOT), 1);
	assert_int_equal(used(ANOTHER_BOOT), 0);
	assert_int_equal(used(WORLD_BOOT), 1);
}

TEST(a_file_of_another_boot_is_emptied)
{
	take_a_slot(ANOTHER_BOOT);
	nm_auto(nm_slots_freep) struct nm_slots *slots = NULL;
	assert_int_equal(nm_slots_open(world->directory, WORLD_BOOT, &slots), 0);
	assert_int_equal(used(WORLD_BOOT), 0);
	assert_int_equal(used(ANOTHER_BOOT), 0);
}

/* Its end shows that all of it was written. */
TEST(a_line_without_its_end_is_none)
{
	char line[NM_NARROWING_BYTES + 1];
	nm_auto(nm_narrowing_clear) struct nm_narrowing terms = narrowing();
	nm_auto(nm_narrowing_clear) struct nm_narrowing found = {0};
	assert_int_equal(nm_narrowing_format(&terms, line), 0);
	assert_int_equal(nm_narrowing_parse(line, &found), 0);
	assert_true(found.tid == 101 && found.pid == 100 && found.start_ticks == 500 &&
		    found.given_ticks == 1500 && found.decision == 7 && found.unrestricted);
	assert_true(hwloc_bitmap_isequal(found.original, terms.original) &&
		    hwloc_bitmap_isequal(found.target, terms.target));
	size_t length = strlen(line);
	line[length - 1] = '3'; /* of a longer line that was there before */
	assert_int_equal(nm_narrowing_parse(line, &found), -EINVAL);
	while (length-- > 0) {
		line[length] = '\0';
		assert_int_equal(nm_narrowing_parse(line, &found), -EINVAL);
	}
}

RUN_TESTS()
