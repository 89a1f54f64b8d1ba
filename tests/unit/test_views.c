/* SPDX-License-Identifier: MIT */
/* Views on the bus for a daemon on a synthetic machine in simulated time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "page_daemon_fixture.h"
#include "show_fixture.h"

enum { USER = 1000, OTHER = 1001 };

static struct nm_owner owner;

/* ---- the machine ---- */

static ssize_t read_more(struct nm_platform *platform, int directory, const char *path,
			 char *buffer, size_t size)
{
	unsigned node, pid, tid;
	if (sscanf(path, "sys/devices/system/node/node%u/meminfo", &node) == 1)
		return node == 3 ? -ENOENT
				 : snprintf(buffer, size,
					    "Node %u MemTotal:       8000 kB\n"
					    "Node %u MemFree:        %u kB\n",
					    node, node, 100 * (node + 1));
	if (sscanf(path, "proc/%u/task/%u/com", &pid, &tid) == 2 && strstr(path, "/comm"))
		return snprintf(buffer, size, "own\x1b[%u\n", tid);
	return read_with_load(platform, directory, path, buffer, size);
}

static int own_directory(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	(void)platform;
	assert_in_range(directory, FAKE_FD_BASE, FAKE_FD_BASE + FAKE_FDS - 1);
	*ret = owner;
	return 0;
}

static int open_world(void **state)
{
	int r = open_pages(state);
	world.ops.read_file = read_more;
	return r;
}

/* ---- requests ---- */

static struct nm_show show;

static void ask_processes(void)
{
	show = shown_show();
	assert_int_equal(nm_view_processes(&world.daemon, &show), 0);
}

static void ask_threads(uint32_t pid)
{
	show = shown_show();
	assert_int_equal(nm_view_threads(&world.daemon, pid, &show), 0);
}

static void ask_nodes(void)
{
	show = shown_show();
	assert_int_equal(nm_view_nodes(&world.daemon, &show), 0);
}

static void ask_regions(uid_t caller)
{
	show = shown_show();
	assert_int_equal(nm_view_regions(&world.daemon, 1000, caller, &show), 0);
}

static int ask_pages(uint32_t pid)
{
	show = shown_show();
	show.open(show.context);
	int r = nm_view_pages(&world.daemon, pid, &show);
	show.close(show.context);
	return r;
}

/* ---- nodes ---- */

static void nodes_have_their_load_and_memory(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 2);
	(void)add_worker(1000, 1, 2);
	world.daemon.config->threads.policy = NM_POLICY_NONE; /* they stay there */
	live(4);
	ask_nodes();
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

static void threads_show_their_metrics(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 0);
	(void)add_worker(1000, 2, 3);
	(void)add_worker(2000, 4, 2);
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	live(5);
	ask_threads(0);
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
	assert_shown(2, "leased", "false");
	assert_null(shown_text(2, "last_decision"));
	assert_shown(3, "pid", "2000");
	/* Of one process, with the names of the threads, which are untrusted. */
	ask_threads(1000);
	assert_int_equal(shown.rows, 2);
	assert_shown(2, "comm", "own\\x1b[1002");
	show = shown_show();
	assert_int_equal(nm_view_threads(&world.daemon, 4711, &show), -ESRCH);
}

static void processes_add_their_threads_up(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 0);
	(void)add_worker(1000, 2, 3);
	(void)add_worker(1000, 3, 3);
	snprintf(fake_get(world.fake, 1000)->cgroup, sizeof(fake_get(world.fake, 1000)->cgroup),
		 "/system.slice/a.service/sub");
	snprintf(fake_get(world.fake, 1000)->comm, sizeof(fake_get(world.fake, 1000)->comm),
		 "a\nb");
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	live(5);
	ask_processes();
	assert_int_equal(shown.rows, 1);
	assert_shown(1, "pid", "1000");
	assert_shown(1, "comm", "a\\x0ab");
	assert_shown(1, "unit", "a.service");
	assert_shown(1, "threads", "3");
	assert_shown(1, "node", "1");
	assert_shown(1, "leases", "0");
	assert_true(shown_number(1, "run_share") > 2 && shown_number(1, "run_share") <= 3.1);
	assert_null(shown_text(1, "last_decision"));
	assert_true(shown_number(1, "local_share") > 0.2 && shown_number(1, "local_share") < 0.5);
	assert_true(shown_number(1, "latency_cycles") > 100);
	assert_shown(1, "state", "observed");	   /* nothing would be moved */
	assert_null(shown_text(1, "exclusivity")); /* pages are not sampled */
	world.daemon.config->threads.policy = NM_POLICY_IMAR2;
	ask_processes();
	assert_shown(1, "state", "managed");
}

