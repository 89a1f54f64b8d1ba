/* SPDX-License-Identifier: MIT */
/* Whose pages the helper write-protects: what root's configuration targets, and nobody else's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "helper_fixture.h"
#include "numa-migrd/config.h"

/* Process 100 is "a) R 1) b" of user 1000 in worker.service. What becomes of a request about it? */
static int ask_with(struct helper_fixture *f, const char *inject, const char *targets)
{
	char text[512];
	struct nm_event_fds fds;
	const struct nm_helper_request request = helper_fixture_clear_refs();
	snprintf(text, sizeof(text),
		 "sampling = { inject = \"%s\"; accept_soft_dirty_risk = true; };\n"
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
	return ask_with(f, "soft_dirty", targets);
}

static void what_is_targeted_is_protected(void **state)
{
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask(*state, "include = ( { command = \"a) R*\"; } );"), 0);
	assert_int_equal(ask(*state, "include = ( { unit = \"worker.service\"; } );"), 0);
	assert_int_equal(ask(*state, "include = ( { unit = \"*.service\"; user = \"1000\"; } );"),
			 0);
	assert_int_equal(ask(*state, "include = ( { command = \"b\"; }, { unit = \"w*\"; } );"), 0);
}

static void what_is_not_is_refused(void **state)
{
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask(*state, "include = ( { command = \"a\"; } );"), -EPERM);
	assert_int_equal(ask(*state, "include = ( { unit = \"other.service\"; } );"), -EPERM);
	assert_int_equal(ask(*state, "include = ( { unit = \"*.service\"; user = \"1001\"; } );"),
			 -EPERM);
}

static void exclusion_wins(void **state)
{
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask(*state, "include = ( { command = \"a) R*\"; } );"
				     "exclude = ( { user = \"1000\"; } );"),
			 -EPERM);
}

/* As with the daemon: a pattern that names nobody in particular names nobody to be written to. */
static void everybody_is_no_name(void **state)
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

/* Its clear_refs would be the whole process's. */
static void a_threads_name_is_not_its_process(void **state)
{
	struct helper_fixture *f = *state;
	SKIP_UNLESS_ROOT();
	fixture_file(f->root, "proc/100/status", "Tgid:\t90\nUid:\t1000\t1000\t1000\t1000\n");
	assert_int_equal(ask(f, "include = ( { command = \"a) R*\"; } );"), -EPERM);
}

static void who_asks_may_try_on_itself(void **state)
{
	struct helper_fixture *f = *state;
	SKIP_UNLESS_ROOT();
	f->context.requester = 100;
	assert_int_equal(ask(f, "include = ( { command = \"b\"; } );"), 0);
	f->context.requester = 101;
	assert_int_equal(ask(f, "include = ( { command = \"b\"; } );"), -EPERM);
}

/* Who is named is for sampling to see by other means then, and whoever asks is not tried on. */
static void without_injection_nobody_is_protected(void **state)
{
	struct helper_fixture *f = *state;
	const char *targets = "include = ( { command = \"a) R*\"; } );";
	SKIP_UNLESS_ROOT();
	assert_int_equal(ask_with(f, "none", targets), -EPERM);
	assert_int_equal(ask_with(f, "numa_balancing", targets), -EPERM);
	f->context.requester = 100;
	assert_int_equal(ask_with(f, "none", targets), -EPERM);
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, helper_fixture_setup, helper_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_targeted_is_protected),
		TEST(what_is_not_is_refused),
		TEST(exclusion_wins),
		TEST(everybody_is_no_name),
		TEST(without_a_cgroup_no_unit_matches),
		TEST(a_threads_name_is_not_its_process),
		TEST(who_asks_may_try_on_itself),
		TEST(without_injection_nobody_is_protected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
