/* SPDX-License-Identifier: MIT */
/* numa-migrctl as a program: its commands, its documents and its exit status, with a fake
 * service. */
#define SET_UP with_service
#define TEAR_DOWN teardown
#include "../support/test.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/xattr.h>
#include <sysexits.h>

#include "bus_fixture.h"

#include "../support/fake_service.h"
#include "../support/run_ctl.h"

#define UNAVAILABLE 69
#define NOT_ALLOWED 77

static int with_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	(void)setenv("TZ", "UTC", 1);
	return setup(state, open_policy, fake_service);
}

static int with_old_service(void **state)
{
	return setup(state, open_policy, fake_old_service);
}

static int with_refusing_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	return setup(state, open_policy, fake_refusing_service);
}

static int with_hostile_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	return setup(state, open_policy, fake_hostile_service);
}

static int with_idle_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	return setup(state, open_policy, fake_idle_service);
}

static int with_paused_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	return setup(state, open_policy, fake_paused_service);
}

static int without_service(void **state)
{
	return setup(state, open_policy, NULL);
}

/* ---- commands ---- */

TEST_BETWEEN(NULL, NULL, test_usage)
{
	assert_ctl("dance", EX_USAGE, "no such command: dance");
	assert_ctl("stats", EX_USAGE, "did you mean \"status\"? There is no command: stats");
	assert_ctl("help dance", EX_USAGE, "no such command: dance");
	assert_ctl("help", 0, "Usage: numa-migrctl [OPTION]");
	assert_ctl("help release", 0, "Usage: numa-migrctl release PID|UNIT\nLeave a process, or");
	assert_ctl("help processes", 0, "Usage: numa-migrctl processes [PID]\n");
	assert_ctl("--bad", EX_USAGE, "--help");
	assert_ctl("status twice", EX_USAGE, "one argument too many: twice");
	assert_ctl("threads 1 2", EX_USAGE, "one argument too many: 2");
	assert_ctl("threads x", EX_USAGE, "not a process id: x");
	assert_ctl("processes x", EX_USAGE, "not a process id: x");
	assert_ctl("manage", EX_USAGE, "manage needs a process id");
	assert_ctl("processes --sort dance", EX_USAGE, "not a column of processes: dance");
	assert_ctl("processes --user nosuchuser", EX_USAGE, "there is no such user: nosuchuser");
	assert_ctl("processes --unit /a", EX_USAGE, "not the name of a unit: /a");
	assert_ctl("threads --all", EX_USAGE, "--sort go with processes, not with: threads");
	assert_ctl("place", EX_USAGE, "place needs --cpus N and --memory SIZE");
	assert_ctl("place --cpus 0 --memory 1G", EX_USAGE, "not a number of CPUs: 0");
	assert_ctl("place --cpus 1 --memory 1X", EX_USAGE, "not an amount of memory: 1X");
	assert_ctl("place --cpus 1 --memory 99999999999T", EX_USAGE, "not an amount of memory");
	assert_ctl("nodes --cpus 1", EX_USAGE, "--cpus and --memory go with place, not with");
	assert_ctl("status --permanent", EX_USAGE, "--permanent does not go with: status");
	assert_ctl("release", EX_USAGE, "release needs a process id or a unit");
	assert_ctl("release 0", EX_USAGE, "not a process id");
	assert_ctl("release 99999999999999999999", EX_USAGE, "not a process id");
	assert_ctl("explain unit", EX_USAGE, "explain unit needs the name of a unit");
	assert_ctl("explain process", EX_USAGE, "explain process needs a process id");
	assert_ctl("explain process 1x", EX_USAGE, "not a process id: 1x");
	assert_ctl("explain 1x", EX_USAGE, "not the number of a decision: 1x");
	assert_ctl("explain 99999999999999999999", EX_USAGE, "not the number of a decision");
	assert_ctl("dry-run", EX_USAGE, "dry-run needs on or off");
	assert_ctl("dry-run maybe", EX_USAGE, "dry-run must be on or off: maybe");
	assert_ctl("release -1", EX_USAGE, "--help");
	assert_ctl("status -n 3", EX_USAGE, "-n goes with decisions, not with: status");
	assert_ctl("decisions -n", EX_USAGE, "--help");
	assert_ctl("decisions -n -3", EX_USAGE, "not a number of lines: -3");
	assert_ctl("--color=red status", EX_USAGE, "--color is auto, always or never, not: red");
	assert_ctl("--help", 0, "Usage: numa-migrctl");
	assert_ctl("--version", 0, "numa-migrctl ");
	assert_ctl("-V", 0, "numa-migrctl ");
}

