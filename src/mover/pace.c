// SPDX-License-Identifier: MIT
#include "pace.h"

#define FIRST_CHUNK 16U
#define GROWTH 4U /* limit from one call to the next */
#define SLOWEST 8 /* multiple of the limit above which the time of a call does not count */
/* Minimum number of base pages after slow calls. Besides the first call, such calls show whether it
 * is the pages that make calls slow. */
#define SLOW_CHUNK 64U
/* Each call drains every CPU, however few pages it moves. A worker may take 1 s without harm. */
#define BULK_CHUNK 1024U
#define BULK_LIMIT_NS NM_NSEC_PER_SEC
#define TARGET 0.25 /* intended time of a call, relative to the limit */
#define MEMORY 0.9  /* weight of a call, relative to the next one */
#define SPREAD 0.02 /* relative spread of call sizes that determines the cost of a page */
#define LEAST 0.001 /* minimum cost of a page, relative to the mean */
#define BURST_S 0.1 /* maximum burst, in seconds of max_mb_per_s */
#define REST 10	    /* multiple of a slow call for which its domain rests */
#define REST_MOST_NS (10 * (double)NM_NSEC_PER_SEC) /* shared: least */
#define MIB 1048576.0
/* A domain that used the mover alone for long does not wait for longer when others come. */
#define USED_MOST_NS ((double)NM_NSEC_PER_SEC) /* shared: least */

void nm_pace_init(struct nm_pace *pace, uint64_t now_ns)
{
	*pace = (struct nm_pace){.filled_ns = now_ns};
	pace->used.limit = USED_MOST_NS;
	pace->rests.limit = REST_MOST_NS;
	for (int class = 0; class < NM_PACE_CLASSES; class ++)
		pace->cost[class].chunk = class == NM_PACE_SMALL ? FIRST_CHUNK : 1;
}

void nm_pace_configure(struct nm_pace *pace, const struct nm_config *config)
{
	double bytes_per_s = (double)config->pages.max_mb_per_s * MIB;

	pace->bytes_per_ns = bytes_per_s / (double)NM_NSEC_PER_SEC;
	pace->burst_bytes = bytes_per_s * BURST_S;
	pace->interval_bytes = bytes_per_s * config->general.interval_s;
	pace->limit_ns = (uint64_t)(config->rules.call_limit_ms * (double)NM_NSEC_PER_MSEC);
	if (pace->bytes > pace->burst_bytes || pace->bytes == 0)
		pace->bytes = pace->burst_bytes;
}

static void pass_time(struct nm_pace *pace, uint64_t now_ns)
{
	if (now_ns > pace->filled_ns) {
		double passed_ns = (double)(now_ns - pace->filled_ns);
		pace->bytes += passed_ns * pace->bytes_per_ns;
		nm_quota_repay(&pace->rests, passed_ns);
		nm_quota_repay(&pace->used, passed_ns / 2); /* each domain earns half of the time */
		pace->filled_ns = now_ns;
	}
	if (pace->bytes > pace->burst_bytes)
		pace->bytes = pace->burst_bytes;
}

uint64_t nm_pace_wait_ns(struct nm_pace *pace, uint64_t now_ns)
{
	uint64_t wait = 0;

	pass_time(pace, now_ns);
	/* A call is not made for each page: it waits until 25 % of a burst is available. */
	double lack = pace->bytes > 0 ? 0 : pace->burst_bytes / 4 - pace->bytes;
	if (lack / pace->bytes_per_ns > (double)wait)
		wait = (uint64_t)(lack / pace->bytes_per_ns);
	return wait;
}

unsigned nm_pace_pages(const struct nm_pace *pace, enum nm_pace_class class, bool bulk)
{
	unsigned chunk = pace->cost[class].chunk;

	if (bulk && class == NM_PACE_SMALL && chunk < BULK_CHUNK)
		chunk = BULK_CHUNK;
	return chunk;
}

uint64_t nm_pace_bytes(const struct nm_pace *pace)
{
	return pace->bytes > 0 ? (uint64_t)pace->bytes : 0;
}

uint64_t nm_pace_room_bytes(struct nm_pace *pace, uint64_t now_ns)
{
	pass_time(pace, now_ns);
	double room = pace->interval_bytes + (pace->bytes < 0 ? pace->bytes : 0);
	return room > 0 ? (uint64_t)room : 0;
}

