/* SPDX-License-Identifier: MIT */
/* The privileged operations on a /proc of the test, and the client of the protocol. */
#define SET_UP helper_fixture_setup
#define TEAR_DOWN helper_fixture_teardown
#include "../support/test.h"

#include <stdint.h>

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "../../src/platform/privileged.h"
#include "helper_fixture.h"

static int serve(struct helper_fixture *f, struct nm_helper_request request)
{
	struct nm_event_fds fds = {-2, -2};
	int r = nm_helper_serve(&f->context, &request, &fds);

	if (fds.event >= 0)
		close(fds.event);
	else
		assert_int_equal(fds.event, -1);
	assert_int_equal(fds.leader, -1);
	return r;
}

static const char *sysctl(const struct helper_fixture *f)
{
	return fixture_read(f->root, SYSCTL);
}

static const char *saved(const struct helper_fixture *f)
{
	return fixture_read(f->root, "run/numa_balancing");
}

/* ---- requests ---- */

/* SECURITY: service, helper-socket */
TEST(malformed_requests_are_refused)
{
	struct nm_helper_request request = helper_fixture_balancing(1);

	request.version++;
	assert_int_equal(serve(*state, request), -EPROTO);
	request = helper_fixture_balancing(1);
	request.act = 0;
	assert_int_equal(serve(*state, request), -EINVAL);
	request.act = 3;
	assert_int_equal(serve(*state, request), -EINVAL);
	request.act = UINT32_MAX;
	assert_int_equal(serve(*state, request), -EINVAL);
}

/* SECURITY: service, open-event */
TEST(only_the_fixed_list_opens)
{
	struct nm_helper_request request = helper_fixture_event(NM_EVENT_KIND_MAX, 1);

	assert_int_equal(serve(*state, request), -EINVAL);
	request.kind = UINT32_MAX;
	assert_int_equal(serve(*state, request), -EINVAL);
	assert_int_equal(serve(*state, helper_fixture_event(NM_EVENT_CLOCK, 999999)), -EINVAL);
	assert_int_equal(serve(*state, helper_fixture_event(NM_EVENT_FAULT_MIN, 0)), -EINVAL);
	assert_int_equal(serve(*state, helper_fixture_event(NM_EVENT_FAULT_MIN, 1000001)), -EINVAL);
	request = helper_fixture_event(NM_EVENT_CLOCK, 10000000);
	request.cpu = -1;
	assert_int_equal(serve(*state, request), -EINVAL);
	request.cpu = INT32_MAX;
	assert_int_equal(serve(*state, request), -EINVAL);
}

/* SECURITY: open-event */
TEST(only_hardware_events_of_this_machine_open)
{
	struct nm_helper_request request = helper_fixture_event(NM_EVENT_MEMORY, 1009);
	struct helper_fixture *f = *state;

	request.source = NM_MEMORY_PEBS;
	request.load_latency = 30;
	assert_int_equal(serve(f, request), -ENOENT);
	request.load_latency = 0x10000;
	assert_int_equal(serve(f, request), -EINVAL);
	request.load_latency = 30;
	request.source = NM_MEMORY_SOURCE_MAX;
	assert_int_equal(serve(f, request), -EINVAL);
	request.source = NM_MEMORY_PEBS;
	request.index = NM_EVENT_LIST_MAX;
	assert_int_equal(serve(f, request), -EINVAL);
	request = helper_fixture_event(NM_EVENT_CLOCK, 10000000);
	request.index = 1;
	assert_int_equal(serve(f, request), -EINVAL);
}

/* The daemon may not choose another PMU. */
/* SECURITY: open-event */
TEST(a_named_pmu_is_roots_choice)
{
	struct nm_helper_request request = helper_fixture_event(NM_EVENT_MEMORY, 1);
	struct helper_fixture *f = *state;

	request.source = NM_MEMORY_PMU;
	assert_int_equal(serve(f, request), -EPERM);
	SKIP_UNLESS_ROOT();
	fixture_file(f->root, "numa-migrd.conf", "");
	assert_int_equal(serve(f, request), -EPERM);
	fixture_file(f->root, "numa-migrd.conf",
		     "parameters: { sampling: { event = \"numalab/period=97/\"; }; };\n");
	assert_int_equal(serve(f, request), -ENOENT);
	fixture_file(f->root, "sys/bus/event_source/devices/numalab/type", "4242\n");
	assert_int_equal(serve(f, request), -EINVAL); /* no such term */
	fixture_file(f->root, "sys/bus/event_source/devices/numalab/format/period",
		     "config:0-31\n");
	request.period = 0;
	assert_int_equal(serve(f, request), -EINVAL);
	request.period = 1;
	assert_true(serve(f, request) < 0); /* the kernel has no type 4242 */
}

