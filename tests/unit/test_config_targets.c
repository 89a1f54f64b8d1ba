/* SPDX-License-Identifier: MIT */
/* Patterns by slice and cgroup, and the settings of these patterns. */
#include "../support/test.h"

#include <stdio.h>

#include "config_cases.h"

static bool includes(const char *pattern, const char *cgroup)
{
	char text[256];
	(void)snprintf(text, sizeof(text), "targets: { include = ( { %s } ); };", pattern);
	nm_auto(nm_config_freep) struct nm_config *config = accept(text);
	const struct nm_target_subject subject = {.command = "x", .cgroup = cgroup, .uid = 7};
	return nm_config_find(&config->targets.include, &subject) != NULL;
}

TEST(test_slice)
{
	static const char batch[] = "slice = \"batch.slice\";";
	assert_true(includes(batch, "/batch.slice/job.service"));
	assert_true(includes(batch, "/batch.slice"));
	assert_true(includes(batch, "/batch.slice/batch-night.slice/job.service/sub"));
	assert_false(includes(batch, "/batch.slices/job.service"));
	assert_false(includes(batch, "/xbatch.slice/job.service"));
	assert_false(includes(batch, "/system.slice/job.service"));
	assert_false(includes(batch, "/"));
	assert_false(includes(batch, NULL));
	assert_true(includes("slice = \"batch-n*\";", "/batch.slice/batch-night.slice/j"));
	assert_false(includes("slice = \"*\";", "/job.scope"));
	assert_true(includes("slice = \"*\";", "/batch.slice"));
}

/* A slice created by a user in a delegated subtree is not a system slice. */
TEST(test_slice_of_a_user)
{
	static const char mine[] =
		"/user.slice/user-7.slice/user@7.service/batch.slice/job.service";
	assert_false(includes("slice = \"batch.slice\";", mine));
	assert_true(includes("slice = \"user-7.slice\";", mine));
	assert_false(includes("unit = \"batch.slice\";", mine));
}

/* A directory created by users or containers is not a system unit. */
/* SECURITY: own-units */
TEST(test_unit)
{
	static const char pattern[] = "unit = \"postgresql*.service\";";
	static const char mine[] =
		"/user.slice/user-7.slice/user@7.service/app.slice/postgresql.service";
	assert_true(includes(pattern, "/system.slice/postgresql.service"));
	assert_true(
		includes(pattern, "/system.slice/system-postgresql.slice/postgresql@15.service/x"));
	assert_true(includes(pattern, "/postgresql.service"));
	assert_false(includes(pattern, mine));
	assert_false(includes(pattern, "/system.slice/docker-1.scope/postgresql.service"));
	assert_false(includes("unit = \"*postgresql*\";", mine));
	assert_false(includes("unit = \"system.slice\";", "/system.slice/a.service"));
	assert_false(includes("unit = \"*\";", "/system.slice"));
	assert_true(includes("unit = \"user@7.service\";", mine));
	assert_true(includes("unit = \"user@7.service/postgresql.service\";", mine));
	assert_true(includes("unit = \"user@*.service/postgres*\";", mine));
	assert_false(includes("unit = \"user@8.service/postgresql.service\";", mine));
	assert_false(includes("unit = \"*/postgresql.service\";",
			      "/system.slice/docker-1.scope/postgresql.service"));
	assert_false(includes("unit = \"user@7.service/*\";",
			      "/user.slice/user-7.slice/user@7.service"));
	assert_false(includes(pattern, NULL));
}

