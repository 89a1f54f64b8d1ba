/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for the mover. Batches have a letter as name:
 *
 *	batch A 100; to A 1-3 node2; huge A 0-2	steps to node 1, of the first pages of the process
 *	submit A; refuse B EAGAIN		accepts it, or not
 *	work; hold; release; pass_ms 10		runs the mover until it waits; keeps a call waiting
 *	collect A; done A; done nothing		after the mover has worked, or not
 *	run A					all of that
 *	fates A moved 10 failed 1		of its steps, in their order
 *	put 0-9 node2; put 5 absent		pages of the process
 */
#ifndef NM_TEST_MOVER_WORDS_H
#define NM_TEST_MOVER_WORDS_H

#include "mover_fixture.h"

#include "../support/script.h"

static struct test *mover_test;
static struct nm_page_batch *named[26];
static bool in_mover[26];

static inline int open_mover(void **state)
{
	int r = set_up(state);
	mover_test = *state;
	return r;
}

static inline int close_mover(void **state)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(named); i++) {
		if (!in_mover[i])
			nm_page_batch_free(named[i]);
		named[i] = NULL;
		in_mover[i] = false;
	}
	return tear_down(state);
}

static inline unsigned letter_of(const struct step *step)
{
	if (step->count == 0 || !isupper((unsigned char)step->word[0][0]) || step->word[0][1])
		script_fail(step, "no batch is named");
	return (unsigned)(step->word[0][0] - 'A');
}

static inline struct nm_page_batch *batch_of(const struct step *step)
{
	struct nm_page_batch *batch = named[letter_of(step)];
	if (!batch)
		script_fail(step, "there is no such batch");
	return batch;
}

/* ---- batches ---- */

WORD(batch)
{
	const unsigned letter = letter_of(step);
	if (!in_mover[letter])
		nm_page_batch_free(named[letter]);
	named[letter] = fake_batch(U(0));
	in_mover[letter] = false;
}

static inline unsigned last_of(const struct step *step)
{
	return step->nr_numbers > 2 ? U(1) : U(0);
}

WORD(to)
{
	for (unsigned i = U(0); i <= last_of(step); i++)
		batch_of(step)->steps[i].to = (int16_t)step->number[step->nr_numbers - 1];
}

/* from A 3 node2, or from A 0-3 -1: sampled on any node */
WORD(from)
{
	for (unsigned i = U(0); i <= last_of(step); i++)
		batch_of(step)->steps[i].from = (int16_t)step->number[step->nr_numbers - 1];
}

/* huge A 0-2: huge pages, of the first blocks of the process */
WORD(huge)
{
	for (unsigned i = U(0); i <= U(1); i++)
		make_huge(&batch_of(step)->steps[i], i);
}

/* skip A 400: its pages are farther on */
WORD(skip)
{
	for (size_t i = 0; i < batch_of(step)->count; i++)
		batch_of(step)->steps[i].address += U(0) * (uint64_t)FAKE_SMALL;
}

KNOB(pid, batch_of(step)->pid)
KNOB(ticks, batch_of(step)->start_ticks)
KNOB(domain, batch_of(step)->domain)
KNOB(bulk, batch_of(step)->bulk)
KNOB(rollback, batch_of(step)->rollback)
KNOB(address, batch_of(step)->steps[U(0)].address)
KNOB(step_bytes, batch_of(step)->steps[U(0)].bytes)
QUANTITY(error, batch_of(step)->error)
QUANTITY(moved, batch_of(step)->moved)
QUANTITY(found_on, batch_of(step)->steps[U(0)].found_on)
QUANTITY(step_error, batch_of(step)->steps[U(0)].error)
QUANTITY(batch_calls, batch_of(step)->calls)

static const char *const fate_names[] = {
	[NM_PAGE_FATE_UNTRIED] = "untried",	[NM_PAGE_FATE_MOVED] = "moved",
	[NM_PAGE_FATE_ELSEWHERE] = "elsewhere", [NM_PAGE_FATE_REFUSED] = "refused",
	[NM_PAGE_FATE_FAILED] = "failed",
};

/* Prints the fates of the steps, each with the number of steps in a row that had it. */
static inline void print_fates(const struct nm_page_batch *batch, char *text, size_t size)
{
	size_t length = 0, first = 0;
	text[0] = '\0';
	for (size_t i = 1; i <= batch->count; i++) {
		if (i < batch->count && batch->steps[i].fate == batch->steps[first].fate)
			continue;
		length += (size_t)snprintf(text + length, size - length, "%s%s %zu",
					   length ? " " : "", fate_names[batch->steps[first].fate],
					   i - first);
		first = i;
	}
}

WORD(fates)
{
	char found[400];
	const char *expected = strstr(step->text, step->word[0]) + 2;
	print_fates(batch_of(step), found, sizeof(found));
	if (strcmp(found, expected) != 0)
		script_fail(step, "found %s", found);
}

/* ---- the mover ---- */

ACTION(start, start(mover_test))

static inline int submit(const struct step *step)
{
	start(mover_test);
	int r = nm_mover_submit(mover_test->mover, batch_of(step));
	in_mover[letter_of(step)] = r == 0;
	return r;
}

WORD(submit)
{
	int r = submit(step);
	if (r < 0)
		script_fail(step, "found %s", script_show("error", r));
}

WORD(refuse)
{
	int r = submit(step);
	if (r != (int)script_value(step, "error", step->word[1]))
		script_fail(step, "found %s", script_show("error", r));
}

