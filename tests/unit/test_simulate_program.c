/* SPDX-License-Identifier: MIT */
/* The program simulate: errors are reported with file and line before any long
 * run, and misleading values are not shown. */
#define SET_UP with_files
#define TEAR_DOWN without
#include "../support/test.h"

#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <sysexits.h>

#include <sys/resource.h>
#include <unistd.h>

#include "../model/policies.h"
#include "../support/run_program.h"
#include "fixture.h"

#define SIMULATE "tests/model/simulate"

static char root[FIXTURE_PATH];

#define PROGRAM "programs = ( { like = \"compute\"; threads = 2; phases = ( { giga = 2; } ); } );"

static int with_files(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	fixture_file(root, "ends", "limit_s = 60;\nusers = ( { " PROGRAM " } );\n");
	fixture_file(root, "repeats",
		     "limit_s = 20;\nusers = ( { " PROGRAM " },\n"
		     "{ repeat = true; " PROGRAM " } );\n");
	fixture_file(root, "cut",
		     "limit_s = 1;\nusers = ( { " PROGRAM
		     " }, { threads = 2; programs = ( \"sp\" ); "
		     "} );\n");
	return 0;
}

static int without(void **state)
{
	(void)state;
	fixture_remove(root);
	return 0;
}

/* Replaces each @ in the arguments by the folder. */
static const char *in_folder(const char *arguments, char *ret, size_t size)
{
	size_t used = 0;
	for (; *arguments && used + 1 < size; arguments++) {
		int length = *arguments == '@'
				     ? snprintf(ret + used, size - used, "%s", root)
				     : snprintf(ret + used, size - used, "%c", *arguments);
		used += (size_t)length;
	}
	return ret;
}

static void assert_simulate(const char *arguments, int status, const char *says)
{
	char words[1024] = "";
	assert_program(SIMULATE, in_folder(arguments, words, sizeof(words)), status, says);
}

#define RING "--machine=ring-4x10 --workload=@/ends "

TEST(test_incompatible_options)
{
	assert_simulate("", EX_USAGE, "--machine, --workload and --policy are needed");
	assert_simulate("--seed=x", EX_USAGE, "--seed is a whole number from 1 to");
	assert_simulate("--wander=x", EX_USAGE, "--wander is a number from 0 to 10, not");
	assert_simulate("--wander=-1", EX_USAGE, "--wander is a number from 0 to 10");
	assert_simulate("--wander=nan", EX_USAGE, "--wander is a number from 0 to 10");
	assert_simulate("--runs=0", EX_USAGE, "--runs is a whole number from 1 to 1000");
}

/* Not after running the policies before it. */
TEST(test_all_policies_are_read_first)
{
	char words[1024], text[4096];
	fixture_file(root, "wrong", "\nthreads: { polixy = 1; };\n");
	assert_simulate(RING "--policy=none --policy=@/wrong", 1, "/wrong:2: threads.polixy");
	(void)in_folder(RING "--policy=none --policy=imar", words, sizeof(words));
	assert_int_equal(run_program(SIMULATE, words, text, sizeof(text)), EX_USAGE);
	assert_non_null(strstr(text, "no policy or file of this name: imar\nThere are:"));
	assert_null(strstr(text, "POLICY"));
}

TEST(test_files_need_no_dot_in_their_name)
{
	char here[512];
	fixture_file(root, "mine", "threads: { policy = \"imar2\"; };\n");
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(root), 0);
	assert_simulate(RING "--policy=mine", 0, "\nmine ");
	assert_simulate("--machine=mine --workload=@/ends --policy=none", 1,
			"simulate: mine: cannot be read as an hwloc XML topology");
	assert_int_equal(chdir(here), 0);
}

/* Memory-only nodes: numactl would not run a program there, and neither does the model. */
TEST(test_programs_are_not_bound_to_memory_only_nodes)
{
	char path[FIXTURE_PATH + 16], words[1024], text[4096];
	hwloc_topology_t made;
	(void)snprintf(path, sizeof(path), "%s/hbm.xml", root);
	assert_int_equal(hwloc_topology_init(&made), 0);
	assert_int_equal(hwloc_topology_set_synthetic(made, "pack:2 [numa(memory=8GB)] "
							    "[numa(memory=8GB)] core:2 pu:1"),
			 0);
	assert_int_equal(hwloc_topology_load(made), 0);
	assert_int_equal(hwloc_topology_export_xml(made, path, 0), 0);
	hwloc_topology_destroy(made);
	fixture_file(root, "two", "users = ( { " PROGRAM " }, { " PROGRAM " } );\n");
	(void)in_folder("--machine=@/hbm.xml --workload=@/two --policy=direct "
			"--policy=oracle --policy=kernel",
			words, sizeof(words));
	assert_int_equal(run_program(SIMULATE, words, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "100.0%"));
	fixture_file(root, "memory",
		     "users = ( { name = \"me\"; placement = \"direct\"; node = 1; " PROGRAM
		     " } );\n");
	assert_simulate("--machine=@/hbm.xml --workload=@/memory --policy=none", 1,
			"/memory: user 1 (me): node 1 has no usable CPU");
}

