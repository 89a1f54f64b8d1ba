/* SPDX-License-Identifier: MIT */
/* A /proc, a configuration and a state file of the test for the privileged operations. */
#ifndef NUMA_MIGRD_TEST_HELPER_FIXTURE_H
#define NUMA_MIGRD_TEST_HELPER_FIXTURE_H

#include "fixture.h"
#include "numa-migrd/helper.h"
#include "numa-migrd/platform.h"

#define SYSCTL "proc/sys/kernel/numa_balancing"
#define START_TICKS 4242U

#define CONFIG_SOFT_DIRTY                                                                          \
	"sampling = { inject = \"soft_dirty_unsafe\"; };\n"                                        \
	"targets = { include = ( { command = \"a) R 1) b\"; } ); };\n"
#define CONFIG_BALANCING "sampling = { inject = \"numa_balancing\"; };\n"

struct helper_fixture {
	char root[FIXTURE_PATH / 4];
	char config[FIXTURE_PATH / 2], state[FIXTURE_PATH / 2], socket[FIXTURE_PATH / 2];
	struct nm_helper_context context;
};

static inline void helper_fixture_stat(const struct helper_fixture *f, unsigned start_ticks)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "100 (a) R 1) b) S 1 100 100 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %u 9 9 9 1 1 "
		 "0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		 start_ticks);
	fixture_file(f->root, "proc/100/stat", text);
}

static inline int helper_fixture_setup(void **state)
{
	struct helper_fixture *f = calloc(1, sizeof(*f));
	char proc[FIXTURE_PATH];

	fixture_make(f->root, sizeof(f->root));
	snprintf(f->config, sizeof(f->config), "%s/numa-migrd.conf", f->root);
	snprintf(f->state, sizeof(f->state), "%s/run/numa_balancing", f->root);
	snprintf(f->socket, sizeof(f->socket), "%s/socket", f->root);
	fixture_file(f->root, SYSCTL, "0\n");
	fixture_file(f->root, "proc/100/clear_refs", "");
	helper_fixture_stat(f, START_TICKS);
	snprintf(proc, sizeof(proc), "%s/proc/100", f->root);
	if (geteuid() == 0 && chown(proc, 1000, 1000) < 0)
		return -1;
	snprintf(proc, sizeof(proc), "%s/proc", f->root);
	fixture_file(f->root, "proc/100/cgroup", "0::/system.slice/worker.service\n");
	f->context = (struct nm_helper_context){
		.config = {.path = f->config},
		.state_path = f->state,
		.proc_fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.root_fd = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	};
	*state = f;
	return f->context.proc_fd < 0;
}

static inline int helper_fixture_teardown(void **state)
{
	struct helper_fixture *f = *state;

	close(f->context.proc_fd);
	close(f->context.root_fd);
	fixture_remove(f->root);
	free(f);
	return 0;
}

static inline struct nm_helper_request helper_fixture_clear_refs(void)
{
	return (struct nm_helper_request){.version = NM_HELPER_VERSION,
					  .act = NM_HELPER_CLEAR_REFS,
					  .pid = 100,
					  .start_ticks = START_TICKS};
}

/* Clears the bits as the worker does, using the descriptor of the helper, and closes it. */
static inline void helper_fixture_clear(struct nm_event_fds *fds)
{
	if ((fcntl(fds->event, F_GETFL) & O_ACCMODE) != O_WRONLY || write(fds->event, "4", 1) != 1)
		abort();
	close(fds->event);
	*fds = (struct nm_event_fds){-1, -1};
}

/* Requests protection of the pages of a process; returns the result of the helper. */
static inline int helper_fixture_ask(struct nm_platform *platform, uint32_t pid)
{
	const struct nm_memory_query question = {
		.kind = NM_MEMORY_QUERY_CLEAR_REFS, .pid = pid, .start_ticks = START_TICKS};
	uint64_t ticket = 0;
	int r = platform->ops->memory_query(platform, &question, &ticket);

	if (r == 0)
		platform->ops->memory_cancel(platform, ticket);
	return r;
}

static inline struct nm_helper_request helper_fixture_balancing(int value)
{
	return (struct nm_helper_request){
		.version = NM_HELPER_VERSION, .act = NM_HELPER_NUMA_BALANCING, .value = value};
}

static inline struct nm_helper_request helper_fixture_event(enum nm_event_kind kind,
							    uint64_t period)
{
	return (struct nm_helper_request){.version = NM_HELPER_VERSION,
					  .act = NM_HELPER_OPEN_EVENT,
					  .kind = (uint32_t)kind,
					  .period = period};
}

/* A configuration must be owned by root. */
#define SKIP_UNLESS_ROOT()                                                                         \
	do {                                                                                       \
		if (geteuid() != 0) {                                                              \
			print_message("needs root as the owner of a configuration: skipped\n");    \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

#endif
