/* SPDX-License-Identifier: MIT */
/* The helper write-protects only pages of processes that the configuration of root targets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "helper_fixture.h"
#include "numa-migrd/config.h"

/* A request about process 100, "a) R 1) b" of user 1000 in worker.service. Returns its result. */
static int ask_with(struct helper_fixture *f, const char *inject, const char *targets)
{
	char text[512];
	struct nm_event_fds fds;
	const struct nm_helper_request request = helper_fixture_clear_refs();
	snprintf(text, sizeof(text),
		 "sampling = { inject = \"%s\"; };\n"
		 "targets = { %s };\n",
		 inject, targets);
	fixture_file(f->root, "numa-migrd.conf", text);
	fixture_file(f->root, "proc/100/clear_refs", "");
	int r = nm_helper_serve(&f->context, &request, &fds);
	if (r == 0)
		helper_fixture_clear(&fds);
	assert_string_equal(fixture_read(f->root, "proc/100/clear_refs"), r == 0 ? "4" : "");
	return r;
}

static int ask(struct helper_fixture *f, const char *targets)
{
	return ask_with(f, "soft_dirty_unsafe", targets);
}

static void targeted_processes_are_protected(void **state)
{
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask(*state, "include = ( { command = \"a) R*\"; } );"), 0);
	assert_int_equal(ask(*state, "include = ( { unit = \"worker.service\"; } );"), 0);
	assert_int_equal(ask(*state, "include = ( { unit = \"*.service\"; user = \"1000\"; } );"),
			 0);
	assert_int_equal(ask(*state, "include = ( { command = \"b\"; }, { unit = \"w*\"; } );"), 0);
}

/* SECURITY: clear-refs */
static void untargeted_processes_are_refused(void **state)
{
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask(*state, "include = ( { command = \"a\"; } );"), -EPERM);
	assert_int_equal(ask(*state, "include = ( { unit = \"other.service\"; } );"), -EPERM);
	assert_int_equal(ask(*state, "include = ( { unit = \"*.service\"; user = \"1001\"; } );"),
			 -EPERM);
}

/* SECURITY: clear-refs */
static void exclusion_takes_precedence(void **state)
{
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask(*state, "include = ( { command = \"a) R*\"; } );"
				     "exclude = ( { user = \"1000\"; } );"),
			 -EPERM);
}

/* As in the daemon, a pattern without a specific name does not permit writing to processes. */
/* SECURITY: clear-refs */
static void a_pattern_for_everyone_grants_no_permission(void **state)
{
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask(*state, "include = ( { command = \"b\"; }, { user = \"1000\"; } );"),
			 -EPERM);
}

static void without_a_cgroup_no_unit_matches(void **state)
{
	struct helper_fixture *f = *state;
	SKIP_UNLESS_ROOT();
	fixture_file(f->root, "proc/100/cgroup", "1:name=systemd:/worker.service\n");
	assert_int_equal(ask(f, "include = ( { unit = \"worker.service\"; } );"), -EPERM);
	assert_int_equal(ask(f, "include = ( { command = \"a) R*\"; } );"), 0);
}

/* Its clear_refs would affect the whole process. */
/* SECURITY: clear-refs */
static void the_name_of_a_thread_does_not_match_its_process(void **state)
{
	struct helper_fixture *f = *state;
	SKIP_UNLESS_ROOT();
	char *stat = strdup(fixture_read(f->root, "proc/100/stat"));
	char *signal = strstr(stat, " 17 3 ");
	memcpy(signal, " -1 3 ", strlen(" -1 3 "));
	fixture_file(f->root, "proc/100/stat", stat);
	free(stat);
	assert_int_equal(ask(f, "include = ( { command = \"a) R*\"; } );"), -EPERM);
}

/* SECURITY: helper-socket */
static void the_requester_may_probe_itself(void **state)
{
	struct helper_fixture *f = *state;
	SKIP_UNLESS_ROOT();
	f->context.requester = 100;
	f->context.requester_ticks = START_TICKS;
	assert_int_equal(ask(f, "include = ( { command = \"b\"; } );"), 0);
	f->context.requester = 101;
	assert_int_equal(ask(f, "include = ( { command = \"b\"; } );"), -EPERM);
}