static void released_threads_are_shown_as_released(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 0);
	(void)add_worker(2000, 2, 1);
	fake_pin(world.fake, 2000, fake_cpus(2, 2));
	live(4);
	ask_processes();
	assert_int_equal(shown.rows, 2);
	assert_shown(2, "pid", "2000");
	assert_shown(2, "state", "refused");
	assert_shown(2, "reason", "pinned");
	assert_shown(1, "steer", "");
	assert_int_equal(nm_command_release(&world.daemon, 1000), 0);
	ask_processes();
	assert_shown(1, "state", "released");
	assert_null(shown_text(1, "threads"));
	ask_threads(0);
	assert_int_equal(shown.rows, 0);
	show = shown_show();
	assert_int_equal(nm_view_threads(&world.daemon, 1000, &show), -ESRCH);
}

/* The reason why it is nudged instead of leased. */
static void the_runtime_is_shown(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 0);
	fake_asked.runtime = NM_RUNTIME_GO;
	live(4);
	fake_asked.runtime = NM_RUNTIME_NONE;
	(void)add_worker(2000, 2, 1);
	live(4);
	ask_processes();
	assert_int_equal(shown.rows, 2);
	assert_shown(1, "runtime", "Go");
	assert_null(shown_text(2, "runtime"));
}

static void attributes_of_cgroups_are_shown(void **state)
{
	(void)state;
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
	ask_processes();
	assert_int_equal(shown.rows, 2);
	assert_shown(1, "state", "observed");
	assert_shown(1, "steer", "observe");
	assert_shown(1, "threads", "1");
	assert_shown(2, "state", "refused");
	assert_shown(2, "reason", "off");
	assert_shown(2, "steer", "off");
}

static void assert_reason(uint32_t pid, const char *state, const char *reason,
			  const char *explanation)
{
	show = shown_show();
	show.open(show.context);
	assert_int_equal(nm_view_process_reason(&world.daemon, pid, &show), 0);
	show.close(show.context);
	assert_shown(1, "state", state);
	if (reason)
		assert_shown(1, "reason", reason);
	assert_non_null(shown_text(1, "explanation"));
	if (!strstr(shown_text(1, "explanation"), explanation))
		fail_msg("explanation: %s", shown_text(1, "explanation"));
}

static void a_process_that_is_not_listed_is_explained(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 0);
	(void)add_worker(2000, 2, 1);
	(void)add_worker(3000, 4, 2);
	fake_get(world.fake, 2000)->rss_kb = 100;
	fake_group(world.fake, "/");
	fake_group(world.fake, "/b.slice");
	fake_move(world.fake, 3000, "/b.slice/y.service");
	fake_set_attribute(world.fake, "/b.slice", "observe");
	live(4);
	ask_processes();
	assert_int_equal(shown.rows, 2);
	assert_reason(1000, "managed", NULL, "it is managed");
	assert_reason(2000, "refused", "small", "0.1 MiB is less than targets.min_rss_mb");
	assert_shown(1, "rss_bytes", "102400");
	assert_reason(3000, "observed", NULL, "is only observed: the attribute user.numa-migrd");
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	assert_reason(1000, "observed", NULL, "threads.policy is \"none\"");
	show = shown_show();
	show.open(show.context);
	assert_int_equal(nm_view_process_reason(&world.daemon, 4711, &show), -ESRCH);
	world.daemon.paused = true;
	assert_int_equal(nm_view_process_reason(&world.daemon, 1000, &show), -EAGAIN);
	world.daemon.paused = false;
}