/* ---- documents ---- */

static json_t *document(const char *arguments)
{
	char text[16384];
	json_error_t error;
	int status = ctl(arguments, text, sizeof(text));
	json_t *found = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (status != 0 || !found)
		fail_msg("numa-migrctl %s: exit %d, %s in \"%s\"", arguments, status, error.text,
			 text);
	assert_int_equal(json_integer_value(json_object_get(found, "version")), 2);
	return found;
}

static void assert_size(const char *arguments, const char *name, size_t size)
{
	json_t *found = document(arguments);
	assert_true(json_is_array(json_object_get(found, name)));
	assert_int_equal(json_array_size(json_object_get(found, name)), size);
	json_decref(found);
}

TEST(test_documents)
{
	need_bus(state);
	assert_size("--json processes", "processes", 2);
	assert_size("threads --json", "threads", 3);
	assert_size("threads 4711 --json", "threads", 2);
	assert_size("--json decisions", "decisions", 3);
	assert_size("--json decisions -n 2", "decisions", 2);
	assert_size("--json decisions --lines=0", "decisions", 0);
	assert_size("--json processes 816", "processes", 1); /* listed only if it is named */
	assert_size("--json processes --all", "processes", 3);
	assert_size("--json processes --user 1000", "processes", 1);
	assert_size("--json processes --unit batch@1", "processes", 1);
	assert_size("--json processes --unit other.scope", "processes", 0);
	assert_size("--json explain unit batch@1.service", "processes", 1);
	assert_size("--json explain process 815", "decisions", 0);
	assert_size("--json explain process 4711", "decisions", 3);
	assert_ctl("--json top", 64, "--json does not go with: top");
}

static json_int_t first_process(const char *arguments)
{
	json_t *found = document(arguments);
	json_t *row = json_array_get(json_object_get(found, "processes"), 0);
	json_int_t pid = json_integer_value(json_object_get(row, "pid"));
	json_decref(found);
	return pid;
}

TEST(processes_are_sorted_by_a_column)
{
	need_bus(state);
	assert_int_equal(first_process("--json processes"), 4711);
	assert_int_equal(first_process("--json processes --sort rss"), 815);
	assert_int_equal(first_process("--json processes --sort run_share"), 4711);
}

/* Of this machine: only the form is known. */
TEST(advice_is_given_with_and_without_the_loads)
{
	need(access("/sys/devices/system/node/online", R_OK) == 0, "the kernel shows no nodes");
	need_bus(state);
	assert_ctl("--json place --cpus 1 --memory 1", 0, "\"nodes\": [\n");
	assert_ctl("place --cpus 4000000 --memory 1K", 0, "too few idle CPUs");
	assert_ctl("nodes", 0, "node distances:\n");
}

TEST(test_status_document)
{
	need_bus(state);
	json_t *found = document("status --json");
	json_t *status = json_object_get(found, "status");
	assert_string_equal(json_string_value(json_object_get(status, "version")), "0.1.0");
	assert_true(json_is_false(json_object_get(status, "paused")));
	assert_true(json_integer_value(json_object_get(status, "samples")) == 5000000000);
	json_decref(found);
	/* No byte of another program reaches the terminal as it is. */
	assert_ctl("status --json", 0, "\"summary\": \"caf\\u00E9 ?[31m\"");
	assert_ctl("status", 0,
		   " managed: 2 processes with 3 threads\n"
		   "   local: 75 % of accesses; 5000000000 samples so far\n");
	assert_ctl("status", 0,
		   "    cost: 0.21 % of one CPU; sampling is reduced above 1 %\n"
		   " control: 5 % of the processes are left alone, and compared\n");
	assert_ctl("status", 0, "   state: caf\xc3\xa9 ?[31m\n");
}

