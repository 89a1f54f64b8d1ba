/* SPDX-License-Identifier: MIT */
/* The privileged operations on a /proc of the test, and the client of the protocol. */
#define SET_UP set_up
#define TEAR_DOWN helper_fixture_teardown
#include "../support/test.h"

#include <stdint.h>

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "../../src/platform/privileged.h"
#include "../support/script.h"
#include "helper_fixture.h"

static struct helper_fixture *f;
static struct nm_helper_request request;

static int set_up(void **state)
{
	int r = helper_fixture_setup(state);
	f = *state;
	request = helper_fixture_balancing(1);
	return r;
}

/* ---- words ---- */

static int serve(struct nm_helper_request asked)
{
	struct nm_event_fds fds = {-2, -2};
	int r = nm_helper_serve(&f->context, &asked, &fds);

	if (fds.event >= 0)
		close(fds.event);
	else
		assert_int_equal(fds.event, -1);
	assert_int_equal(fds.leader, -1);
	return r;
}

/* event clock 10000000: the kind and period of the request */
WORD(event)
{
	request = helper_fixture_event(
		(enum nm_event_kind)script_value(step, "kind", step->word[0]), (uint64_t)N(0));
}

KNOB(version, request.version)
KNOB(act, request.act)
KNOB(kind, request.kind)
NAMES(kind, {"clock", NM_EVENT_CLOCK}, {"minor", NM_EVENT_FAULT_MIN}, {"loads", NM_EVENT_MEMORY},
      {"none", NM_EVENT_KIND_MAX})
KNOB(cpu, request.cpu)
KNOB(source, request.source)
NAMES(source, {"pebs", NM_MEMORY_PEBS}, {"pmu", NM_MEMORY_PMU}, {"event", NM_MEMORY_EVENT},
      {"unknown", NM_MEMORY_SOURCE_MAX})
KNOB(load_latency, request.load_latency)
KNOB(index, request.index)
NAMES(index, {"beyond", NM_EVENT_LIST_MAX})
KNOB(period, request.period)
QUANTITY(served, serve(request))
QUANTITY(balancing, serve(helper_fixture_balancing((int)N(0))))
QUANTITY(restored, nm_helper_restore(&f->context))

/* Content of files of the test, without the end of the line. */
static const char *content(const char *path)
{
	static char text[256];
	snprintf(text, sizeof(text), "%s", fixture_read(f->root, path));
	text[strcspn(text, "\n")] = '\0';
	return *text ? text : NULL;
}

TEXT(sysctl, content(SYSCTL))
TEXT(saved, content("run/numa_balancing"))
TEXT(bait, content("bait"))

/* file run/numa_balancing 0 1: a file of one line */
WORD(file)
{
	char line[300];
	snprintf(line, sizeof(line), "%s\n", strchr(step_rest(step), ' ') + 1);
	fixture_file(f->root, step->word[0], line);
}

WORD(kernel)
{
	char line[16];
	snprintf(line, sizeof(line), "%u\n", U(0));
	fixture_file(f->root, SYSCTL, line);
}

WORD(without_kernel)
{
	char path[FIXTURE_PATH];
	snprintf(path, sizeof(path), "%s/" SYSCTL, f->root);
	assert_int_equal(unlink(path), 0);
}

#define MOVES_PAGES "threads: { policy = \"none\"; };\npages: { policy = \"exclusivity\"; "

static const struct {
	const char *name, *text;
} configurations[] = {
	{"empty", ""},
	{"balancing", CONFIG_BALANCING},
	{"nonsense", CONFIG_BALANCING "nonsense = 1;\n"},
	{"no-injection", "sampling = { inject = \"none\"; };\n"},
	{"event", "parameters: { sampling: { event = \"numalab/period=97/\"; }; };\n"},
	{"named", "parameters: { sampling: { event = \"MEM_LOAD_RETIRED:L3_MISS\"; }; };\n"},
	{"manage-only", "pages: { numa_balancing = \"manage\"; };\n"},
	{"pages-only", MOVES_PAGES "};\n"},
	{"manage", MOVES_PAGES "numa_balancing = \"manage\"; };\n"},
};

/* config balancing: of these; config none: there is no file */
WORD(config)
{
	(void)remove(f->config);
	for (size_t i = 0; i < NM_ARRAY_SIZE(configurations); i++)
		if (strcmp(configurations[i].name, step->word[0]) == 0)
			fixture_file(f->root, "numa-migrd.conf", configurations[i].text);
}

