// SPDX-License-Identifier: MIT
/* Opens one event on one CPU by perf_event_open(2), with the leader or the precision that some
 * need. */
#include <errno.h>
#include <sys/syscall.h>

#include "pmu.h"
#include "privileged.h"

/* MEM_LOADS_AUX: Sapphire Rapids reports the data source of loads only together with it. */
#define AUX_CONFIG 0x8203

static int open_attr(struct perf_event_attr *attr, int cpu, int group)
{
	long fd = syscall(SYS_perf_event_open, attr, (pid_t)-1, cpu, group, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int open_aux(const struct perf_event_attr *member, int cpu)
{
	struct perf_event_attr attr = {
		.type = member->type,
		.size = sizeof(attr),
		.config = AUX_CONFIG,
		.read_format = member->read_format,
		.exclude_kernel = member->exclude_kernel,
		.exclude_guest = member->exclude_guest,
	};

	return open_attr(&attr, cpu, -1);
}

static int open_word(const struct nm_event_word *word, const struct nm_event_request *request,
		     struct nm_event_fds *ret)
{
	nm_auto(nm_event_close) struct nm_event_fds fds = {-1, -1};
	struct perf_event_attr attr;
	int r = word->unencoded ? -ENOPKG : nm_event_word_attr(word, request->period, &attr);

	if (r < 0)
		return r;
	if (word->aux_leader) {
		fds.leader = open_aux(&attr, request->cpu);
		if (fds.leader < 0)
			return fds.leader;
	}
	fds.event = open_attr(&attr, request->cpu, fds.leader);
	/* CPUs differ in the precision that they support; without any there would be no address. */
	while ((fds.event == -EOPNOTSUPP || fds.event == -EINVAL) && attr.precise_ip > 1) {
		attr.precise_ip--;
		fds.event = open_attr(&attr, request->cpu, fds.leader);
	}
	if (fds.event < 0)
		return fds.event;
	*ret = nm_take_event(&fds);
	return 0;
}

static int open_hardware(int root, const struct nm_event_request *request, struct nm_event_fds *ret)
{
	struct nm_event_list list;
	int r = nm_event_list_read(root, &request->selection, request->kind, &list);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < list.count; i++)
		if (list.words[i].kind == request->kind && list.words[i].index == request->index)
			return open_word(&list.words[i], request, ret);
	return -ENOENT;
}

int nm_event_open(int root, const struct nm_event_request *request, struct nm_event_fds *ret)
{
	struct perf_event_attr attr;

	if (request->kind >= NM_EVENT_MEMORY && request->kind < NM_EVENT_KIND_MAX)
		return open_hardware(root, request, ret);
	int r = nm_event_attr(request->kind, request->period, &attr);
	if (r < 0 || request->index > 0)
		return r < 0 ? r : -EINVAL;
	int fd = open_attr(&attr, request->cpu, -1);
	if (fd < 0)
		return fd;
	*ret = (struct nm_event_fds){fd, -1};
	return 0;
}
