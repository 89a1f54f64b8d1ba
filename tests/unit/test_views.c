/* SPDX-License-Identifier: MIT */
/* The document of Dump for a daemon on a synthetic machine in simulated time. */
#define SET_UP open_world
#define TEAR_DOWN close_world
#include "../support/test.h"

#include "dump_fixture.h"
#include "page_daemon_fixture.h"

/* ---- the machine ---- */

static ssize_t read_more(struct nm_platform *platform, int directory, const char *path,
			 char *buffer, size_t size)
{
	unsigned node;
	if (sscanf(path, "sys/devices/system/node/node%u/meminfo", &node) == 1)
		return node == 3 ? -ENOENT
				 : snprintf(buffer, size,
					    "Node %u MemTotal:       8000 kB\n"
					    "Node %u MemFree:        %u kB\n",
					    node, node, 100 * (node + 1));
	return read_with_load(platform, directory, path, buffer, size);
}

static int open_world(void **state)
{
	int r = open_pages(state);
	world.ops.read_file = read_more;
	return r;
}

static int close_world(void **state)
{
	shown_clear();
	return world_close(state);
}

static void see(const char *section)
{
	show_document(nm_command_dump(&world.daemon), section);
}

/* ---- nodes ---- */

TEST(nodes_have_their_load_and_memory)
{
	(void)add_worker(1000, 0, 2);
	(void)add_worker(1000, 1, 2);
	world.daemon.config->threads.policy = NM_POLICY_NONE; /* they stay there */
	live(4);
	see("nodes");
	assert_int_equal(shown.rows, NODES);
	assert_shown(1, "node", "0");
	assert_shown(1, "cpus", "0-1");
	assert_shown(2, "cpus", "2-3");
	assert_shown(1, "threads", "2");
	assert_true(shown_number(1, "load") > 0.9);
	assert_true(shown_number(2, "load") < 0.1);
	assert_true(shown_number(3, "access_share") > 0.99);
	assert_shown(2, "memory_free_bytes", "204800");
	assert_null(shown_text(4, "memory_free_bytes")); /* unreadable: omitted */
}

/* ---- threads and processes ---- */

TEST(threads_show_their_metrics)
{
	(void)add_worker(1000, 0, 0);
	(void)add_worker(1000, 2, 3);
	(void)add_worker(2000, 4, 2);
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	live(5);
	see("threads");
	assert_int_equal(shown.rows, 3);
	assert_shown(1, "tid", "1000");
	assert_shown(1, "cpu", "0");
	assert_shown(1, "node", "0");
	assert_shown(1, "preferred_node", "0");
	assert_true(shown_number(1, "local_share") > 0.99);
	assert_shown(2, "tid", "1002");
	assert_shown(2, "preferred_node", "3");
	assert_true(shown_number(2, "local_share") < 0.01);
	assert_true(shown_number(2, "latency_cycles") > shown_number(1, "latency_cycles"));
	assert_true(shown_number(2, "relative_performance") < 1);
	assert_null(shown_text(2, "assigned_node"));
	assert_null(shown_text(2, "last_decision"));
	assert_shown(3, "pid", "2000");
}

TEST(processes_add_their_threads_up)
{
	(void)add_worker(1000, 0, 0);
	(void)add_worker(1000, 2, 3);
	(void)add_worker(1000, 3, 3);
	snprintf(fake_get(world.fake, 1000)->cgroup, sizeof(fake_get(world.fake, 1000)->cgroup),
		 "/system.slice/a.service/sub");
	snprintf(fake_get(world.fake, 1000)->comm, sizeof(fake_get(world.fake, 1000)->comm),
		 "a\nb");
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	live(5);
	see("processes");
	assert_int_equal(shown.rows, 1);
	assert_shown(1, "pid", "1000");
	assert_shown(1, "comm", "a\\x0ab");
	assert_shown(1, "unit", "a.service");
	assert_shown(1, "threads", "3");
	assert_shown(1, "node", "1");
	assert_shown(1, "assigned", "0");
	assert_true(shown_number(1, "run_share") > 2 && shown_number(1, "run_share") <= 3.1);
	assert_null(shown_text(1, "last_decision"));
	assert_true(shown_number(1, "local_share") > 0.2 && shown_number(1, "local_share") < 0.5);
	assert_true(shown_number(1, "latency_cycles") > 100);
	assert_shown(1, "state", "observed");	   /* nothing would be moved */
	assert_null(shown_text(1, "exclusivity")); /* pages are not sampled */
	world.daemon.config->threads.policy = NM_POLICY_IMAR2;
	see("processes");
	assert_shown(1, "state", "managed");
}