TEST(balancing_takes_three_values)
{
	assert_int_equal(serve(*state, helper_fixture_balancing(-2)), -EINVAL);
	assert_int_equal(serve(*state, helper_fixture_balancing(2)), -EINVAL);
}

/* ---- root's configuration ---- */

static void assert_refused(struct helper_fixture *f)
{
	assert_int_equal(serve(f, helper_fixture_balancing(1)), -EPERM);
	assert_string_equal(sysctl(f), "0\n");
	assert_string_equal(saved(f), "");
}

/* SECURITY: helper-socket */
TEST(without_configuration_nothing_is_allowed)
{
	struct helper_fixture *f = *state;

	assert_refused(f);
	f->context.config.path = NULL;
	assert_refused(f);
}

TEST(defaults_and_errors_grant_no_permission)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	fixture_file(f->root, "numa-migrd.conf", "");
	assert_refused(f);
	fixture_file(f->root, "numa-migrd.conf", CONFIG_BALANCING "nonsense = 1;\n");
	assert_refused(f);
}

/* SECURITY: balancing */
TEST(only_its_setting_permits_balancing)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	fixture_file(f->root, "numa-migrd.conf", "sampling = { inject = \"none\"; };\n");
	assert_refused(f);
	fixture_file(f->root, "numa-migrd.conf", CONFIG_BALANCING);
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
}

/* SECURITY: administrator */
TEST(others_configuration_is_refused)
{
	static const mode_t writable[] = {0664, 0646, 0666};
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	fixture_file(f->root, "numa-migrd.conf", CONFIG_BALANCING);
	for (size_t i = 0; i < NM_ARRAY_SIZE(writable); i++) {
		assert_int_equal(chmod(f->config, writable[i]), 0);
		assert_refused(f);
	}
	assert_int_equal(chmod(f->config, 0644), 0);
	assert_int_equal(chown(f->config, 65534, 0), 0);
	assert_refused(f);
	assert_int_equal(chown(f->config, 0, 65534), 0);
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
}

/* SECURITY: administrator */
TEST(only_a_regular_file_is_accepted)
{
	struct helper_fixture *f = *state;
	char real[FIXTURE_PATH];

	fixture_file(f->root, "real.conf", CONFIG_BALANCING);
	snprintf(real, sizeof(real), "%s/real.conf", f->root);
	assert_int_equal(symlink(real, f->config), 0);
	assert_refused(f);
	assert_int_equal(unlink(f->config), 0);
	assert_int_equal(mkfifo(f->config, 0600), 0);
	assert_refused(f);
	assert_int_equal(unlink(f->config), 0);
	assert_int_equal(mkdir(f->config, 0700), 0);
	assert_refused(f);
}

/* ---- kernel.numa_balancing ---- */

static int setup_balancing(void **state)
{
	int r = helper_fixture_setup(state);
	struct helper_fixture *f = *state;

	fixture_file(f->root, "numa-migrd.conf", CONFIG_BALANCING);
	return r;
}

TEST_BETWEEN(setup_balancing, helper_fixture_teardown, balancing_is_set_and_restored)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
	assert_string_equal(sysctl(f), "1\n");
	assert_string_equal(saved(f), "0 1\n");
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
	assert_string_equal(saved(f), "0 1\n");
	assert_int_equal(serve(f, helper_fixture_balancing(-1)), 0);
	assert_string_equal(sysctl(f), "0\n");
	assert_string_equal(saved(f), "");
	assert_int_equal(serve(f, helper_fixture_balancing(-1)), 0);
}

/* Off only, and only if pages are moved. */
TEST_BETWEEN(setup_balancing, helper_fixture_teardown, managing_it_turns_it_off)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	fixture_file(f->root, SYSCTL, "1\n");
	fixture_file(f->root, "numa-migrd.conf", "pages: { numa_balancing = \"manage\"; };\n");
	assert_int_equal(serve(f, helper_fixture_balancing(0)), -EPERM);
	fixture_file(f->root, "numa-migrd.conf",
		     "threads: { policy = \"none\"; };\npages: { policy = \"exclusivity\"; };\n");
	assert_int_equal(serve(f, helper_fixture_balancing(0)), -EPERM);
	fixture_file(f->root, "numa-migrd.conf",
		     "threads: { policy = \"none\"; };\n"
		     "pages: { policy = \"exclusivity\"; numa_balancing = \"manage\"; };\n");
	assert_int_equal(serve(f, helper_fixture_balancing(1)), -EPERM);
	assert_int_equal(serve(f, helper_fixture_balancing(0)), 0);
	assert_string_equal(sysctl(f), "0\n");
	assert_int_equal(serve(f, helper_fixture_balancing(-1)), 0);
	assert_string_equal(sysctl(f), "1\n");
}