ACTION(no_path, f->context.config.path = NULL)
ACTION(mode, assert_int_equal(chmod(f->config, (mode_t)strtoul(step->word[0], NULL, 8)), 0))
ACTION(owner, assert_int_equal(chown(f->config, U(0), U(1)), 0))
ACTION(fifo, assert_int_equal(mkfifo(f->config, 0600), 0))
ACTION(folder, assert_int_equal(mkdir(f->config, 0700), 0))

static void link_to(const char *name, const char *path)
{
	char target[FIXTURE_PATH];
	snprintf(target, sizeof(target), "%s/%s", f->root, name);
	assert_int_equal(symlink(target, path), 0);
}

WORD(link)
{
	fixture_file(f->root, "real.conf", CONFIG_BALANCING);
	link_to("real.conf", f->config);
}

WORD(link_state)
{
	fixture_directory(f->root, "run");
	link_to("bait", f->state);
}

ACTION(root, SKIP_UNLESS_ROOT())

#define REFUSED "balancing 1 = EPERM; sysctl = 0; saved = none"

/* ---- requests ---- */

/* SECURITY: service, helper-socket */
SCRIPT(malformed_requests_are_refused,
       "set version = 0; served = EPROTO; set version = 99; served = EPROTO")

/* SECURITY: service, helper-socket */
SCRIPT(unknown_acts_are_refused,
       "set act = 0; served = EINVAL; set act = 3; served = EINVAL; set act = 4294967295",
       "served = EINVAL")

/* SECURITY: service, open-event */
SCRIPT(only_the_fixed_list_opens,
       "event none 1; served = EINVAL; set kind = 4294967295; served = EINVAL",
       "event clock 999999; served = EINVAL; event minor 0; served = EINVAL",
       "event minor 1000001; served = EINVAL; event clock 10000000; set cpu = -1",
       "served = EINVAL; set cpu = 2147483647; served = EINVAL")

/* SECURITY: open-event */
SCRIPT(only_hardware_events_of_this_machine_open,
       "event loads 1009; set source = pebs; set load_latency = 30; served = ENOENT",
       "set load_latency = 65535; served = ENOENT; set load_latency = 65536; served = EINVAL",
       "set load_latency = 30; set source = unknown; served = EINVAL; set source = pebs",
       "set index = beyond; served = EINVAL",
       "event clock 10000000; set index = 1; served = EINVAL")

/* The daemon may not choose another PMU. Without its format there is no such term, and the kernel
 * has no type 4242. */
/* SECURITY: open-event */
SCRIPT(a_named_pmu_is_roots_choice,
       "event loads 1; set source = pmu; served = EPERM; root; config empty; served = EPERM",
       "config event; served = ENOENT; file sys/bus/event_source/devices/numalab/type 4242",
       "served = EINVAL",
       "file sys/bus/event_source/devices/numalab/format/period config:0-31; set period = 0",
       "served = EINVAL; set period = 1; served < 0")

/* SECURITY: open-event */
SCRIPT(a_named_event_is_roots_choice,
       "event loads 1; set source = event; root; config event; served = EPERM; config empty",
       "served = EPERM; config named; served = ENOENT")

SCRIPT(balancing_takes_three_values, "balancing -2 = EINVAL; balancing 2 = EINVAL")

/* ---- root's configuration ---- */

/* SECURITY: helper-socket */
SCRIPT(without_configuration_nothing_is_allowed, REFUSED, "no_path", REFUSED)

SCRIPT(defaults_and_errors_grant_no_permission, "root; config empty", REFUSED, "config nonsense",
       REFUSED)

/* SECURITY: balancing */
SCRIPT(only_its_setting_permits_balancing, "root; config no-injection", REFUSED,
       "config balancing; balancing 1 = 0")

/* SECURITY: administrator */
SCRIPT(others_configuration_is_refused, "root; config balancing; mode 0664", REFUSED, "mode 0646",
       REFUSED, "mode 0666", REFUSED, "mode 0644; owner 65534 0", REFUSED,
       "owner 0 65534; balancing 1 = 0")

/* SECURITY: administrator */
SCRIPT(only_a_regular_file_is_accepted, "link", REFUSED, "config none; fifo", REFUSED,
       "config none; folder", REFUSED)

/* ---- kernel.numa_balancing ---- */

SCRIPT(balancing_is_set_and_restored,
       "root; config balancing; balancing 1 = 0; sysctl = 1; saved = 0 1; balancing 1 = 0",
       "saved = 0 1; balancing -1 = 0; sysctl = 0; saved = none; balancing -1 = 0")

