/* SPDX-License-Identifier: MIT */
#include "advise/advise.h"

#include <string.h>
#include <time.h>

#include "advice.h"
#include "ctl.h"
#include "numa-migrd/proc.h"
#include "show_findings.h"

#define LOOK_S 1 /* time for which the kernel's balancing is observed, if it is on */

static void watch_balancing(struct nm_advise_input *advice, struct nm_platform *platform)
{
	if (!nm_balances_nodes(advice->balancing))
		return;
	struct nm_hinting before = nm_hinting_read(platform);
	uint64_t start_ns = platform->ops->now_ns(platform);
	(void)nanosleep(&(struct timespec){.tv_sec = LOOK_S}, NULL);
	struct nm_hinting after = nm_hinting_read(platform);
	uint64_t took_ns = platform->ops->now_ns(platform) - start_ns;
	nm_advice_set_hinting(advice, &before, &after, (double)took_ns / (double)NM_NSEC_PER_SEC);
}

static int advise_process(uint32_t pid, const json_t *threads, const json_t *pages,
			  struct nm_findings *findings)
{
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_topology_freep) struct nm_topology *topology = NULL;
	nm_auto(nm_advice_clear) struct nm_advise_input advice = {0};
	const struct nm_platform_options direct = {.root_path = "/", .dry_run = true};
	const struct nm_topology_source here = {0};
	char error[256];

	int r = nm_topology_load(&here, error, sizeof(error), &topology);
	if (r == 0)
		r = nm_platform_linux_new(&direct, &platform);
	if (r == 0)
		r = nm_advice_take(&advice, pid, topology, threads, pages);
	if (r != 0)
		return r;
	nm_advice_look(&advice, platform, topology);
	watch_balancing(&advice, platform);
	return nm_advise(&advice, findings);
}

int nm_ctl_advise(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	nm_auto(json_decrefp) json_t *threads = NULL;
	nm_auto(json_decrefp) json_t *pages = NULL;
	uint32_t pid;
	int r = nm_ctl_pid(words[0], &pid);

	if (r == EXIT_SUCCESS)
		r = nm_ctl_ask_once("ListThreads", NM_RIGHT_READ, &threads, "u", pid);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_ask_once("Pages", NM_RIGHT_READ, &pages, "u", pid);
	if (r != EXIT_SUCCESS)
		return r;
	r = advise_process(pid, threads, pages, &findings);
	if (r < 0) {
		(void)fprintf(stderr, "numa-migrctl: process %u cannot be examined: %s\n", pid,
			      strerror(-r));
		return EXIT_FAILURE;
	}
	return nm_ctl_show_findings(ctl, &findings, 0);
}