TEST(test_last_decisions)
{
	need_bus(state);
	json_t *found = document("--json decisions -n 1");
	json_t *row = json_array_get(json_object_get(found, "decisions"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "decision")), 19);
	json_decref(found);
}

TEST(test_tables)
{
	need_bus(state);
	assert_ctl("processes", 0,
		   " PID COMMAND  STATE    HOME THR  RUN LOCAL  RSS  AGE MEMORY  REASON\n");
	assert_ctl("processes", 0,
		   "4711 perf     managed     1   2 162%   97% 5.0G   5m 25% 75% \xe2\x80\x93\n");
	assert_ctl("processes --all", 0,
		   " PID  COMMAND   STATE     HOME  THR   RUN  LOCAL   RSS  AGE  MEMORY   REASON  "
		   "NODE  DEC  ASSIGN  LAT   INT");
	assert_ctl("processes --all", 0, "\n 816  sh ");
	assert_ctl("processes 4711", 0, "perf");
	assert_ctl("processes 816", 0, "ignored");
	assert_ctl("threads", 0, "P\xcc\x82");
	assert_ctl("threads 815", 0, "815");
	assert_ctl("decisions", 0, "18  Nov 14 22:13:20  migrate  4711  perf");
	assert_ctl("decisions", 0,
		   "2\xe2\x86\x92"
		   "0");
	assert_ctl("explain 17", 0,
		   "moved perf from node 2\ndecision 17, Nov 14 22:13:20: migrate by policy imar2");
	assert_ctl("explain 17", 0, "before: 2%");
	assert_ctl("explain 17", 0,
		   "\ncandidates (2 of 9):\n"
		   "TICKETS  NODE  CPU  PARTNER  WON\n"
		   "      4     0    \xe2\x80\x93        \xe2\x80\x93  yes\n"
		   "    2.5     3    7     4721   no\n");
	assert_ctl("explain 17", 0, "\n  POLICY=imar2\n  TID=4712\n");
	assert_ctl("explain 17 --json", 0, "\"fields\": \"POLICY=imar2\\nTID=4712\\n\"");
	assert_ctl("explain process 4711", 0, "perf[4711]: it is managed\n\n");
	assert_ctl("explain process 4711", 0, "comm: perf\n");
	assert_ctl("explain", 0, "decision 19, ");
	assert_ctl("explain unit batch@1", 0, "perf[4711]: it is managed\n");
	assert_ctl("explain unit other", 1, "other.service: numa-migrd knows no process of it");
	assert_ctl("explain process 4711", 0, "\ndecisions:\n");
	assert_ctl("explain process 4711", 0, "18  Nov 14 22:13:20  migrate");
	assert_ctl("explain process 816", 0, "state: ignored\n");
	assert_ctl("explain process 816", 0, "reason: small\n");
	assert_ctl("explain process 816", 0,
		   "explanation: its resident memory of 2.0 MiB is too small\n");
}

TEST(test_colours)
{
	char text[16384];
	need_bus(state);
	(void)setenv("TERM", "xterm", 1);
	assert_ctl("decisions --color=always", 0, "\033[32mimproved\033[0m");
	assert_ctl("decisions --color=always", 0, "\033[31mrolled-back\033[0m");
	assert_int_equal(ctl("decisions", text, sizeof(text)), 0); /* not a terminal */
	assert_null(strchr(text, '\033'));
	(void)setenv("NO_COLOR", "1", 1);
	assert_ctl("decisions --color=always", 0, "\033[32m"); /* explicitly requested */
	(void)unsetenv("NO_COLOR");
}