static inline void expect_done(const struct step *step)
{
	struct nm_page_batch *batch = fake_done(mover_test->mover);
	unsigned found = 0;
	while (batch && found < NM_ARRAY_SIZE(named) && named[found] != batch)
		found++;
	if (strcmp(step->word[0], "nothing") == 0 ? batch != NULL : batch != batch_of(step))
		script_fail(step, "found %c", batch ? 'A' + (int)found : '-');
	if (batch)
		in_mover[found] = false;
}

ACTION(done, expect_done(step))
ACTION(work, fake_work(mover_test->memory, mover_test->mover))

WORD(collect)
{
	fake_work(mover_test->memory, mover_test->mover);
	expect_done(step);
}

WORD(run)
{
	word_submit(step);
	word_collect(step);
}

ACTION(hold, fake_hold(mover_test->memory, mover_test->mover))
ACTION(release, fake_release(mover_test->memory))
ACTION(pass_ms, fake_pass_ms(mover_test->memory, mover_test->mover, (uint64_t)N(0)))
ACTION(drop, nm_mover_drop(mover_test->mover, FAKE_PID, step_has(step, "bulk")))
ACTION(configure, nm_mover_configure(mover_test->mover, mover_test->topology, mover_test->config))
QUANTITY(waiting, nm_mover_counts(mover_test->mover).waiting)
QUANTITY(all_moved, nm_mover_counts(mover_test->mover).moved)
QUANTITY(bytes, nm_mover_counts(mover_test->mover).bytes)
QUANTITY(all_calls, nm_mover_counts(mover_test->mover).calls)
QUANTITY(map_reads, nm_mover_counts(mover_test->mover).map_reads)
QUANTITY(backoffs, nm_mover_counts(mover_test->mover).backoffs)
QUANTITY(splits_seen, nm_mover_counts(mover_test->mover).splits)
QUANTITY(longest_ns, nm_mover_counts(mover_test->mover).call_longest_ns)
QUANTITY(barred, nm_mover_is_barred(mover_test->mover))
QUANTITY(room_bytes, nm_mover_room_bytes(mover_test->mover, mover_test->fake->now_ns))
KNOB(max_mb_per_s, mover_test->config->pages.max_mb_per_s)
KNOB(keep_free_percent, mover_test->config->pages.keep_free_percent)
KNOB(also, mover_test->config->pages.also)
NAMES(also, {"bound", NM_ALSO_BOUND}, {"shared", NM_ALSO_SHARED}, {"isolated", NM_ALSO_ISOLATED})
KNOB(nohz_full, mover_test->topology->cpus[U(0)].nohz_full)
KNOB(isolated, mover_test->topology->cpus[U(0)].isolated)
KNOB(os_id, mover_test->topology->nodes[U(0)].os_id)

/* ---- the process ---- */

/* put 0-9 node2, or put 7 absent */
WORD(put)
{
	const bool absent = step_has(step, "absent");
	const unsigned last = step->nr_numbers > (absent ? 1 : 2) ? U(1) : U(0);
	for (unsigned i = U(0); i <= last; i++)
		mover_test->memory->node[i] =
			absent ? -ENOENT : (int)step->number[step->nr_numbers - 1];
}

static inline unsigned count_pages(const struct step *step)
{
	const bool ranged = step->nr_numbers > 1;
	unsigned count = 0;
	for (unsigned i = ranged ? U(1) : 0; i <= (ranged ? U(2) : FAKE_PAGES - 1); i++)
		count += mover_test->memory->node[i] == (int)N(0);
	return count;
}

/* pages node1, or pages node1 0-99 */
QUANTITY(pages, count_pages(step))
KNOB(page_error, mover_test->memory->add_error[U(0)])
KNOB(busy, mover_test->memory->busy[U(0)])
KNOB(whole, mover_test->memory->whole[U(0)])
ACTION(kill, fake_kill(mover_test->fake, FAKE_PID))

/* Its first thread has exited, and another one continues. */
WORD(leave_thread)
{
	(void)fake_clone(mover_test->fake, FAKE_PID, U(0));
	mover_test->process->state = 'Z';
}

KNOB(process_ticks, mover_test->process->start_ticks)
KNOB(rss_kib, mover_test->process->rss_kb)
KNOB(barred_nodes, mover_test->memory->barred_nodes)
KNOB(call_error, mover_test->memory->call_error)
KNOB(where_error, mover_test->memory->where_error)
KNOB(call_ns, mover_test->memory->call_ns)
KNOB(page_ns, mover_test->memory->page_ns)
KNOB(read_ns, mover_test->memory->read_ns)
KNOB(hold_reads, mover_test->memory->hold_reads)
KNOB(free_kib, mover_test->memory->free_kib[U(0)])
KNOB(idle_kib, mover_test->memory->idle_kib[U(0)])
KNOB(huge_blocks, mover_test->memory->huge_blocks[U(0)])
KNOB(pool_pages, mover_test->memory->pool_pages[U(0)])
KNOB(splits, mover_test->memory->splits)
QUANTITY(calls, mover_test->memory->calls)
QUANTITY(reads, mover_test->memory->reads)
QUANTITY(largest, mover_test->memory->largest)
QUANTITY(begun, mover_test->memory->begun)
QUANTITY(cancelled, mover_test->memory->cancelled)

#endif