TEST(test_workload_errors_name_the_file)
{
	fixture_file(root, "nowhere",
		     "users = ( { name = \"me\"; placement = \"direct\"; node = 7; " PROGRAM
		     " } );\n");
	assert_simulate("--machine=ring-4x10 --workload=@/nowhere --policy=none", 1,
			"/nowhere: user 1 (me): no node 7; the machine has 0 to 3");
	assert_simulate("--machine=ring-4x10 --workload=/dev/zero --policy=none", 1,
			"/dev/zero: larger than 1024 KiB");
	assert_simulate("--machine=ring-4x10 --workload=@ --policy=none", 1, ": Is a directory");
	assert_simulate("--machine=@/no.xml --workload=@/ends --policy=none", 1,
			"/no.xml: cannot be read as an hwloc XML topology (No such file");
}

static json_t *row_of(const char *workload, const char *policy)
{
	char words[1024], arguments[256], text[8192];
	(void)snprintf(arguments, sizeof(arguments),
		       "--json --machine=ring-4x10 --policy=%s --workload=@/%s", policy, workload);
	assert_int_equal(run_program(SIMULATE, in_folder(arguments, words, sizeof(words)), text,
				     sizeof(text)),
			 0);
	json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	json_t *row = json_incref(json_array_get(json_object_get(document, "simulated"), 0));
	assert_non_null(row);
	json_decref(document);
	return row;
}

static double real_of(const json_t *row, const char *name)
{
	return json_real_value(json_object_get(row, name));
}

/* Programs that repeat compute all the time, and interrupted ones did less: neither time can be
 * compared. */
TEST(test_computing_time_counts_finished_programs)
{
	json_t *ends = row_of("ends", "none"), *repeats = row_of("repeats", "none"),
	       *cut = row_of("cut", "none");
	assert_true(real_of(ends, "computing_s") > 0);
	assert_true(real_of(ends, "programs_ended") == 1);
	assert_true(real_of(repeats, "programs_ended") > 2);
	assert_true(real_of(repeats, "computing_s") < 10);
	assert_true(real_of(repeats, "time_s") >= 20);
	assert_null(json_object_get(cut, "computing_s"));
	json_decref(ends);
	json_decref(repeats);
	json_decref(cut);
	assert_simulate("--machine=ring-4x10 --workload=@/cut --policy=none", 0,
			"       -       -");
}

TEST(test_digest_is_of_a_daemon)
{
	json_t *none = row_of("ends", "none"), *some = row_of("ends", "lbma");
	const char *digest = json_string_value(json_object_get(some, "digest"));
	assert_null(json_object_get(none, "digest"));
	assert_non_null(digest);
	assert_int_equal(strspn(digest, "0123456789abcdef"), 16);
	json_decref(none);
	json_decref(some);
}

/* docs/simulation.md documents every machine, policy and program that is listed for an unknown
 * name. */
TEST_BETWEEN(NULL, NULL, test_documented_names_can_be_simulated)
{
	char item[256];
	FILE *file = fopen(NM_SOURCE_DIR "/docs/simulation.md", "r");
	assert_non_null(file);
	nm_autofree char *page = calloc(1, 1 << 16);
	assert_true(fread(page, 1, (1 << 16) - 1, file) > 0);
	assert_int_equal(fclose(file), 0);
	for (size_t i = 0; nm_sim_model(i); i++) {
		(void)snprintf(item, sizeof(item), "\n| `%s` | %s |\n", nm_sim_model(i)->name,
			       nm_sim_model(i)->words);
		assert_non_null(strstr(page, item));
	}
	for (size_t i = 0; nm_sim_policy_at(i); i++) {
		(void)snprintf(item, sizeof(item), "\n| `%s` | %s |\n", nm_sim_policy_at(i)->name,
			       nm_sim_policy_at(i)->words);
		assert_non_null(strstr(page, item));
	}
	const char *programs = strstr(page, "\nPrograms are ");
	assert_non_null(programs);
	for (const char *const *name = nm_sim_programs(); *name; name++)
		assert_non_null(strstr(programs, *name));
}

RUN_TESTS()
