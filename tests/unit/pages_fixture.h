/* SPDX-License-Identifier: MIT */
/* A table of pages, its owner, and helpers for accesses. */
#ifndef NUMA_MIGRD_PAGES_FIXTURE_H
#define NUMA_MIGRD_PAGES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "observe/memory.h"

#define PAGE(number) (0x7f0000000000ULL + (uint64_t)(number)*4096)

static const uint64_t pages_key[4] = {0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0,
				      0x082efa98ec4e6c89};
static struct nm_config *config;
static struct nm_pages *pages;
static uint16_t owner;
static uint32_t now_s;

static void renew_pages(unsigned nr_nodes)
{
	nm_pages_free(pages);
	pages = NULL;
	nm_pages_new(config, nr_nodes, pages_key, &pages);
	assert_int_equal(nm_pages_open(pages, &owner), 0);
	nm_pages_hold(pages, owner, false);
}

/* Only the rule of the paper, on four nodes. */
static int set_up_pages(void **state)
{
	(void)state;
	if (nm_config_default(&config) < 0)
		return -1;
	config->rules.max_tracked = 4096;
	config->rules.page_min_accesses = 0;
	config->rules.page_cooldown_s = 0;
	config->rules.page_decay_s = 0;
	now_s = 1000;
	renew_pages(4);
	return 0;
}

static int tear_down_pages(void **state)
{
	(void)state;
	nm_pages_free(pages);
	pages = NULL;
	nm_config_free(config);
	return 0;
}

static inline struct nm_page_finding touch(const struct nm_page_touch *access)
{
	struct nm_page_finding finding = {.partner = 999, .target = 999};

	nm_pages_touch(pages, now_s, access, 1, &finding);
	return finding;
}

/* An access from a node to a page of node 0, without a particular thread. */
static inline int from_node(uint64_t address, unsigned node)
{
	struct nm_page_touch access = {.page = {.address = address, .owner = owner},
				       .node = (uint16_t)node,
				       .page_node = 0};

	return touch(&access).target;
}

static inline int times_from_node(unsigned times, uint64_t address, unsigned node)
{
	int target = -1;

	while (times--)
		target = from_node(address, node);
	return target;
}

static inline void settle(uint64_t address, enum nm_page_outcome outcome, unsigned node)
{
	struct nm_page_id page = {.address = address, .owner = owner};

	assert_int_equal(nm_pages_end_check(pages, now_s, &page, outcome, node), 0);
}

static inline struct nm_page_view look(uint64_t address)
{
	struct nm_page_id page = {.address = address, .owner = owner};
	struct nm_page_view view;

	assert_int_equal(nm_pages_look(pages, now_s, &page, &view), 0);
	return view;
}

static inline bool is_tracked(uint64_t address, uint16_t whose)
{
	struct nm_page_id page = {.address = address, .owner = whose};
	struct nm_page_view view;

	return nm_pages_look(pages, now_s, &page, &view) == 0;
}

#endif