TEST(a_release_is_shown_and_ends)
{
	(void)add_worker(1000, 0, 0);
	(void)add_worker(2000, 2, 1);
	fake_pin(world.fake, 2000, fake_cpus(2, 2));
	live(4);
	see("processes");
	assert_int_equal(shown.rows, 2);
	assert_shown(2, "pid", "2000");
	assert_shown(2, "state", "refused");
	assert_shown(2, "reason", "pinned");
	assert_shown(1, "steer", "");
	assert_int_equal(nm_command_release(&world.daemon, 1000), 0);
	see("processes");
	assert_shown(1, "state", "released");
	assert_null(shown_text(1, "threads"));
	see("threads");
	assert_int_equal(shown.rows, 0);
	assert_int_equal(nm_command_manage(&world.daemon, 4711), -ESRCH);
	assert_int_equal(nm_command_manage(&world.daemon, 1000), 0);
	live(12);
	see("processes");
	assert_shown(1, "state", "managed");
}

TEST(attributes_of_cgroups_are_shown)
{
	(void)add_worker(1000, 0, 0);
	(void)add_worker(2000, 2, 1);
	fake_group(world.fake, "/");
	fake_group(world.fake, "/a.slice");
	fake_group(world.fake, "/b.slice");
	fake_move(world.fake, 1000, "/a.slice/x.service");
	fake_move(world.fake, 2000, "/b.slice/y.service");
	fake_set_attribute(world.fake, "/a.slice", "observe");
	fake_set_attribute(world.fake, "/b.slice", "off");
	live(4);
	see("processes");
	assert_int_equal(shown.rows, 2);
	assert_shown(1, "state", "observed");
	assert_shown(1, "steer", "observe");
	assert_shown(1, "threads", "1");
	assert_shown(2, "state", "refused");
	assert_shown(2, "reason", "off");
	assert_shown(2, "steer", "off");
}

static void assert_reason(const char *pid, const char *state, const char *reason,
			  const char *explanation)
{
	see("processes");
	unsigned row = shown_row("pid", pid);
	assert_true(row > 0);
	assert_shown(row, "state", state);
	if (reason)
		assert_shown(row, "reason", reason);
	else
		assert_null(shown_text(row, "reason"));
	assert_non_null(shown_text(row, "explanation"));
	if (!strstr(shown_text(row, "explanation"), explanation))
		fail_msg("explanation: %s", shown_text(row, "explanation"));
}

TEST(processes_are_explained)
{
	(void)add_worker(1000, 0, 0);
	(void)add_worker(2000, 2, 1);
	(void)add_worker(3000, 4, 2);
	fake_get(world.fake, 2000)->rss_kb = 100;
	fake_group(world.fake, "/");
	fake_group(world.fake, "/b.slice");
	fake_move(world.fake, 3000, "/b.slice/y.service");
	fake_set_attribute(world.fake, "/b.slice", "observe");
	live(4);
	assert_reason("1000", "managed", NULL, "it is managed");
	assert_reason("2000", "ignored", "small", "0.1 MiB is less than targets.min_rss_mb");
	assert_shown(shown_row("pid", "2000"), "rss_bytes", "102400");
	assert_reason("3000", "observed", NULL, "is only observed: the attribute user.numa-migrd");
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	assert_reason("1000", "observed", NULL, "threads.policy is \"none\"");
}

TEST(a_process_that_keeps_its_memory_is_explained)
{
	(void)add_worker(1000, 0, 0);
	fake_get(world.fake, 1000)->rss_kb = 3U << 20;
	live(4);
	world.daemon.config->pages.max_gb_of_process = 3;
	assert_reason("1000", "managed", NULL, "it is managed");
	world.daemon.config->pages.max_gb_of_process = 2;
	assert_reason(
		"1000", "managed", NULL,
		"memory of 3.0 GiB stays where it is: it exceeds pages.max_gb_of_process (2)");
}

