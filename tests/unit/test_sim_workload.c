/* SPDX-License-Identifier: MIT */
/* Workload files: valid ones, and errors with their positions and reasons. */
#include "../support/test.h"

#include <stdint.h>

#include "sim_fixture.h"

static int parse(const char *text, char *error, struct nm_sim_workload *ret)
{
	return nm_sim_workload_parse("w.conf", text, strlen(text), error, 512, ret);
}

TEST(test_workload_values)
{
	static const char text[] = "limit_s = 60;\n"
				   "users = (\n"
				   "  { name = \"one\"; threads = 4; idle_s = 2; programs = ( "
				   "\"sp\", { like = \"stencil\"; "
				   "name = \"mine\"; threads = 3; footprint_mb = 64.5; page_kb = "
				   "4; touch = \"master\"; "
				   "phases = ( { giga = 5; shared = 0.5; }, { giga = 7; idle_s = "
				   "1; misses_per_kilo = 0; } ); "
				   "} ); },\n"
				   "  { placement = \"direct\"; node = 1; start_s = 3; repeat = "
				   "true; threads = 2; programs = "
				   "( \"ep\" ); }\n"
				   ");\n";
	struct nm_sim_workload workload = {0};
	char error[512] = "";
	assert_int_equal(parse(text, error, &workload), 0);
	assert_true(workload.limit_s == 60);
	assert_int_equal(workload.nr_users, 2);
	const struct nm_sim_user *one = &workload.users[0];
	assert_string_equal(one->name, "one");
	assert_int_equal(one->nr_programs, 2);
	assert_int_equal(one->programs[0].threads, 4);
	const struct nm_sim_program *program = &one->programs[1];
	assert_string_equal(program->name, "mine");
	assert_int_equal(program->threads, 3);
	assert_int_equal(program->page_kb, 4);
	assert_int_equal(program->touch, NM_SIM_TOUCH_MASTER);
	assert_int_equal(program->nr_phases, 2);
	assert_true(fabs(program->phases[0].private_part - 0.3) < 1e-12); /* neighbours are 0.2 */
	assert_true(program->phases[1].misses_per_kilo == 0);
	assert_int_equal(workload.users[1].placement, NM_SIM_PLACE_DIRECT);
	assert_int_equal(workload.users[1].node, 1);
	assert_true(workload.users[1].for_ever);
	nm_sim_workload_clear(&workload);
}

#define USER(settings) "users = ( { threads = 1;\n" settings " programs = ( \"sp\" ); } );"
#define PROGRAM(settings)                                                                          \
	"users = ( { programs = ( { like = \"sp\"; threads = 1;\n" settings " } ); } );"

TEST(test_workload_errors_are_reported)
{
	static const struct {
		const char *text, *place, *reason;
	} cases[] = {
		{"", "w.conf: users", "users are missing"},
		{"users = (", "w.conf:1:", "syntax error"},
		{"users = ();", "w.conf:1: users:", "one entry"},
		{"users = ( 5 );", "w.conf:1:", "a user is a group"},
		{"users = ( { } );", "w.conf:1:", "programs are missing"},
		{"users = ( { programs = ( \"sp\" ); } );", "w.conf:1:", "threads are missing"},
		{"limit_s = \"long\";\n" USER(""), "w.conf:1: limit_s:", "from 1 to"},
		{"colour = 1;\n" USER(""), "w.conf:1: colour:", "there are limit_s users"},
		{USER("speed = 1;"), "w.conf:2: speed:", "no setting of a user; there are start_s"},
		{USER("idle_s = -1;"), "w.conf:2: idle_s:", "from 0"},
		{USER("placement = \"best\";"), "w.conf:2: placement:", "\"interleave\""},
		{USER("placement = \"direct\";"), "w.conf:1:", "needs a node"},
		{USER("node = 1.5;"), "w.conf:2: node:", "whole number"},
		{USER("repeat = true;"), "w.conf:", "limit_s"},
		{USER("name = \"\";"), "w.conf:2: name:", "1 to 31"},
		{PROGRAM("page_kb = 8;"), "w.conf:1:", "4 or 2048"},
		{PROGRAM("touch = \"none\";"), "w.conf:2: touch:", "\"master\""},
		{PROGRAM("phases = ( );"), "w.conf:2: phases:", "one entry"},
		{PROGRAM("phases = ( { giga = 0; } );"), "w.conf:2: giga:", "from 0.001"},
		{PROGRAM("phases = ( { overlap = 1e999; } );"), "w.conf:2: overlap:", "from 1"},
		{PROGRAM("phases = ( { shared = 0.9; neighbours = 0.9; } );"),
		 "w.conf:2:", "more than 1"},
		{PROGRAM("phases = ( { colour = 0.9; } );"),
		 "w.conf:2: colour:", "of a phase; there are giga"},
		{PROGRAM("footprint_mb = 9000000; page_kb = 4;"), "w.conf:1:", "64 million"},
		{"users = ( { threads = 1; programs = ( \"doom\" ); } );",
		 "w.conf:1:", "there are bt"},
		{"users = ( { threads = 1; programs = ( \"doom\" ); } );",
		 "w.conf:1: no such program: doom", ""},
		{"users = ( { threads = 1; programs = ( 5 ); } );", "w.conf:1: a program is", ""},
		{"users = (\n{\nthreads = 1.5; programs = ( \"sp\" ); } );",
		 "w.conf:3: threads:", "from 1 to 1000000 is"},
		{"users = (\n{\nthreads = \"2\"; programs = ( \"sp\" ); } );",
		 "w.conf:3: threads:", "whole number"},
		{"users = ( {\nthreads = 0; programs = ( \"sp\" ); } );",
		 "w.conf:2: threads:", "whole number"},
		{PROGRAM("thread = 8;"), "w.conf:2: thread:", "like name touch phases"},
		{"users = ( { programs = ( { threads = 1; } ); } );", "w.conf:1:", "\"like\""},
		{"@include \"/etc/passwd\"\n", "w.conf: @include", "not allowed"},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_sim_workload workload = {0};
		char error[512] = "";
		if (parse(cases[i].text, error, &workload) != -EINVAL ||
		    strncmp(error, cases[i].place, strlen(cases[i].place)) != 0 ||
		    !strstr(error, cases[i].reason))
			fail_msg("\"%s\" gives \"%s\", not %s … %s", cases[i].text, error,
				 cases[i].place, cases[i].reason);
		assert_null(workload.users);
	}
}

/* As in test_config_text.c. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

TEST(test_bytes_of_any_kind)
{
	static const char whole[] = PROGRAM("phases = ( { giga = 5; shared = 0.5; } );");
	char text[sizeof(whole)], error[512];
	struct nm_sim_workload workload;
	assert_int_equal(nm_sim_workload_parse("w", "a\0b", 3, error, sizeof(error), &workload),
			 -EINVAL);
	/* Truncated anywhere, or with any byte changed: an error or a workload, never a crash. */
	for (size_t cut = 0; cut < sizeof(whole) - 1; cut++) {
		if (nm_sim_workload_parse("w", whole, cut, error, sizeof(error), &workload) == 0)
			nm_sim_workload_clear(&workload);
		memcpy(text, whole, sizeof(whole));
		for (unsigned bit = 0; bit < 8; bit++) {
			text[cut] = (char)(whole[cut] ^ (1 << bit));
			if (text[cut] && nm_sim_workload_parse("w", text, sizeof(whole) - 1, error,
							       sizeof(error), &workload) == 0)
				nm_sim_workload_clear(&workload);
		}
	}
}

RUN_TESTS()
