/* SPDX-License-Identifier: MIT */
/* The document of Dump for a daemon on a synthetic machine in simulated time. */
#define SET_UP open_world
#define TEAR_DOWN close_world
#include "../support/test.h"

#include "daemon_words.h"

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
	int r = open_words(state);
	world.ops.read_file = read_more;
	return r;
}

static int close_world(void **state)
{
	shown_clear();
	return world_close(state);
}

/* see threads 3: a section of the document, and the number of its rows */
WORD(see)
{
	show_document(nm_command_dump(&world.daemon), step->word[0]);
	if (step->nr_numbers > 0 && shown.rows != U(0))
		script_fail(step, "found %zu rows", shown.rows);
}

static unsigned row_of(const struct step *step)
{
	const struct condition condition = condition_of(step->word[0]);
	const unsigned row = *condition.relation ? shown_row(condition.name, condition.expected)
						 : (unsigned)atoi(step->word[0]);
	if (*condition.relation && row == 0)
		script_fail(step, "no such row");
	return row;
}

/* shown 1 cpus=0-1 load<0.1 verdict=-, or shown pid=1000 state=managed: values of a row; 0 is that
 * of a section without rows */
WORD(shown)
{
	const unsigned row = row_of(step);
	for (unsigned i = 1; i < step->count; i++) {
		const struct condition condition = condition_of(step->word[i]);
		const char *found = shown_text(row, condition.name);
		if (!condition_holds(&condition, found))
			script_fail(step, "%s is %s", condition.name, found ? found : "missing");
	}
}

/* explanation 1 it is managed */
WORD(explanation)
{
	const char *found = shown_text(row_of(step), "explanation");
	if (!found || !strstr(found, strchr(step_rest(step), ' ') + 1))
		script_fail(step, "found %s", found ? found : "none");
}

WORD(name)
{
	struct fake_thread *thread = fake_get(world.fake, U(0));
	snprintf(thread->comm, sizeof(thread->comm), "%s\n%s", step->word[1], step->word[2]);
}

ACTION(pin, fake_pin(world.fake, U(0), fake_cpus(U(1), U(1))))
QUANTITY(managed, nm_command_manage(&world.daemon, U(0)))

/* ---- nodes ---- */

/* Memory that cannot be read is omitted. */
SCRIPT(nodes_have_their_load_and_memory,
       "thread 1000 cpu0 memory node2; thread 1000 cpu1 memory node2; set policy = none; run 4",
       "see nodes 4; shown 1 node=0 cpus=0-1 threads=2 load>0.9",
       "shown 2 cpus=2-3 load<0.1 memory_free_bytes=204800; shown 3 access_share>0.99",
       "shown 4 memory_free_bytes=-")

/* ---- threads and processes ---- */

SCRIPT(threads_show_their_metrics,
       "thread 1000 cpu0 memory node0; thread 1000 cpu2 memory node3; thread 2000 cpu4 memory 2",
       "set policy = none; run 5; see threads 3",
       "shown 1 tid=1000 cpu=0 node=0 preferred_node=0 local_share>0.99 latency_cycles<120",
       "shown 2 tid=1002 preferred_node=3 local_share<0.01 latency_cycles>150 assigned_node=-",
       "shown 2 relative_performance<1 last_decision=-; shown 3 pid=2000")

/* With policy "none" nothing would be moved; pages are not sampled. */
SCRIPT(processes_add_their_threads_up,
       "thread 1000 cpu0 memory node0; thread 1000 cpu2 memory node3; thread 1000 cpu3 memory 3",
       "group /; move_group 1000 /system.slice/a.service/sub; name 1000 a b; set policy = none",
       "run 5; see processes 1; shown 1 pid=1000 comm=a\\x0ab unit=a.service threads=3 node=1",
       "shown 1 assigned=0 run_share>2 run_share<=3.1 last_decision=- latency_cycles>100",
       "shown 1 local_share>0.2 local_share<0.5 state=observed exclusivity=-",
       "set policy = imar2; see processes; shown 1 state=managed")

SCRIPT(a_release_is_shown_and_ends,
       "thread 1000 cpu0 memory node0; thread 2000 cpu2 memory node1; pin 2000 cpu2; run 4",
       "see processes 2; shown 2 pid=2000 state=refused reason=pinned; shown 1 steer=",
       "release 1000; see processes; shown 1 state=released threads=-; see threads 0",
       "managed 4711 = ESRCH; managed 1000 = 0; run 12; see processes; shown 1 state=managed")

SCRIPT(attributes_of_cgroups_are_shown,
       "thread 1000 cpu0 memory node0; thread 2000 cpu2 memory node1; group /; group /a.slice",
       "group /b.slice; move_group 1000 /a.slice/x.service; move_group 2000 /b.slice/y.service",
       "attribute /a.slice observe; attribute /b.slice off; run 4; see processes 2",
       "shown 1 state=observed steer=observe threads=1; shown 2 state=refused reason=off steer=off")

SCRIPT(processes_are_explained,
       "thread 1000 cpu0 memory node0; thread 2000 cpu2 memory node1; thread 3000 cpu4 memory 2",
       "set rss_kb 2000 = 100; group /; group /b.slice; move_group 3000 /b.slice/y.service",
       "attribute /b.slice observe; run 4; see processes; shown pid=1000 state=managed reason=-",
       "explanation pid=1000 it is managed; shown pid=2000 state=ignored reason=small",
       "shown pid=2000 rss_bytes=102400",
       "explanation pid=2000 0.1 MiB is less than targets.min_rss_mb",
       "shown pid=3000 state=observed reason=-",
       "explanation pid=3000 is only observed: the attribute user.numa-migrd",
       "set policy = none; see processes; shown pid=1000 state=observed reason=-",
       "explanation pid=1000 threads.policy is \"none\"")