TEST(test_plain_locale)
{
	char text[16384];
	need_bus(state);
	(void)setenv("LC_ALL", "C", 1);
	assert_int_equal(ctl("threads", text, sizeof(text)), 0);
	for (const char *at = text; *at; at++)
		assert_true((unsigned char)*at < 0x80);
	assert_non_null(strstr(text, "P^"));
	assert_ctl("decisions", 0, "2>0");
}

/* ---- exit status ---- */

TEST(test_refusals)
{
	need_bus(state);
	assert_ctl("release 4711", 0, "");
	assert_ctl("release 42", 1, "numa-migrctl: there is no such process\n");
	assert_ctl("release 13", NOT_ALLOWED, "only root may control numa-migrd");
	assert_ctl("manage 4711", 0, "");
	assert_ctl("explain 4", 1, "journalctl DECISION=4");
	assert_ctl("explain process 4711 x", EX_USAGE, "one argument too many: x");
	assert_ctl("resume", 1, "numa-migrctl: no?[31m\n");
	assert_ctl("dry-run on", 0, "");
	assert_ctl("dry-run off --json", 0, "{\"version\": 2, \"result\": \"dry-run off\"}\n");
	/* The line completely, and no other. */
	assert_ctl("reload", 1,
		   "numa-migrctl: /etc/numa-migrd.conf:3: first\n"
		   "numa-migrctl: /etc/numa-migrd.conf:9: ?[31m\n");
}

/* ---- a trial ---- */

TEST(a_trial_begins_and_leaves_the_terminal)
{
	need_bus(state);
	assert_ctl("trial start", 0,
		   "The trial takes 60 min: 50 % of the processes that start in the "
		   "first 50 min");
	assert_ctl("trial start", 0, "for at most 10 min each. It continues without this terminal");
	assert_ctl("trial start --json", 0, "{\"version\": 2, \"result\": \"trial started\"}\n");
	assert_ctl("trial start --percent 40", NOT_ALLOWED, "only root may control");
	assert_ctl("trial start --minutes 10", EX_USAGE, "not: 10");
	assert_ctl("trial stop --minutes 60", EX_USAGE,
		   "go with trial start, not with trial: stop");
	assert_ctl("status --minutes 60", EX_USAGE, "--minutes and --percent go with trial");
	assert_ctl("trial begin", EX_USAGE, "trial must be start, status, stop or service: begin");
}

TEST(a_trial_is_shown_with_units_and_intervals)
{
	static const char *const commands[] = {"trial", "trial status", "trial stop"};
	need_bus(state);
	for (size_t i = 0; i < NM_ARRAY_SIZE(commands); i++) {
		assert_ctl(commands[i], 0,
			   "Trial: over; 50 % of the processes were left alone.\n"
			   "Result: a typical process used 12 % fewer CPU seconds.\n");
		assert_ctl(commands[i], 0,
			   "COMMAND  MANAGED  ALONE   CPU  FROM   TO  ELAPSED  FROM  TO  STATE\n"
			   "cc1          214    209  -12%  -16%  -7%        \xe2\x80\x93     "
			   "\xe2\x80\x93   \xe2\x80\x93  compared\n");
		assert_ctl(commands[i], 0, "\nA unit is one process, or several drawn together");
		assert_ctl(commands[i], 0, "this is no comparison with\na machine without the");
	}
	assert_ctl("trial --json", 0, "\"cpu_change\": -0.12");
	assert_ctl("status", 0, "trial: over; 50 % of the processes were left alone; a typical");
}

TEST_BETWEEN(with_paused_service, teardown, a_trial_that_ended_early_names_the_cause)
{
	need_bus(state);
	assert_ctl("trial", 0,
		   "Trial: over, ended early: paused; 50 % of the processes were left alone.\n"
		   "Result: no comparison: 3 managed units?.\n");
	assert_ctl("trial stop --json", 0, "\"ended_early\": \"paused\"");
}

