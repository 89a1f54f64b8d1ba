/* SPDX-License-Identifier: MIT */
/*
 * A replay of a recording made by the daemon on a synthetic machine is identical: decisions,
 * receipts, verdicts and metrics. Differences are reported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/run_replay.h"
#include "daemon_fixture.h"

static char file_name[160];

static int open_fake(void *context, const struct nm_platform_options *options,
		     struct nm_platform **ret)
{
	(void)context, (void)options;
	*ret = &world.fake->platform;
	return 0;
}

static int load_machine(void *context, struct nm_topology **ret)
{
	(void)context;
	*ret = machine_topology(NODES, CPUS);
	return 0;
}

static void keep_machine(struct nm_platform *platform)
{
	(void)platform;
}

static void configure(const char *text)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_config_free(world.daemon.config);
	int r = nm_config_parse("test", text, strlen(text), &errors, &world.daemon.config);
	if (r < 0)
		fail_msg("%s", errors.count ? errors.text[0] : "config");
	free(world.daemon.config_text);
	world.daemon.config_text = strdup(text);
}

/* Opens the pipeline again, as the daemon does. */
static void begin(const char *config)
{
	struct nm_record_sink sink;
	struct nm_daemon *daemon = &world.daemon;
	daemon->options.config_path = "test";
	daemon->options.open_platform = open_fake;
	daemon->options.topology.load = load_machine;
	world.fake->platform.free = keep_machine;
	world.homes = true;
	configure(config);
	snprintf(file_name, sizeof(file_name), "%s/recording", world.root);
	(void)unlink(file_name);
	int fd = open(file_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(nm_recorder_file(fd, 0, &sink), 0);
	assert_int_equal(nm_recorder_begin(daemon, &sink, 0), 0);
}

static void end(void)
{
	assert_int_equal(nm_recorder_end(&world.daemon, "as asked"), 0);
	assert_int_equal(nm_recorder_end(&world.daemon, "as asked"), -ENOENT);
}

static unsigned decisions(void)
{
	return count_entries(0, NM_MESSAGE_DECISION);
}

static void assert_same(unsigned least_decisions)
{
	assert_replays(file_name);
	assert_true(decisions() >= least_decisions);
}

/* Threads of two processes far from their memory. */
static void add_remote_processes(void)
{
	for (unsigned i = 0; i < 6; i++)
		add_worker(100, (int)i, (i + 1) % NODES);
	for (unsigned i = 0; i < 4; i++)
		add_worker(200, 7 - (int)i, i % NODES);
}

static void record(const char *config, unsigned intervals)
{
	add_remote_processes();
	begin(config);
	live(intervals);
	end();
}

#define RULES "home_share = 0.0; warmup_s = 0.0; young_s = 0.0; quiet_s = 0.0; "
#define TARGETS "targets = { min_cpu_percent = 0.0; min_rss_mb = 1; }; "

static void test_lbma(void **state)
{
	(void)state;
	record(TARGETS "threads = { policy = \"lbma\"; " RULES "};", 40);
	assert_same(3);
}

static void test_imar2(void **state)
{
	(void)state;
	record(TARGETS "threads = { policy = \"imar2\"; " RULES "};", 60);
	assert_same(3);
}

static void test_papers_own_rules(void **state)
{
	(void)state;
	record("profile = \"paper\"; threads = { policy = \"lbma\"; n = 4; };", 40);
	assert_same(20);
}

/* Processes of one thread each, in turn on the CPUs of node 0. */
static void test_balance(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++)
		add_worker(1000 + 100 * i, (int)(i % 2), 3);
	world.lazy = true;
	fake_sleep(world.fake, 60000);
	begin(TARGETS "threads = { policy = \"balance\"; selection = \"first_fit\"; "
		      "balance_min_gain = -1e12; };");
	live(40);
	end();
	assert_same(1);
}

