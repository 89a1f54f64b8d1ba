/* SPDX-License-Identifier: MIT */
/* A /proc, a configuration and a state file of the test for the privileged operations. */
#ifndef NUMA_MIGRD_TEST_HELPER_FIXTURE_H
#define NUMA_MIGRD_TEST_HELPER_FIXTURE_H

#include "fixture.h"
#include "platform/helper.h"
#include "numa-migrd/platform.h"

#define SYSCTL "proc/sys/kernel/numa_balancing"

#define CONFIG_BALANCING "parameters: { sampling = { inject = \"numa_balancing\"; }; };\n"

struct helper_fixture {
	char root[FIXTURE_PATH / 4];
	char config[FIXTURE_PATH / 2], state[FIXTURE_PATH / 2], socket[FIXTURE_PATH / 2];
	struct nm_helper_context context;
};

static inline int helper_fixture_setup(void **state)
{
	struct helper_fixture *f = calloc(1, sizeof(*f));
	char proc[FIXTURE_PATH];

	fixture_make(f->root, sizeof(f->root));
	snprintf(f->config, sizeof(f->config), "%s/numa-migrd.conf", f->root);
	snprintf(f->state, sizeof(f->state), "%s/run/numa_balancing", f->root);
	snprintf(f->socket, sizeof(f->socket), "%s/socket", f->root);
	fixture_file(f->root, SYSCTL, "0\n");
	fixture_file(f->root, "proc/100/stat", "100 (a) R 1 100 100\n");
	snprintf(proc, sizeof(proc), "%s/proc", f->root);
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