TEST_BETWEEN(with_idle_service, teardown, without_a_trial_there_is_no_result)
{
	need_bus(state);
	assert_ctl("trial", 0, "There was no trial since numa-migrd started");
}

/* A process that the daemon does not know is looked up in /proc. */
TEST(test_unknown_process)
{
	char arguments[64], says[128];
	need_bus(state);
	(void)snprintf(arguments, sizeof(arguments), "explain process %d", getpid());
	(void)snprintf(says, sizeof(says), "does not know process %d (test_ctl): none of its",
		       getpid());
	assert_ctl(arguments, 1, says);
	pid_t gone = fork();
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	(void)snprintf(arguments, sizeof(arguments), "processes %d", gone);
	(void)snprintf(says, sizeof(says), "there is no process %d: it has ended", gone);
	assert_ctl(arguments, 1, says);
}

/* A service that samples nothing gives the reason, not one of the process. */
TEST_BETWEEN(with_idle_service, teardown, test_nothing_is_sampled)
{
	char arguments[64];
	need_bus(state);
	(void)snprintf(arguments, sizeof(arguments), "explain process %d", getpid());
	assert_ctl(arguments, 1, "numa-migrd is paused");
	assert_ctl(arguments, 1, "one node has CPUs: nothing is sampled or moved");
	assert_ctl(arguments, 1, "there is no sampling source");
}

/* The bus refuses the call; systemd shows the status line of the unit to every user. */
TEST_BETWEEN(with_refusing_service, teardown, test_not_allowed)
{
	static const char *const queries[] = {"status", "processes", "threads", "explain 1", "top"};
	need_bus(state);
	for (size_t i = 0; i < NM_ARRAY_SIZE(queries); i++) {
		assert_ctl(queries[i], NOT_ALLOWED, "12 threads managed, 3 assigned?[31m\n");
		assert_ctl(queries[i], NOT_ALLOWED,
			   "only root and members of the group numa-migrd may read this: run it "
			   "as root, or join the group (usermod -aG numa-migrd USER)\n");
	}
	assert_ctl("pause", NOT_ALLOWED, "only root may control numa-migrd: run it as root\n");
}

#define TEST_CGROUP "/sys/fs/cgroup/numa-migrctl-test"

static int with_cgroup(void **state)
{
	(void)setenv("FAKE_CGROUP", strrchr(TEST_CGROUP, '/'), 1);
	(void)mkdir(TEST_CGROUP, 0755);
	return setup(state, open_policy, fake_refusing_service);
}

static int without_cgroup(void **state)
{
	(void)rmdir(TEST_CGROUP);
	(void)unsetenv("FAKE_CGROUP");
	return teardown(state);
}

TEST_BETWEEN(with_cgroup, without_cgroup, test_steer)
{
	char value[16] = "";
	need_bus(state);
	assert_ctl("steer numa-migrd", EX_USAGE, "must be off, observe, on or reset");
	assert_ctl("steer numa-migrd away", EX_USAGE, "must be off, observe, on or reset: away");
	assert_ctl("steer a.mount off", 1, "a.mount: not a service, scope or slice");
	need(setxattr(TEST_CGROUP, "user.test", "x", 1, 0) == 0, "no cgroup can be made");
	assert_ctl("steer numa-migrd observe", 0, "");
	assert_int_equal(getxattr(TEST_CGROUP, "user.numa-migrd", value, sizeof(value)), 7);
	assert_string_equal(value, "observe");
	assert_ctl("steer numa-migrd.service reset --json", 0, "\"reset\"");
	assert_int_equal(getxattr(TEST_CGROUP, "user.numa-migrd", value, sizeof(value)), -1);
	assert_ctl("steer numa-migrd reset", 0, "");
	assert_ctl("steer numa-migrd.slice off --permanent", 1, "there is no such unit");
	/* A dot in its name. */
	assert_ctl("steer php8.2-fpm off", 0, "");
	assert_int_equal(getxattr(TEST_CGROUP, "user.numa-migrd", value, sizeof(value)), 3);
	assert_ctl("steer php8.2-fpm.service reset", 0, "");
}