/* Pairs that share memory, each on two adjacent nodes. */
static void test_kmaf(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		add_worker(1000, (int)(2 * i), i)->address = 0x7f0000000000 + (i << 20);
		add_worker(1000, (int)((2 * i + 3) % CPUS), i)->address =
			0x7f0000000000 + (i << 20);
	}
	fake_sleep(world.fake, 60000);
	begin(TARGETS "threads = { policy = \"kmaf\"; };");
	live(40);
	end();
	assert_same(1);
}

static void test_pages(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add_worker(100, 2 * (int)i, i);
	world.space = (struct space){.start = 0x7f0000000000, .count = 512};
	for (unsigned i = 0; i < 4; i++) {
		world.workers[i].space = &world.space;
		world.workers[i].from = 128 * i;
		world.workers[i].to = 128 * i + 128;
	}
	begin(TARGETS "threads = { policy = \"imar2\"; " RULES
		      "}; pages = { policy = \"exclusivity\"; };");
	live(60);
	end();
	assert_same(0);
	assert_non_null(find_entry(0, NM_MESSAGE_DECISION, "KIND", "pages"));
}

/* Exits, exec, release and reload are replayed at their positions. */
static void test_events_between_intervals_are_replayed(void **state)
{
	(void)state;
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	static const char other[] = TARGETS "threads = { policy = \"lbma\"; n = 2; " RULES "};";
	struct nm_config *config;
	add_remote_processes();
	begin(TARGETS "threads = { policy = \"imar2\"; " RULES "};");
	live(15);
	assert_int_equal(nm_command_release(&world.daemon, 200), 0);
	live(5);
	assert_int_equal(nm_config_parse("test", other, strlen(other), &errors, &config), 0);
	nm_command_apply(&world.daemon, config, strdup(other));
	live(15);
	end();
	assert_same(1);
}

/* A process that is examined only for its release is recorded too. */
static void test_released_before_it_was_sampled(void **state)
{
	(void)state;
	add_remote_processes();
	(void)fake_process(world.fake, 300, 1);
	begin(TARGETS "threads = { policy = \"imar2\"; " RULES "};");
	live(2);
	assert_int_equal(nm_command_release(&world.daemon, 299), -ESRCH);
	assert_int_equal(nm_command_release(&world.daemon, 300), 0);
	const struct worker *released = add_worker(300, 0, 1);
	live(15);
	end();
	assert_int_equal(fake_get(world.fake, released->tid)->processor, 0);
	assert_same(1);
}

/* Copies the recording; `change` may alter entries. */
static void rewrite(void (*change)(struct nm_recorded *record))
{
	char error[256];
	struct nm_recorder_writer *writer;
	struct nm_recording *recording;
	struct nm_recorded entry;
	assert_int_equal(
		nm_recording_open(open(file_name, O_RDONLY), error, sizeof(error), &recording), 0);
	(void)unlink(file_name);
	assert_int_equal(
		nm_recording_create(open(file_name, O_RDWR | O_CREAT | O_EXCL, 0600), 0, &writer),
		0);
	while (nm_recording_next(recording, &entry) > 0) {
		change(&entry);
		assert_int_equal(nm_recording_add(writer, &entry), 0);
	}
	nm_recording_close(writer);
	nm_recording_free(recording);
}

static void change_seed(struct nm_recorded *entry)
{
	if (entry->kind == NM_RECORDED_START)
		entry->start.seed ^= 1;
}

static void change_decision(struct nm_recorded *entry)
{
	if (entry->kind == NM_RECORDED_DECISION)
		entry->decision.steps[0].local_before += 1e-15;
}

static void test_differences_are_reported(void **state)
{
	(void)state;
	char output[8192];
	record(TARGETS "threads = { policy = \"lbma\"; " RULES "};", 40);
	rewrite(change_decision);
	assert_int_equal(run_replay(file_name, output, sizeof(output)), 1);
	assert_non_null(strstr(output, "not the same"));
	assert_non_null(strstr(output, "local_before="));
	rewrite(change_seed);
	assert_int_equal(run_replay(file_name, output, sizeof(output)), 1);
}