SCRIPT(a_process_that_keeps_its_memory_is_explained,
       "thread 1000 cpu0 memory node0; set rss_kb 1000 = 3M; run 4; set max_gb_of_process = 3",
       "see processes; shown pid=1000 state=managed reason=-; explanation pid=1000 it is managed",
       "set max_gb_of_process = 2; see processes; shown pid=1000 state=managed reason=-",
       "explanation 1 memory of 3.0 GiB stays where it is: it exceeds pages.max_gb_of_process (2)")

WORD(only_node0)
{
	for (unsigned node = 1; node < NODES; node++)
		hwloc_bitmap_zero(world.daemon.pipeline.topology->nodes[node].cpus);
}

SCRIPT(one_node_is_the_reason,
       "thread 1000 cpu0 memory node0; run 4; only_node0; see processes; shown 1 reason=one-node",
       "explanation 1 one node has CPUs: nothing is moved")

/* ---- decisions ---- */

/* The values of a decision with a verdict are those that were logged. */
WORD(as_logged)
{
	const unsigned row = row_of(step);
	const struct nm_entry *logged =
		find_entry(0, NM_MESSAGE_DECISION, "DECISION", shown_text(row, "decision"));
	assert_non_null(logged);
	assert_shown(row, "message", logged->text);
	assert_shown(row, "tid", field_of(logged, "TID"));
	assert_shown(row, "to_node", field_of(logged, "NODE_TO"));
	const json_t *first = json_array_get(shown_value(row, "candidates"), 0);
	assert_true(json_number_value(json_object_get(first, "tickets")) ==
		    number_of(logged, "TICKETS"));
	assert_true(json_number_value(json_object_get(first, "to_node")) ==
		    number_of(logged, "NODE_TO"));
	assert_true(shown_number(row, "after") > shown_number(row, "before"));
	assert_non_null(strstr(shown_text(row, "message"), " accesses on node "));
}

/* The thread of the decision shows it. */
WORD(shows_its_decision)
{
	char id[32], tid[32];
	snprintf(id, sizeof(id), "%s", shown_text(row_of(step), "decision"));
	snprintf(tid, sizeof(tid), "%s", shown_text(row_of(step), "tid"));
	show_document(nm_command_dump(&world.daemon), "threads");
	assert_shown(shown_row("tid", tid), "last_decision", id);
	assert_non_null(shown_text(shown_row("tid", tid), "assigned_node"));
	show_document(nm_command_dump(&world.daemon), "processes");
	assert_true(shown_number(1, "last_decision") >= strtod(id, NULL));
	/* Another thread has its number since. */
	for (size_t i = 0; i < world.daemon.views.snapshot->nr_threads; i++)
		world.daemon.views.snapshot->threads[i].start_ticks++;
	show_document(nm_command_dump(&world.daemon), "threads");
	assert_null(shown_text(shown_row("tid", tid), "last_decision"));
}

QUANTITY(rows, shown.rows)

SCRIPT(a_decision_is_remembered_with_its_verdict,
       "thread 1000 cpu0 memory node2; thread 1000 cpu2 memory node1; run 4",
       "until verdicts_improved > 0 within 20; see decisions; keep n = decisions; rows = n",
       "shown verdict=improved result=applied policy=imar2 fields~TICKETS_PARTS=",
       "shown verdict=improved verdict_message~improved; as_logged verdict=improved",
       "shows_its_decision verdict=improved")

/* Pages are not moved, and only policy "auto" grants homes. */
SCRIPT(counters_count, "thread 1000 cpu0 memory node2; run 12; see status",
       "shown 0 intervals=12 decisions>=1 pages_moved=- homes_granted=-")

ACTION(count_homes, world.daemon.tally.homes = (struct nm_home_tally){7, 1, 2, 40, 163840})

SCRIPT(homes_are_counted,
       "thread 1000 cpu0 memory node2; set policy = auto; run 4; count_homes; see status",
       "shown 0 homes_granted=7 homes_expired=1 homes_yielded=2 pages_moved_home=40",
       "shown 0 bytes_moved_home=163840")

/* ---- pages ---- */

static double memory_share(unsigned node)
{
	const json_t *shares = shown_value(1, "memory_shares");
	assert_int_equal(json_array_size(shares), NODES);
	return json_number_value(json_array_get(shares, node));
}

QUANTITY(memory_share, memory_share(U(0)))

SCRIPT(pages_are_summed_up,
       "space 24 node2; touch 1000 0-11 from cpu0; touch 1000 12-23 from cpu2; begin pages",
       "until pages node2 = 0 within 20; run 30; see status",
       "shown 0 pages_moved=24 pages_elsewhere=0",
       "see processes; shown 1 state=managed exclusivity>0.99 shared_page_share<0.01",
       "memory_share node0 = 0.5; memory_share node2 = 0; see decisions",
       "shown 1 kind=pages policy=exclusivity result=applied tid=0 from_node=2 from_cpu=- pages=24",
       "shown 1 bytes=98304")

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

WORD(no_address)
{
	assert_true(shown.rows > 0);
	assert_no_address(shown.document);
}

/* Ranges of at least 2 MiB, with as many samples as a decision needs. */
/* SECURITY: cap-perfmon */
SCRIPT(addresses_are_not_shown,
       "space 2048 node2; touch 1000 0-2047 from cpu0; begin pages; run 12; see decisions",
       "no_address")

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