/* ---- a trial of a service ---- */

static int with_steered_service(void **state)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	(void)setenv("FAKE_CGROUP", strrchr(TEST_CGROUP, '/'), 1);
	(void)mkdir(TEST_CGROUP, 0755);
	return setup(state, open_policy, fake_service);
}

#define MEASURE_ATTRIBUTE                                                                          \
	"--measure 'getfattr -n user.numa-migrd --only-values " TEST_CGROUP                        \
	" 2>/dev/null | grep -q observe && echo 200 || echo 100'"

TEST_BETWEEN(with_steered_service, without_cgroup, a_service_is_measured_in_both_kinds_of_periods)
{
	char value[16];
	need_bus(state);
	need(setxattr(TEST_CGROUP, "user.test", "x", 1, 0) == 0, "no cgroup can be made");
	need(system("command -v getfattr >/dev/null") == 0, "no getfattr");
	assert_ctl("trial service numa-migrd --periods 12 --seconds 1 " MEASURE_ATTRIBUTE, 0,
		   "Result: the measure was 50.0 % smaller with numa-migrd (-50.0 to -50.0 %); 6 "
		   "and 6 periods.\n");
	assert_int_equal(getxattr(TEST_CGROUP, "user.numa-migrd", value, sizeof(value)), -1);
}

TEST_BETWEEN(with_steered_service, without_cgroup, a_trial_of_a_service_restores_the_attribute)
{
	char value[16] = "";
	need_bus(state);
	need(setxattr(TEST_CGROUP, "user.numa-migrd", "on", 2, 0) == 0, "no cgroup can be made");
	assert_ctl("trial service numa-migrd --periods 2 --seconds 1 --measure 'echo a; echo 7'", 0,
		   "Result: too few periods: 1 with numa-migrd and 1 without, at least 6 of each");
	assert_ctl("trial service numa-migrd --seconds 1 --measure 'echo none'", 1,
		   "its last line is no number above 0");
	assert_ctl("trial service numa-migrd --seconds 1 --measure false", 1, "false: failed");
	/* One period is one without. */
	assert_ctl("trial service numa-migrd --periods 1 --seconds 1 --measure 'echo 7'", 0,
		   "too few periods: 0 with numa-migrd and 1 without");
	assert_int_equal(getxattr(TEST_CGROUP, "user.numa-migrd", value, sizeof(value)), 2);
	assert_string_equal(value, "on");
	(void)setxattr(TEST_CGROUP, "user.numa-migrd", "off", 3, 0);
	assert_ctl("trial service numa-migrd --measure true", 1, "its attribute excludes it");
	(void)removexattr(TEST_CGROUP, "user.numa-migrd");
}

TEST(a_trial_of_a_service_needs_a_measure)
{
	need_bus(state);
	assert_ctl("trial service", EX_USAGE, "trial service needs a unit");
	assert_ctl("trial service a", EX_USAGE, "trial service needs --measure COMMAND");
	assert_ctl("trial start --periods 12", EX_USAGE, "go with trial service, not with trial");
	assert_ctl("trial status a", EX_USAGE, "one argument too many: a");
	assert_ctl("status --seconds 1", EX_USAGE, "go with trial service, not with: status");
	assert_ctl("trial service a --periods 0", EX_USAGE, "are possible, not: 0");
}

#define FIFTY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