static struct nm_rng chance;

/* Answers of the machine with a changed byte or number. */
static void change_some(struct nm_recorded *entry)
{
	if (entry->kind != NM_RECORDED_ANSWER || nm_rng_below(&chance, 60) > 0)
		return;
	uint8_t *bytes = (uint8_t *)entry->answer.bytes; /* in the block of the reader */
	if (entry->answer.length > 0 && nm_rng_below(&chance, 2))
		bytes[nm_rng_below(&chance, entry->answer.length)] =
			(uint8_t)nm_rng_below(&chance, 256);
	else
		entry->answer.result = (int64_t)nm_rng_below(&chance, 400) - 200;
}

/* Valid checksums with invalid content: reported as a difference, or without effect. */
static void test_invalid_values_are_tolerated(void **state)
{
	(void)state;
	char output[8192];
	nm_rng_seed(&chance, 9);
	record(TARGETS "threads = { policy = \"imar2\"; " RULES
		       "}; pages = { policy = \"exclusivity\"; };", 10);
	for (unsigned round = 0; round < 12; round++) {
		rewrite(change_some);
		assert_in_range(run_replay(file_name, output, sizeof(output)), 0, 1);
		assert_true(output[0] != '\0');
	}
}

static void change_words(struct nm_recorded *entry)
{
	if (entry->kind == NM_RECORDED_ANSWER && strcmp(entry->answer.operation, "now_ns") == 0) {
		entry->answer.operation = "\x1b]0;owned\a";
		entry->answer.path = "\x1b[2J\nrm -rf /";
	}
}

static void change_names(struct nm_recorded *entry)
{
	if (entry->kind != NM_RECORDED_DECISION)
		return;
	for (unsigned i = 0; i < entry->decision.nr_steps; i++)
		strcpy(entry->decision.steps[i].comm, "\x1b[31m\\x1b\n");
}

static void assert_clean(const char *output)
{
	for (const char *at = output; *at; at++)
		if ((unsigned char)*at < ' ' && *at != '\n')
			fail_msg("byte %d in: %s", *at, output);
	assert_null(strstr(output, "\nrm"));
}

/* The output of a replay of an untrusted recording has no control sequences for the terminal. */
/* SECURITY: recordings */
static void test_terminals_are_safe(void **state)
{
	(void)state;
	char output[8192];
	record(TARGETS "threads = { policy = \"lbma\"; n = 4; " RULES "};", 40);
	rewrite(change_names);
	assert_int_equal(run_replay(file_name, output, sizeof(output)), 1);
	assert_non_null(strstr(output, "\\x1b[31m"));
	assert_clean(output);
	rewrite(change_words);
	assert_int_equal(run_replay(file_name, output, sizeof(output)), 1);
	assert_non_null(strstr(output, "recording has \\x1b]0;owned\\x07"));
	assert_clean(output);
}

static void test_cut_off_anywhere(void **state)
{
	(void)state;
	char output[8192];
	record(TARGETS "threads = { policy = \"lbma\"; " RULES "};", 12);
	int fd = open(file_name, O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);
	for (off_t length = size - 1; length > 0; length -= 1 + size / 40) {
		assert_int_equal(ftruncate(fd, length), 0);
		int status = run_replay(file_name, output, sizeof(output));
		if (status == 0)
			assert_true(strstr(output, "the same decisions") ||
				    strstr(output, "\nnothing was decided in it"));
		assert_in_range(status, 0, 1);
		assert_true(output[0] != '\0');
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)
		TEST(test_lbma),
		TEST(test_imar2),
		TEST(test_papers_own_rules),
		TEST(test_balance),
		TEST(test_kmaf),
		TEST(test_pages),
		TEST(test_events_between_intervals_are_replayed),
		TEST(test_released_before_it_was_sampled),
		TEST(test_differences_are_reported),
		TEST(test_invalid_values_are_tolerated),
		TEST(test_terminals_are_safe),
		TEST(test_cut_off_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