TEST(test_cgroup)
{
	static const char machines[] = "cgroup = \"/machine.slice/*\";";
	assert_true(includes(machines, "/machine.slice/a.scope"));
	assert_true(includes(machines, "/machine.slice/a.scope/b/c"));
	assert_false(includes(machines, "/machine.slice"));
	assert_false(includes(machines, "/x/machine.slice/a.scope"));
	assert_true(includes("cgroup = \"/a\";", "/a/b"));
	assert_true(includes("cgroup = \"/a\";", "/a"));
	assert_false(includes("cgroup = \"/a\";", "/ab"));
	assert_true(includes("cgroup = \"/a/*/c\";", "/a/b/c/d"));
	assert_false(includes("cgroup = \"/a/*/c\";", "/a/b/x/c"));
	assert_true(includes("cgroup = \"/\";", "/a/b"));
	assert_true(includes("cgroup = \"/\";", "/"));
	assert_true(includes("cgroup = \"/*\";", "/a"));
	assert_false(includes("cgroup = \"/\";", NULL));
	assert_false(includes("cgroup = \"/\";", ""));
}

TEST(test_all_must_match)
{
	static const char both[] = "slice = \"a.slice\"; cgroup = \"/a.slice/b\"; user = \"7\";";
	assert_true(includes(both, "/a.slice/b/c"));
	assert_false(includes(both, "/a.slice/c"));
	assert_false(includes("slice = \"a.slice\"; user = \"8\";", "/a.slice/b"));
}

#define A_SLICE "allowed: the name of a slice, which ends in .slice, or a pattern with *"
#define A_CGROUP                                                                                   \
	"allowed: a path in the unified hierarchy, or a pattern, that begins with / and does not " \
	"end in /"

READINGS(test_mistakes,
	 {"targets: { include = ( { slice = 'batch'; } ); };",
	  "conf:1: targets.include.slice: found 'batch', " A_SLICE},
	 {"targets: { include = ( { slice = '/a.slice'; } ); };",
	  "conf:1: targets.include.slice: found '/a.slice', " A_SLICE},
	 {"targets: { exclude = ( { cgroup = 'a/b'; } ); };",
	  "conf:1: targets.exclude.cgroup: found 'a/b', " A_CGROUP},
	 {"targets: { exclude = ( { cgroup = '/a/'; } ); };",
	  "conf:1: targets.exclude.cgroup: found '/a/', " A_CGROUP},
	 {"targets: { exclude = ( { cgroup = '/a//b'; } ); };",
	  "conf:1: targets.exclude.cgroup: found '/a//b', " A_CGROUP},
	 {"targets: { include = ( { cgroup = '/sys/fs/cgroup/a.slice'; } ); };",
	  "conf:1: targets.include.cgroup: found '/sys/fs/cgroup/a.slice', allowed: the same path "
	  "without /sys/fs/cgroup"},
	 {"targets: { exclude = ( { cgroup = 1; } ); };",
	  "conf:1: targets.exclude.cgroup: found 1, allowed: the same number in quotes"})

/* ---- metrics.file ---- */

#define A_FILE "allowed: '' or an absolute path of at most 255 bytes that ends in .prom"

READINGS(test_file, {"metrics: { file = '/var/x y.prom'; };", "metrics.file = '/var/x y.prom'"},
	 {"metrics: { file = 'x.prom'; };", "conf:1: metrics.file: found 'x.prom', " A_FILE},
	 {"metrics: { file = '/var/'; };", "conf:1: metrics.file: found '/var/', " A_FILE},
	 {"metrics: { file = '/a\\x0ab'; };", "conf:1: metrics.file: found '/a\\x0ab', " A_FILE})

TEST(test_long_file)
{
	char text[400], is[400], path[NM_CONFIG_PATH_BYTES + 1];
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	memcpy(path + sizeof(path) - 7, ".prom", sizeof(".prom"));
	(void)snprintf(text, sizeof(text), "metrics: { file = '%s'; };", path);
	(void)snprintf(is, sizeof(is), "metrics.file = '%s'", path);
	check_reading(&(struct reading){text, is});
	memcpy(path + sizeof(path) - 7, "a.prom", sizeof("a.prom"));
	(void)snprintf(text, sizeof(text), "metrics: { file = '%s'; };", path);
	check_reading(&(struct reading){text, "conf:1: metrics.file: found …"});
}

RUN_TESTS()