/* Off only, and only if pages are moved. */
SCRIPT(managing_it_turns_it_off,
       "root; kernel 1; config manage-only; balancing 0 = EPERM; config pages-only",
       "balancing 0 = EPERM; config manage; balancing 1 = EPERM; balancing 0 = 0; sysctl = 0",
       "balancing -1 = 0; sysctl = 1")

/* Balancing between tiers is unchanged. */
SCRIPT(the_first_value_is_restored,
       "root; config balancing; kernel 2; balancing 1 = 0; sysctl = 3; saved = 2 3",
       "balancing 0 = 0; sysctl = 2; balancing 1 = 0; restored = 0; sysctl = 2")

SCRIPT(tier_balancing_is_left_unchanged,
       "root; config balancing; kernel 2; balancing 0 = 0; sysctl = 2; saved = none; kernel 3",
       "balancing 0 = 0; sysctl = 2; restored = 0; sysctl = 3")

SCRIPT(a_value_changed_externally_is_kept,
       "root; config balancing; balancing 1 = 0; kernel 2; balancing 1 = EALREADY; sysctl = 2")

SCRIPT(a_value_already_set_stays,
       "root; config balancing; kernel 1; balancing 1 = 0; saved = none; restored = 0; sysctl = 1")

/* SECURITY: balancing */
SCRIPT(a_value_set_by_others_stays,
       "root; config balancing; balancing 1 = 0; kernel 3; restored = 0; sysctl = 3; saved = none")

/* SECURITY: balancing */
SCRIPT(a_leftover_state_is_restored,
       "config balancing; kernel 1; file run/numa_balancing 0 1; restored = 0; sysctl = 0",
       "saved = none")

TEST(a_broken_state_is_dropped)
{
	static const char *const texts[] = {
		"",    "1\n",	  "one two\n",
		"0 1", "0 1 2\n", "0 1                                          \n"};

	for (size_t i = 0; i < NM_ARRAY_SIZE(texts); i++) {
		fixture_file(f->root, "run/numa_balancing", texts[i]);
		assert_int_equal(nm_helper_restore(&f->context), -EINVAL);
		assert_int_equal(nm_helper_restore(&f->context), 0);
	}
	assert_string_equal(content(SYSCTL), "0");
}

SCRIPT(a_linked_state_is_not_followed,
       "config balancing; kernel 1; file bait 0 1; link_state; restored = EINVAL; sysctl = 1",
       "bait = 0 1")

SCRIPT(a_kernel_without_balancing_is_reported,
       "root; config balancing; without_kernel; balancing 1 = ENOENT; saved = none")

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
	struct nm_helper_request asked = helper_fixture_balancing(1), seen;
	struct wire wire = wire_make();

	assert_int_equal(send(wire.server, reply, size, 0), size);
	int r = nm_helper_call(wire.client, &asked, ret_fd);
	assert_int_equal(recv(wire.server, &seen, sizeof(seen), MSG_DONTWAIT), sizeof(seen));
	assert_memory_equal(&seen, &asked, sizeof(seen));
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
	const struct nm_helper_request asked = helper_fixture_event(NM_EVENT_CLOCK, 10000000);
	struct nm_helper_reply reply = {.version = NM_HELPER_VERSION};
	struct wire wire = wire_make();
	struct nm_event_fds fd = {-2, -2};

	assert_int_equal(send(wire.server, &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(nm_helper_call(wire.client, &asked, &fd), -EPROTO);
	assert_int_equal(fd.event, -2);
	close(wire.client);
	close(wire.server);
}

TEST_BETWEEN(NULL, NULL, a_helper_exit_is_detected)
{
	const struct nm_helper_request asked = helper_fixture_balancing(1);
	struct wire wire = wire_make();
	struct nm_event_fds fd = {-2, -2};

	assert_int_equal(shutdown(wire.server, SHUT_WR), 0);
	assert_int_equal(nm_helper_call(wire.client, &asked, &fd), -ECONNRESET);
	close(wire.server);
	close(wire.client);
	wire = wire_make();
	close(wire.server);
	assert_int_equal(nm_helper_call(wire.client, &asked, &fd), -EPIPE);
	close(wire.client);
}

TEST(a_missing_helper_is_reported)
{
	char longest[256];

	assert_int_equal(nm_helper_connect(f->socket), -ENOENT);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(nm_helper_connect(longest), -ENAMETOOLONG);
}

RUN_TESTS()