/* Named processes are then sampled by other means, and no requester is probed. */
/* SECURITY: clear-refs */
static void disabled_injection_protects_no_process(void **state)
{
	struct helper_fixture *f = *state;
	const char *targets = "include = ( { command = \"a) R*\"; } );";
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask_with(f, "none", targets), -EPERM);
	assert_int_equal(ask_with(f, "numa_balancing", targets), -EPERM);
	f->context.requester = 100;
	f->context.requester_ticks = START_TICKS;
	assert_int_equal(ask_with(f, "none", targets), -EPERM);
}

/* The requester has exited, and its number is reused. */
/* SECURITY: clear-refs */
static void a_reused_number_is_not_the_requester(void **state)
{
	struct helper_fixture *f = *state;
	SKIP_UNLESS_ROOT();
	f->context.requester = 100;
	f->context.requester_ticks = START_TICKS - 1;
	assert_int_equal(ask(f, "include = ( { command = \"b\"; } );"), -EPERM);
	f->context.requester_ticks = 0;
	assert_int_equal(ask(f, "include = ( { command = \"b\"; } );"), -EPERM);
}

/* ---- amount ---- */

static int ask_after(struct helper_fixture *f, uint64_t milliseconds)
{
	static const char config[] = "sampling = { inject = \"soft_dirty_unsafe\"; };\n"
				     "targets = { include = ( { command = \"a) R*\"; } ); };\n";
	const struct nm_helper_request request = helper_fixture_clear_refs();
	struct nm_event_fds fds = {-1, -1};
	fixture_file(f->root, "numa-migrd.conf", config);
	f->context.now_ns += milliseconds * NM_NSEC_PER_MSEC;
	int r = nm_helper_serve(&f->context, &request, &fds);
	if (fds.event >= 0)
		close(fds.event);
	return r;
}

static void begin_rate(struct helper_fixture *f, struct nm_helper_rate *rate, const char *statm)
{
	f->context.rate = rate;
	f->context.now_ns = 1000 * NM_NSEC_PER_SEC;
	fixture_file(f->root, "proc/100/statm", statm);
}

/* Twice 256 MB: 128,000 pages are 524.288 million bytes. */
/* SECURITY: clear-refs */
static void clearing_is_limited_by_root(void **state)
{
	struct helper_fixture *f = *state;
	struct nm_helper_rate rate = {0};
	SKIP_UNLESS_ROOT();
	begin_rate(f, &rate, "256000 128000 9 9 0 9 0\n");
	assert_int_equal(ask_after(f, 0), 0);
	assert_int_equal(ask_after(f, 0), -EAGAIN);
	assert_int_equal(ask_after(f, 20), -EAGAIN);
	assert_int_equal(ask_after(f, 10), 0);
	assert_int_equal(ask_after(f, 900), -EAGAIN);
	assert_int_equal(ask_after(f, 200), 0);
}

/* 4.096 billion bytes are charged for 7 seconds. */
/* SECURITY: clear-refs */
static void the_cost_of_a_large_process_is_charged(void **state)
{
	struct helper_fixture *f = *state;
	struct nm_helper_rate rate = {0};
	SKIP_UNLESS_ROOT();
	begin_rate(f, &rate, "2000000 1000000 9 9 0 9 0\n");
	assert_int_equal(ask_after(f, 0), 0);
	assert_int_equal(ask_after(f, 6900), -EAGAIN);
	assert_int_equal(ask_after(f, 200), 0);
}

static void small_processes_are_charged_too(void **state)
{
	struct helper_fixture *f = *state;
	struct nm_helper_rate rate = {0};
	unsigned done = 0;
	SKIP_UNLESS_ROOT();
	begin_rate(f, &rate, "1 0 0 0 0 0 0\n");
	while (done < 10000 && ask_after(f, 0) == 0)
		done++;
	assert_int_equal(done, 7813); /* of 64 KiB, in 512 MB */
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, helper_fixture_setup, helper_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(targeted_processes_are_protected),
		TEST(untargeted_processes_are_refused),
		TEST(exclusion_takes_precedence),
		TEST(a_pattern_for_everyone_grants_no_permission),
		TEST(without_a_cgroup_no_unit_matches),
		TEST(the_name_of_a_thread_does_not_match_its_process),
		TEST(the_requester_may_probe_itself),
		TEST(disabled_injection_protects_no_process),
		TEST(a_reused_number_is_not_the_requester),
		TEST(clearing_is_limited_by_root),
		TEST(the_cost_of_a_large_process_is_charged),
		TEST(small_processes_are_charged_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