TEST_BETWEEN(setup_balancing, helper_fixture_teardown, the_first_value_is_restored)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	fixture_file(f->root, SYSCTL, "2\n");
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
	assert_string_equal(sysctl(f), "3\n"); /* tier balancing is unchanged */
	assert_string_equal(saved(f), "2 3\n");
	assert_int_equal(serve(f, helper_fixture_balancing(0)), 0);
	assert_string_equal(sysctl(f), "2\n");
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
	assert_int_equal(nm_helper_restore(&f->context), 0);
	assert_string_equal(sysctl(f), "2\n");
}

TEST_BETWEEN(setup_balancing, helper_fixture_teardown, tier_balancing_is_left_unchanged)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	fixture_file(f->root, SYSCTL, "2\n");
	assert_int_equal(serve(f, helper_fixture_balancing(0)), 0);
	assert_string_equal(sysctl(f), "2\n");
	assert_string_equal(saved(f), "");
	fixture_file(f->root, SYSCTL, "3\n");
	assert_int_equal(serve(f, helper_fixture_balancing(0)), 0);
	assert_string_equal(sysctl(f), "2\n");
	assert_int_equal(nm_helper_restore(&f->context), 0);
	assert_string_equal(sysctl(f), "3\n");
}

TEST_BETWEEN(setup_balancing, helper_fixture_teardown, a_value_changed_externally_is_kept)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
	fixture_file(f->root, SYSCTL, "2\n");
	assert_int_equal(serve(f, helper_fixture_balancing(1)), -EALREADY);
	assert_string_equal(sysctl(f), "2\n");
}

TEST_BETWEEN(setup_balancing, helper_fixture_teardown, a_value_already_set_stays)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	fixture_file(f->root, SYSCTL, "1\n");
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
	assert_string_equal(saved(f), "");
	assert_int_equal(nm_helper_restore(&f->context), 0);
	assert_string_equal(sysctl(f), "1\n");
}

/* SECURITY: balancing */
TEST_BETWEEN(setup_balancing, helper_fixture_teardown, a_value_set_by_others_stays)
{
	struct helper_fixture *f = *state;

	SKIP_UNLESS_ROOT();
	assert_int_equal(serve(f, helper_fixture_balancing(1)), 0);
	fixture_file(f->root, SYSCTL, "3\n");
	assert_int_equal(nm_helper_restore(&f->context), 0);
	assert_string_equal(sysctl(f), "3\n");
	assert_string_equal(saved(f), "");
}

/* SECURITY: balancing */
TEST_BETWEEN(setup_balancing, helper_fixture_teardown, a_leftover_state_is_restored)
{
	struct helper_fixture *f = *state;

	fixture_file(f->root, SYSCTL, "1\n");
	fixture_file(f->root, "run/numa_balancing", "0 1\n");
	assert_int_equal(nm_helper_restore(&f->context), 0);
	assert_string_equal(sysctl(f), "0\n");
	assert_string_equal(saved(f), "");
}

TEST_BETWEEN(setup_balancing, helper_fixture_teardown, a_broken_state_is_dropped)
{
	static const char *const texts[] = {
		"",    "1\n",	  "one two\n",
		"0 1", "0 1 2\n", "0 1                                          \n"};
	struct helper_fixture *f = *state;

	for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++) {
		fixture_file(f->root, "run/numa_balancing", texts[i]);
		assert_int_equal(nm_helper_restore(&f->context), -EINVAL);
		assert_int_equal(nm_helper_restore(&f->context), 0);
	}
	assert_string_equal(sysctl(f), "0\n");
}