TEST(one_node_is_the_reason)
{
	(void)add_worker(1000, 0, 0);
	live(4);
	for (unsigned node = 1; node < NODES; node++)
		hwloc_bitmap_zero(world.daemon.pipeline.topology->nodes[node].cpus);
	see("processes");
	assert_shown(1, "reason", "one-node");
	assert_shown(1, "explanation", "one node has CPUs: nothing is moved");
}

/* ---- decisions ---- */

TEST(a_decision_is_remembered_with_its_verdict)
{
	(void)add_worker(1000, 0, 2);
	(void)add_worker(1000, 2, 1);
	live(4);
	for (int i = 0; i < 20 && world.daemon.tally.verdicts[NM_VERDICT_IMPROVED] == 0; i++)
		live_one();
	see("decisions");
	assert_int_equal(shown.rows, world.daemon.tally.decisions);
	unsigned row = shown_row("verdict", "improved");
	assert_true(row > 0);
	const struct nm_entry *logged =
		find_entry(0, NM_MESSAGE_DECISION, "DECISION", shown_text(row, "decision"));
	assert_non_null(logged);
	assert_shown(row, "message", logged->text);
	assert_shown(row, "tid", field_of(logged, "TID"));
	assert_shown(row, "to_node", field_of(logged, "NODE_TO"));
	assert_shown(row, "result", "applied");
	assert_shown(row, "policy", "imar2");
	assert_true(shown_number(row, "after") > shown_number(row, "before"));
	const json_t *first = json_array_get(shown_value(row, "candidates"), 0);
	assert_true(json_number_value(json_object_get(first, "tickets")) ==
		    strtod(field_of(logged, "TICKETS"), NULL));
	assert_int_equal(json_integer_value(json_object_get(first, "to_node")),
			 strtol(field_of(logged, "NODE_TO"), NULL, 10));
	assert_non_null(strstr(shown_text(row, "fields"), "TICKETS_PARTS="));
	assert_non_null(strstr(shown_text(row, "message"), " accesses on node "));
	assert_non_null(strstr(shown_text(row, "verdict_message"), "improved"));
	char id[32], tid[32];
	snprintf(id, sizeof(id), "%s", shown_text(row, "decision"));
	snprintf(tid, sizeof(tid), "%s", shown_text(row, "tid"));
	see("threads");
	assert_shown(shown_row("tid", tid), "last_decision", id);
	assert_non_null(shown_text(shown_row("tid", tid), "assigned_node"));
	see("processes");
	assert_true(shown_number(1, "last_decision") >= strtod(id, NULL));
	/* Another thread has its number since. */
	for (size_t i = 0; i < world.daemon.views.snapshot->nr_threads; i++)
		world.daemon.views.snapshot->threads[i].start_ticks++;
	see("threads");
	assert_null(shown_text(shown_row("tid", tid), "last_decision"));
}

TEST(counters_count)
{
	(void)add_worker(1000, 0, 2);
	live(12);
	see("status");
	assert_shown(0, "intervals", "12");
	assert_true(shown_number(0, "decisions") >= 1);
	assert_null(shown_text(0, "pages_moved"));   /* pages are not moved */
	assert_null(shown_text(0, "homes_granted")); /* only with policy "auto" */
}

TEST(homes_are_counted)
{
	(void)add_worker(1000, 0, 2);
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	live(4);
	world.daemon.tally.homes = (struct nm_home_tally){7, 1, 2, 40, 163840};
	see("status");
	assert_shown(0, "homes_granted", "7");
	assert_shown(0, "homes_expired", "1");
	assert_shown(0, "homes_yielded", "2");
	assert_shown(0, "pages_moved_home", "40");
	assert_shown(0, "bytes_moved_home", "163840");
}

/* ---- pages ---- */