uint64_t nm_pace_slow_ns(const struct nm_pace *pace, bool bulk)
{
	return bulk && pace->limit_ns < BULK_LIMIT_NS ? BULK_LIMIT_NS : pace->limit_ns;
}

void nm_pace_charge(struct nm_pace *pace, uint64_t domain, double ns)
{
	nm_quota_add(&pace->used, domain, ns);
}

void nm_pace_spend(struct nm_pace *pace, uint64_t domain, uint64_t bytes)
{
	pace->bytes -= (double)bytes;
	nm_pace_charge(pace, domain, (double)bytes / pace->bytes_per_ns);
}

double nm_pace_used_ns(const struct nm_pace *pace, uint64_t domain)
{
	return nm_quota_of(&pace->used, domain);
}

/* ---- cost of calls ---- */

/*
 * Determines the cost of a page as the slope of the regression line through the calls, if their
 * sizes differ. Calls of one size do not determine the slope; in this case a change is attributed
 * to the fixed cost. The fixed cost is never negative, so a page costs at most the mean. Returns
 * whether the slope was determined.
 */
static bool learn_page_cost(struct nm_cost *cost)
{
	double mean = cost->ns / cost->pages;
	double spread = cost->calls * cost->pages2 - cost->pages * cost->pages;
	bool learned = spread > SPREAD * cost->calls * cost->pages2;

	if (learned)
		cost->page_ns = (cost->calls * cost->pages_ns - cost->pages * cost->ns) / spread;
	if (cost->page_ns > mean || cost->page_ns == 0)
		cost->page_ns = mean;
	if (cost->page_ns < mean * LEAST)
		cost->page_ns = mean * LEAST;
	return learned;
}

/* If the fixed cost of a call alone reaches the target, fewer pages would only result in more
 * calls. */
static unsigned choose_chunk(const struct nm_cost *cost, double target_ns)
{
	double fixed_ns = (cost->ns - cost->page_ns * cost->pages) / cost->calls;
	double left_ns = target_ns - fixed_ns;

	if (left_ns < target_ns / 2)
		left_ns = target_ns / 2;
	double pages = cost->page_ns > 0 ? left_ns / cost->page_ns : NM_PACE_PAGES_MOST;
	double most = (double)cost->chunk * GROWTH;
	if (pages > most)
		pages = most;
	if (pages > NM_PACE_PAGES_MOST)
		return NM_PACE_PAGES_MOST;
	return pages < 1 ? 1 : (unsigned)pages;
}

/* Halves the number of pages after a slow call. */
static void shrink(struct nm_cost *cost, unsigned least, unsigned pages)
{
	unsigned half = pages / 2 > least ? pages / 2 : least;

	if (cost->chunk > half)
		cost->chunk = half;
}

uint64_t nm_pace_resume_ns(const struct nm_pace *pace, uint64_t domain)
{
	double rest_ns = nm_quota_of(&pace->rests, domain);

	return rest_ns > 0 ? pace->filled_ns + (uint64_t)rest_ns : 0;
}

bool nm_pace_learn(struct nm_pace *pace, enum nm_pace_class class, bool bulk, uint64_t domain,
		   unsigned pages, uint64_t ns, uint64_t now_ns)
{
	struct nm_cost *cost = &pace->cost[class];
	bool slow = ns > nm_pace_slow_ns(pace, bulk);
	/* The time of a call that waited for another CPU depends little on its pages, so it is
	 * limited. */
	double most = (double)pace->limit_ns * SLOWEST, count = pages;
	double taken = (double)ns < most ? (double)ns : most;

	cost->calls = cost->calls * MEMORY + 1;
	cost->pages = cost->pages * MEMORY + count;
	cost->pages2 = cost->pages2 * MEMORY + count * count;
	cost->ns = cost->ns * MEMORY + taken;
	cost->pages_ns = cost->pages_ns * MEMORY + taken * count;
	bool learned = learn_page_cost(cost) && taken < most;
	double target_ns = (double)pace->limit_ns * TARGET;
	cost->chunk = choose_chunk(cost, target_ns);
	/* If the call is known to have waited rather than worked, the number of pages is not the
	 * cause. */
	if (slow && (!learned || cost->page_ns * count > target_ns / 2))
		shrink(cost, class == NM_PACE_SMALL ? SLOW_CHUNK : 1, pages);
	pass_time(pace, now_ns);
	if (slow)
		nm_quota_add(&pace->rests, domain, REST * (double)ns);
	return slow;
}