/* ---- decisions ---- */

static void a_decision_is_remembered_with_its_verdict(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 2);
	(void)add_worker(1000, 2, 1);
	live(4);
	for (int i = 0; i < 20 && world.daemon.tally.verdicts[NM_VERDICT_IMPROVED] == 0; i++)
		live_one();
	show = shown_show();
	assert_int_equal(nm_view_decisions(&world.daemon, 0, 0, &show), 0);
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
	char id[32], tid[32];
	snprintf(id, sizeof(id), "%s", shown_text(row, "decision"));
	snprintf(tid, sizeof(tid), "%s", shown_text(row, "tid"));
	ask_threads(0);
	assert_shown(shown_row("tid", tid), "last_decision", id);
	assert_shown(shown_row("tid", tid), "leased", "true");
	ask_processes();
	assert_true(shown_number(1, "last_decision") >= strtod(id, NULL));
	show = shown_show();
	show.open(show.context);
	assert_int_equal(nm_view_explain(&world.daemon, strtoull(id, NULL, 10), &show), 0);
	assert_int_equal(nm_view_explain(&world.daemon, 4711, &show), -ENOENT);
	show.close(show.context);
	assert_true(shown_number(1, "tickets") > 0);
	assert_true(shown_number(1, "candidates.1.tickets") == shown_number(1, "tickets"));
	assert_shown(1, "candidates.1.to_node", field_of(logged, "NODE_TO"));
	assert_non_null(strstr(shown_text(1, "fields"), "TICKETS_PARTS="));
	assert_non_null(strstr(logged->text, shown_text(1, "reasons")));
	assert_non_null(strstr(shown_text(1, "reasons"), " accesses on node "));
	assert_null(strstr(shown_text(1, "reasons"), "Moved"));
	assert_null(strstr(shown_text(1, "reasons"), "#"));
	assert_non_null(strstr(shown_text(1, "verdict_message"), "improved"));
}

static void ask_status(void)
{
	show = shown_show();
	show.open(show.context);
	nm_command_status(&world.daemon, &show);
	show.close(show.context);
}

static void counters_count(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 2);
	live(12);
	ask_status();
	assert_shown(1, "intervals", "12");
	assert_true(shown_number(1, "decisions") >= 1);
	assert_null(shown_text(1, "pages_moved"));   /* pages are not moved */
	assert_null(shown_text(1, "homes_granted")); /* only with policy "auto" */
}

static void homes_are_counted(void **state)
{
	(void)state;
	(void)add_worker(1000, 0, 2);
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	live(4);
	world.daemon.tally.homes = (struct nm_home_tally){7, 1, 2, 3, 40, 163840};
	ask_status();
	assert_shown(1, "homes_granted", "7");
	assert_shown(1, "homes_expired", "1");
	assert_shown(1, "homes_yielded", "2");
	assert_shown(1, "homes_rolled_back", "3");
	assert_shown(1, "pages_moved_home", "40");
	assert_shown(1, "bytes_moved_home", "163840");
}

/* ---- pages ---- */

static void pages_are_summed_up(void **state)
{
	(void)state;
	make_space(24, 2);
	(void)add_user(1000, 0, 0, 12);
	(void)add_user(1000, 2, 12, 24);
	begin();
	for (int i = 0; i < 20 && pages_on(2) > 0; i++)
		live_one();
	live(30);
	assert_int_equal(ask_pages(1000), 0);
	assert_shown(1, "tracked", "24");
	assert_shown(1, "by_node", "12 12 0 0");
	assert_true(shown_number(1, "exclusivity") > 0.99);
	assert_shown(1, "histogram", "0 0 0 0 0 0 0 0 0 24");
	assert_shown(1, "ping_pong", "0");
	assert_int_equal(ask_pages(4711), -ESRCH);
	ask_status();
	assert_shown(1, "pages_moved", "24");
	assert_shown(1, "pages_elsewhere", "0");
	ask_processes();
	assert_shown(1, "state", "managed"); /* its pages are moved */
	assert_true(shown_number(1, "shared_page_share") < 0.01);
	show = shown_show();
	assert_int_equal(nm_view_decisions(&world.daemon, 0, 0, &show), 0);
	assert_shown(1, "kind", "pages");
	assert_shown(1, "policy", "exclusivity");
	assert_shown(1, "result", "applied");
	assert_shown(1, "tid", "0");
	assert_shown(1, "from_node", "2");
	assert_null(shown_text(1, "from_cpu"));
	assert_true(shown_number(1, "bytes") == 4096 * shown_number(1, "pages"));
}

