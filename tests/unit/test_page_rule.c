/* SPDX-License-Identifier: MIT */
/* When a page belongs to another node: equation 6, and conditions that delay the move. Words are
 * about page 1, which is on node 0. */
#define SET_UP set_up_pages
#define TEAR_DOWN tear_down_pages
#include "../support/test.h"

#include "pages_fixture.h"
#define SCRIPT_STEP() (void)0
#include "../support/script.h"

/* ---- words ---- */

static int touch_on(int16_t page_node, uint16_t node)
{
	struct nm_page_touch access = {
		.page = {.address = PAGE(1), .owner = owner}, .node = node, .page_node = page_node};
	return touch(&access).target;
}

/* moves 3 1 = 0: whether a new page with 3 accesses of node 1, after 1 of node 2, moves to node 1
 */
static bool moves(unsigned most, unsigned second)
{
	static uint64_t number = 1;
	uint64_t address = PAGE(++number);
	if (times_from_node(second, address, 2) >= 0)
		settle(address, NM_PAGE_DROPPED, 0);
	return times_from_node(most, address, 1) == 1;
}

/* settle moved 1: the outcome of a move to node 1 */
WORD(settle)
{
	settle(PAGE(1), (enum nm_page_outcome)script_value(step, "outcome", step->word[0]), U(0));
}

NAMES(outcome, {"moved", NM_PAGE_MOVED}, {"failed", NM_PAGE_FAILED}, {"dropped", NM_PAGE_DROPPED})
KNOB(now, now_s)
KNOB(page_factor, config->rules.page_factor)
KNOB(page_min_accesses, config->rules.page_min_accesses)
KNOB(page_cooldown_s, config->rules.page_cooldown_s)
ACTION(configure, nm_pages_configure(pages, config))
ACTION(renew, renew_pages(4))
ACTION(pass, now_s += U(0))
ACTION(hold, nm_pages_hold(pages, owner, U(0)))
ACTION(next_owner, assert_int_equal(nm_pages_open(pages, &owner), 0))
ACTION(stand_in, nm_pages_stand_in(pages, U(0), U(1)))
QUANTITY(moves, moves(U(0), U(1)))
/* from node1 50 = -1: the target after 50 accesses; on 3 node1 = 2: that of an
 * access if the page is on node 3 */
QUANTITY(from, times_from_node(U(1), PAGE(1), U(0)))
QUANTITY(on, touch_on((int16_t)N(0), (uint16_t)U(1)))
QUANTITY(page_node, look(PAGE(1)).page_node)
QUANTITY(accesses, look(PAGE(1)).accesses[U(0)])
QUANTITY(pending, look(PAGE(1)).pending)
QUANTITY(barred, look(PAGE(1)).barred)
QUANTITY(left_alone, look(PAGE(1)).left_alone)
QUANTITY(ping_pong, nm_pages_counts(pages).ping_pong)

/* ---- rules ---- */

SCRIPT(test_equation_6, "moves 1 0 = 0; moves 2 0 = 1; moves 3 1 = 0; moves 4 1 = 1")

/* More than 4 are needed, then more than 2.5. */
SCRIPT(test_factor, "set page_factor = 1.5; configure; moves 4 2 = 0; moves 5 2 = 1; moves 2 1 = 0",
       "moves 3 1 = 1")

SCRIPT(test_home_must_be_known, "each 10: on -1 node1 = -1",
       "page_node = -1; on 3 node1 = 1; page_node = 3")

/* Node 3 has no CPUs and is represented by node 1, so the page is already local. */
SCRIPT(test_memory_beside_the_thread_stays, "stand_in 3 1", "each 10: on 3 node1 = -1",
       "until on 3 node2 = 2 within 30")

SCRIPT(test_found_once,
       "from node1 2 = 1; pending = 1; from node1 9 = -1; settle dropped 0; from node1 1 = 1")

/* A new one is held, too. */
SCRIPT(test_pages_wait_until_first_mapping,
       "hold 1; from node1 50 = -1; hold 0; from node1 1 = 1; next_owner; from node1 50 = -1")

/* A few accesses more are chance: (9, 3) differ by 6 = 1.73 times the root of their sum. */
SCRIPT(test_evidence,
       "set page_min_accesses = 1; configure; moves 3 0 = 0; moves 4 0 = 1; moves 5 1 = 0",
       "moves 6 1 = 1; moves 9 3 = 0; moves 10 3 = 1")

SCRIPT(test_min_accesses,
       "set page_min_accesses = 6; configure; from node1 5 = -1; from node1 1 = 1")

SCRIPT(test_move_halves_failure_does_not,
       "from node2 1 = -1; from node1 4 = 1; settle failed 0; accesses 1 = 4; page_node = 0",
       "from node1 1 = 1; settle moved 1; accesses 1 = 2; accesses 2 = 0; page_node = 1")

#define COOLDOWN(outcome)                                                                          \
	"set page_cooldown_s = 10; renew; from node1 2 = 1; settle " outcome " 1; barred = 1; "    \
	"pass 9; from node2 50 = -1; pass 1; barred = 0; from node2 1 = 2"

SCRIPT(test_cooldown, COOLDOWN("moved"), COOLDOWN("failed"))

/* Seconds are kept in 16 bits. */
SCRIPT(test_cooldown_over_the_turn, "set now = 65530; " COOLDOWN("moved"),
       "set now = 131071; " COOLDOWN("failed"))

SCRIPT(test_ping_pong, "from node0 1 = -1",
       "each 2: left_alone = 0; settle moved 1; left_alone = 0; settle moved 0",
       "left_alone = 1; from node1 100 = -1; ping_pong = 1; settle moved 1; ping_pong = 1")

SCRIPT(test_gradual_drift_is_not_ping_pong, "from node0 1 = -1",
       "each 7: settle moved 1; settle moved 2; settle moved 3; settle moved 0",
       "settle moved 1; left_alone = 0")

RUN_TESTS()
