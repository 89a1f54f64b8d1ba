/* SPDX-License-Identifier: MIT */
/* Making memory accesses visible where nothing else does (sampling.md section 3); opt-in. */
#include <string.h>

#include "daemon.h"

static void tell_refusal(struct nm_daemon *daemon, const char *what, int error)
{
	const char *remedy =
		error == -EPERM
			? "the root helper holds each act against /etc/numa-migrd.conf, which "
			  "must belong to root, be writable by root only, and say so"
		: error == -EBUSY
			? "the process itself uses soft-dirty pages; leave it out of the targets"
		: error == -ENOENT || error == -ECONNREFUSED || error == -EACCES
			? "is numa-migrd-helper.socket running? systemctl status "
			  "numa-migrd-helper.socket"
			: "see systemctl status numa-migrd-helper";
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING, "%s is refused: %s; %s", what,
		  strerror(-error), remedy);
}

void nm_inject_configure(struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	bool manage = daemon->config->sampling.inject == NM_INJECT_NUMA_BALANCING;

	daemon->injector = (struct nm_injector){0};
	daemon->inject_dead = false;
	int r = platform->ops->numa_balancing_set(platform, manage ? 1 : -1);
	if (manage && r < 0)
		tell_refusal(daemon, "switching kernel.numa_balancing on", r);
}

static int compare_pid(const void *key, const void *target)
{
	uint32_t left = *(const uint32_t *)key;
	uint32_t right = ((const struct nm_inject_target *)target)->pid;
	return (left > right) - (left < right);
}

/* Only faults of the targets prove that the protection works: the rest of the machine faults
 * anyway. */
static uint64_t faults_of(const struct nm_inject_target *targets, size_t nr_targets,
			  const struct nm_figures *figures, size_t count)
{
	uint64_t faults = 0;
	for (size_t i = 0; nr_targets && i < count; i++)
		if (figures[i].access_new &&
		    bsearch(&figures[i].pid, targets, nr_targets, sizeof(*targets), compare_pid))
			faults += figures[i].access_new;
	return faults;
}

static void soft_dirty(struct nm_daemon *daemon, const struct nm_figures *figures,
		       size_t nr_figures)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	const struct nm_inject_target *targets = NULL;
	size_t count = nm_roster_inject_targets(pipeline->roster, &targets);
	int last_error = daemon->injector.last_error;

	daemon->target_faults += faults_of(targets, count, figures, nr_figures);
	int r = nm_inject_soft_dirty(&daemon->injector, pipeline->platform, targets, count,
				     daemon->config->sampling.soft_dirty_mb_s, daemon->last_tick_ns,
				     daemon->target_faults);
	if (r > 0)
		daemon->tally.injected += (uint64_t)r;
	if (daemon->injector.last_error != last_error)
		tell_refusal(daemon, "write-protecting a process's pages",
			     daemon->injector.last_error);
	if (r != -EOPNOTSUPP)
		return;
	daemon->inject_dead = true;
	nm_report(
		daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
		"sampling.inject = \"soft_dirty\" has no effect: this kernel accepts the write to "
		"clear_refs and protects nothing (CONFIG_MEM_SOFT_DIRTY is not set); use "
		"\"numa_balancing\" or \"none\"");
}

void nm_inject(struct nm_daemon *daemon, const struct nm_figures *figures, size_t count)
{
	if (daemon->pipeline.source && !daemon->inject_dead &&
	    daemon->config->sampling.inject == NM_INJECT_SOFT_DIRTY)
		soft_dirty(daemon, figures, count);
}