/* Ranges of at least 2 MiB, with as many samples as a decision needs. */
static void addresses_are_for_root_and_their_owner(void **state)
{
	(void)state;
	make_space(2048, 2);
	(void)add_user(1000, 0, 0, 2048);
	fake_get(world.fake, 1000)->uid = USER;
	owner.uid = USER;
	begin();
	live(12);
	world.ops.owner = own_directory;
	ask_regions(0);
	assert_true(shown.rows > 0);
	assert_shown(1, "start", "139637976727552"); /* START */
	assert_true(shown_number(1, "bytes") == shown_number(1, "end") - shown_number(1, "start"));
	assert_shown(1, "kind", "exclusive");
	assert_shown(1, "node", "0");
	assert_true(shown_number(1, "samples") > 0);
	ask_regions(USER);
	assert_non_null(shown_text(1, "start"));
	ask_regions(OTHER);
	assert_true(shown.rows > 0);
	assert_null(shown_text(1, "start"));
	assert_null(shown_text(1, "end"));
	assert_non_null(shown_text(1, "bytes"));
	/* A program with more privileges than its user: its directory belongs to root. */
	owner.uid = 0;
	ask_regions(USER);
	assert_null(shown_text(1, "start"));
	/* Another process with its number. */
	owner.uid = USER;
	fake_get(world.fake, 1000)->start_ticks++;
	ask_regions(USER);
	assert_null(shown_text(1, "start"));
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

/* Checks every shown name. */
static unsigned check_names(const char *source, const char *page)
{
	static const char mark[] = "show, \"";
	char *text = read_whole(source);
	unsigned count = 0;
	for (const char *at = strstr(text, mark); at; at = strstr(at + 1, mark)) {
		char name[64];
		const char *start = at + strlen(mark);
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(start, "\""), start);
		if (!is_documented(page, name))
			fail_msg("org.numamigrd1(5) does not have \"%s\" of %s", name, source);
		count++;
	}
	free(text);
	return count;
}

static void every_name_is_documented(void **state)
{
	(void)state;
	char *page = read_whole(NM_SOURCE_DIR "/man/org.numamigrd1.5");
	assert_true(check_names(NM_SOURCE_DIR "/src/daemon/views.c", page) > 10);
	assert_true(check_names(NM_SOURCE_DIR "/src/daemon/view_processes.c", page) > 20);
	assert_true(check_names(NM_SOURCE_DIR "/src/daemon/history.c", page) > 20);
	for (unsigned i = 0; i < NM_STATISTIC_MAX; i++) {
		const struct nm_statistic_row *row = nm_statistic_row((enum nm_statistic)i);
		if (row->status && row->in_metrics && nm_metric_kind(row->metric)->counter)
			assert_true(is_documented(page, row->status));
	}
	assert_false(is_documented(page, "no_such_name"));
	assert_false(is_documented(page, "decision_"));
	free(page);
}

#define TEST_OF(name) cmocka_unit_test_setup_teardown(name, open_world, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_OF(nodes_have_their_load_and_memory),
		TEST_OF(threads_show_their_metrics),
		TEST_OF(processes_add_their_threads_up),
		TEST_OF(released_threads_are_shown_as_released),
		TEST_OF(the_runtime_is_shown),
		TEST_OF(attributes_of_cgroups_are_shown),
		TEST_OF(a_process_that_is_not_listed_is_explained),
		TEST_OF(a_decision_is_remembered_with_its_verdict),
		TEST_OF(counters_count),
		TEST_OF(homes_are_counted),
		TEST_OF(pages_are_summed_up),
		TEST_OF(addresses_are_for_root_and_their_owner),
		cmocka_unit_test(every_name_is_documented),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