TEST_BETWEEN(setup_balancing, helper_fixture_teardown, a_linked_state_is_not_followed)
{
	struct helper_fixture *f = *state;
	char target[FIXTURE_PATH];

	fixture_file(f->root, SYSCTL, "1\n");
	fixture_file(f->root, "bait", "0 1\n");
	fixture_directory(f->root, "run");
	snprintf(target, sizeof(target), "%s/bait", f->root);
	assert_int_equal(symlink(target, f->state), 0);
	assert_int_equal(nm_helper_restore(&f->context), -EINVAL);
	assert_string_equal(sysctl(f), "1\n");
	assert_string_equal(fixture_read(f->root, "bait"), "0 1\n");
}

TEST_BETWEEN(setup_balancing, helper_fixture_teardown, a_kernel_without_balancing_is_reported)
{
	struct helper_fixture *f = *state;
	char path[FIXTURE_PATH];

	SKIP_UNLESS_ROOT();
	snprintf(path, sizeof(path), "%s/" SYSCTL, f->root);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(serve(f, helper_fixture_balancing(1)), -ENOENT);
	assert_string_equal(saved(f), "");
}

/* ---- the client ---- */

struct wire {
	int client, server;
};

static struct wire wire_make(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	return (struct wire){.client = pair[0], .server = pair[1]};
}

/* Returns the reply to a pending request on the wire. */
static int call_with(const void *reply, size_t size, struct nm_event_fds *ret_fd)
{
	struct nm_helper_request request = helper_fixture_balancing(1), seen;
	struct wire wire = wire_make();

	assert_int_equal(send(wire.server, reply, size, 0), size);
	int r = nm_helper_call(wire.client, &request, ret_fd);
	assert_int_equal(recv(wire.server, &seen, sizeof(seen), MSG_DONTWAIT), sizeof(seen));
	assert_memory_equal(&seen, &request, sizeof(seen));
	close(wire.client);
	close(wire.server);
	return r;
}

TEST_BETWEEN(NULL, NULL, replies_are_passed_on)
{
	struct nm_helper_reply reply = {.version = NM_HELPER_VERSION};
	struct nm_event_fds fd = {-2, -2};

	reply.result = -EBUSY;
	assert_int_equal(call_with(&reply, sizeof(reply), &fd), -EBUSY);
	assert_int_equal(fd.event, -1);
}

/* SECURITY: helper-answers */
TEST_BETWEEN(NULL, NULL, malformed_replies_are_refused)
{
	struct nm_helper_reply reply = {.version = NM_HELPER_VERSION};
	char longer[sizeof(reply) + 1] = {0};
	struct nm_event_fds fd = {-2, -2};

	assert_int_equal(call_with(&reply, sizeof(reply) - 1, &fd), -EPROTO);
	memcpy(longer, &reply, sizeof(reply));
	assert_int_equal(call_with(longer, sizeof(longer), &fd), -EPROTO);
	reply.result = 1;
	assert_int_equal(call_with(&reply, sizeof(reply), &fd), -EPROTO);
	reply = (struct nm_helper_reply){.version = NM_HELPER_VERSION + 1};
	assert_int_equal(call_with(&reply, sizeof(reply), &fd), -EPROTO);
	assert_int_equal(fd.event, -2);
}

/* SECURITY: helper-answers */
TEST_BETWEEN(NULL, NULL, a_missing_descriptor_is_noticed)
{
	struct nm_helper_request request = helper_fixture_event(NM_EVENT_CLOCK, 10000000);
	struct nm_helper_reply reply = {.version = NM_HELPER_VERSION};
	struct wire wire = wire_make();
	struct nm_event_fds fd = {-2, -2};

	assert_int_equal(send(wire.server, &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(nm_helper_call(wire.client, &request, &fd), -EPROTO);
	assert_int_equal(fd.event, -2);
	close(wire.client);
	close(wire.server);
}

TEST_BETWEEN(NULL, NULL, a_helper_exit_is_detected)
{
	struct nm_helper_request request = helper_fixture_balancing(1);
	struct wire wire = wire_make();
	struct nm_event_fds fd = {-2, -2};

	assert_int_equal(shutdown(wire.server, SHUT_WR), 0);
	assert_int_equal(nm_helper_call(wire.client, &request, &fd), -ECONNRESET);
	close(wire.server);
	close(wire.client);
	wire = wire_make();
	close(wire.server);
	assert_int_equal(nm_helper_call(wire.client, &request, &fd), -EPIPE);
	close(wire.client);
}

TEST(a_missing_helper_is_reported)
{
	struct helper_fixture *f = *state;
	char longest[256];

	assert_int_equal(nm_helper_connect(f->socket), -ENOENT);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(nm_helper_connect(longest), -ENAMETOOLONG);
}

RUN_TESTS()