TEST_BETWEEN(with_refusing_service, teardown, test_steer_without_cgroup)
{
	need_bus(state);
	assert_ctl("steer numa-migrd off", 1, "has no cgroup, because it does not run");
	assert_ctl("steer nosuch off", 1, "nosuch.service: there is no such unit\n");
	assert_ctl("steer nosuch.slice off", 1, "nosuch.slice: there is no such unit\n");
	assert_ctl("steer nosuch.8 off", 1, "nosuch.8.service: there is no such unit\n");
	assert_ctl("steer postgresql off", 1,
		   "postgresql.service: has no process; name one of its instances: "
		   "postgresql@15-main.service\n");
	assert_ctl("steer a.timer off", 1, "a.timer: not a service, scope or slice\n");
	assert_ctl("steer /a off", 1, "/a: not the name of a unit\n");
	assert_ctl("steer " FIFTY FIFTY FIFTY FIFTY FIFTY " off", 1, "not the name of a unit\n");
}

TEST(test_steer_without_systemd)
{
	need_bus(state);
	assert_ctl("steer numa-migrd off", UNAVAILABLE,
		   "numa-migrd.service: systemd does not answer on the system bus");
}

static void assert_no_escapes(const char *arguments, int status)
{
	char text[16384];
	assert_int_equal(ctl(arguments, text, sizeof(text)), status);
	assert_null(strchr(text, '\033'));
	assert_null(strstr(text, "\xc2\x9b"));
}

/* SECURITY: bus-answers */
TEST_BETWEEN(with_hostile_service, teardown, test_hostile_service)
{
	static const char *const queries[] = {"status",
					      "status --json",
					      "processes",
					      "threads",
					      "decisions",
					      "explain 1",
					      "explain process 1",
					      "trial",
					      "processes --sort rss"};
	need_bus(state);
	for (size_t i = 0; i < NM_ARRAY_SIZE(queries); i++) {
		bool found = strncmp(queries[i], "explain", 7) != 0;
		for (unsigned turn = 0; turn < FAKE_HOSTILE_REFUSED; turn++)
			assert_ctl(queries[i], 1, "numa-migrd sent no valid document");
		for (unsigned turn = 0; turn < FAKE_HOSTILE_ODD; turn++)
			assert_no_escapes(queries[i], found ? 0 : 1);
		assert_ctl(queries[i], 1, "numa-migrd sent a document that is too large\n");
		assert_ctl(queries[i], 1, "numa-migrd sent no valid document");
	}
}

TEST_BETWEEN(with_hostile_service, teardown, test_rows_left_out)
{
	need_bus(state);
	for (unsigned turn = 0; turn < FAKE_HOSTILE_REFUSED + FAKE_HOSTILE_ODD - 1; turn++)
		assert_no_escapes("threads", turn < FAKE_HOSTILE_REFUSED);
	assert_ctl("threads", 0, "3 rows are left out, threads first: there are too many\n");
}

TEST_BETWEEN(without_service, teardown, test_service_is_absent)
{
	need_bus(state);
	if (access("/sys/devices/system/node/online", R_OK) == 0)
		assert_ctl("place --cpus 1 --memory 1", 0, "the loads of the nodes are unknown\n");
	assert_ctl("status", UNAVAILABLE, "numa-migrd is not running");
	assert_ctl("top", UNAVAILABLE, "numa-migrd is not running");
	assert_ctl("pause", UNAVAILABLE, "numa-migrd is not running");
	(void)setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	assert_ctl("status", UNAVAILABLE, "the system bus is not running");
}

TEST_BETWEEN(with_old_service, teardown, test_old_daemon)
{
	need_bus(state);
	assert_ctl("processes", 1, "does not know this command");
}

TEST(test_top_needs_a_terminal)
{
	need_bus(state);
	assert_ctl("top", 1, "top needs a terminal");
}

TEST(test_full_disk)
{
	need_bus(state);
	need(access("/dev/full", W_OK) == 0, "no /dev/full");
	assert_ctl("processes >/dev/full", 1, "");
	assert_ctl("--help 2>&1 >/dev/full; exit", 1, "standard output: No space left");
	assert_ctl("status --json >/dev/full", 1, "");
	assert_ctl("release 4711 --json >/dev/full", 1, "");
}

RUN_TESTS()