TEST(pages_are_summed_up)
{
	make_space(24, 2);
	(void)add_user(1000, 0, 0, 12);
	(void)add_user(1000, 2, 12, 24);
	begin();
	for (int i = 0; i < 20 && pages_on(2) > 0; i++)
		live_one();
	live(30);
	see("status");
	assert_shown(0, "pages_moved", "24");
	assert_shown(0, "pages_elsewhere", "0");
	see("processes");
	assert_shown(1, "state", "managed"); /* its pages are moved */
	assert_true(shown_number(1, "exclusivity") > 0.99);
	assert_true(shown_number(1, "shared_page_share") < 0.01);
	const json_t *shares = shown_value(1, "memory_shares");
	assert_int_equal(json_array_size(shares), NODES);
	assert_true(json_number_value(json_array_get(shares, 0)) == 0.5);
	assert_true(json_number_value(json_array_get(shares, 2)) == 0);
	see("decisions");
	assert_shown(1, "kind", "pages");
	assert_shown(1, "policy", "exclusivity");
	assert_shown(1, "result", "applied");
	assert_shown(1, "tid", "0");
	assert_shown(1, "from_node", "2");
	assert_null(shown_text(1, "from_cpu"));
	assert_true(shown_number(1, "bytes") == 4096 * shown_number(1, "pages"));
}

static void assert_no_address(const json_t *value)
{
	size_t index;
	json_t *member;
	const char *name, *text = json_string_value(value);
	char address[32];
	json_array_foreach(value, index, member) assert_no_address(member);
	json_object_foreach((json_t *)value, name, member) assert_no_address(member);
	if (json_is_integer(value))
		assert_false(json_integer_value(value) >= (json_int_t)START &&
			     json_integer_value(value) <= (json_int_t)START + (2048 << 12));
	(void)snprintf(address, sizeof(address), "%llx", (unsigned long long)START >> 24);
	assert_true(!text || !strstr(text, address));
}

/* Ranges of at least 2 MiB, with as many samples as a decision needs. */
/* SECURITY: cap-perfmon */
TEST(addresses_are_not_shown)
{
	make_space(2048, 2);
	(void)add_user(1000, 0, 0, 2048);
	begin();
	live(12);
	see("decisions");
	assert_true(shown.rows > 0);
	assert_no_address(shown.document);
}

/* ---- org.numamigrd1(5) ---- */

static char *read_whole(const char *path)
{
	char *text = calloc(1, 1 << 16);
	FILE *file = fopen(path, "re");
	assert_true(text && file);
	assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
	(void)fclose(file);
	return text;
}

/* Returns true if it is a word of a line that names values. */
static bool is_documented(const char *page, const char *name)
{
	size_t length = strlen(name);
	for (const char *line = page; line; line = strchr(line, '\n')) {
		line += line != page;
		if (strncmp(line, ".It Va ", 7) != 0 && strncmp(line, ".Va ", 4) != 0)
			continue;
		const char *end = strchr(line, '\n');
		for (const char *at = strstr(line, name); at && at < end; at = strstr(at + 1, name))
			if (at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n'))
				return true;
	}
	return false;
}

/* Checks every name, and that its meaning follows it. */
static void assert_table_is_documented(const struct nm_table *table, const char *page)
{
	for (size_t i = 0; i < table->count; i++)
		if (!is_documented(page, table->fields[i].name) ||
		    !strstr(page, table->fields[i].help))
			fail_msg("org.numamigrd1(5) does not have \"%s\": %s",
				 table->fields[i].name, table->fields[i].help);
}

TEST_BETWEEN(NULL, NULL, every_name_is_documented)
{
	const struct nm_table *tables[] = {
		&nm_node_table,	     &nm_process_table, &nm_thread_table, &nm_decision_table,
		&nm_candidate_table, &nm_trial_table,	&nm_program_table};
	char *page = read_whole(NM_SOURCE_DIR "/man/org.numamigrd1.5");
	for (size_t i = 0; i < NM_ARRAY_SIZE(tables); i++)
		assert_table_is_documented(tables[i], page);
	for (size_t i = 0; i < nm_statistic_count; i++) {
		const char *name = nm_statistic_rows[i].status;
		if (name && !is_documented(page, name))
			fail_msg("org.numamigrd1(5) does not have %s", name);
	}
	assert_false(is_documented(page, "no_such_name"));
	assert_false(is_documented(page, "decision_"));
	free(page);
}

RUN_TESTS()
