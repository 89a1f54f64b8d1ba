/* SPDX-License-Identifier: MIT */
/* numa-migrctl as a program: its commands, its documents and its exit status, with a fake
 * service. */
#define SET_UP with_service
#define TEAR_DOWN teardown
#include "../support/test.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/xattr.h>

#include "bus_fixture.h"

#include "../support/fake_service.h"
#include "../support/run_ctl.h"

#define USAGE EX_USAGE
#define ABSENT EX_UNAVAILABLE
#define DENIED EX_NOPERM

static int with_service(void **state)
{
	return begin_ctl(state, fake_service);
}

static int with_hostile_service(void **state)
{
	return begin_ctl(state, fake_hostile_service);
}

/* ---- commands ---- */

#define GO_WITH_SERVICE "--measure, --periods and --seconds go with trial service, not with"

CTL_TEST(test_usage, NULL, {"dance", USAGE, "no such command: dance"},
	 {"stats", USAGE, "did you mean \"status\"? There is no command: stats"},
	 {"help dance", USAGE, "no such command: dance"},
	 {"help", 0, "Usage: numa-migrctl [OPTION]…"},
	 {"help release", 0, "Usage: numa-migrctl release PID|UNIT\nLeave a process, or…"},
	 {"help processes", 0, "Usage: numa-migrctl processes [PID]\n…"},
	 {"--bad", USAGE, "…--bad…"}, {"status twice", USAGE, "one argument too many: twice"},
	 {"threads 1 2", USAGE, "one argument too many: 2"},
	 {"threads x", USAGE, "not a process id: x"}, {"processes x", USAGE, "not a process id: x"},
	 {"manage", USAGE, "manage needs a process id"},
	 {"processes --sort dance", USAGE, "not a column of processes: dance"},
	 {"processes --user nosuchuser", USAGE, "there is no such user: nosuchuser"},
	 {"processes --unit /a", USAGE, "not the name of a unit: /a"},
	 {"threads --all", USAGE,
	  "--all, --user, --unit and --sort go with processes, not with: threads"},
	 {"place", USAGE, "place needs --cpus N and --memory SIZE"},
	 {"place --cpus 0 --memory 1G", USAGE, "not a number of CPUs: 0"},
	 {"place --cpus 1 --memory 1X", USAGE, "not an amount of memory: 1X"},
	 {"place --cpus 1 --memory 99999999999T", USAGE, "not an amount of memory: 99999999999T"},
	 {"nodes --cpus 1", USAGE, "--cpus and --memory go with place, not with: nodes"},
	 {"status --permanent", USAGE, "--permanent does not go with: status"},
	 {"release", USAGE, "release needs a process id or a unit"},
	 {"release 0", USAGE, "not a process id: 0"},
	 {"release 99999999999999999999", USAGE, "not a process id: 99999999999999999999"},
	 {"explain unit", USAGE, "explain unit needs the name of a unit"},
	 {"explain process", USAGE, "explain process needs a process id"},
	 {"explain process 1x", USAGE, "not a process id: 1x"},
	 {"explain process 4711 x", USAGE, "one argument too many: x"},
	 {"explain 1x", USAGE, "not the number of a decision: 1x"},
	 {"explain 99999999999999999999", USAGE,
	  "not the number of a decision: 99999999999999999999"},
	 {"dry-run", USAGE, "dry-run needs on or off"},
	 {"dry-run maybe", USAGE, "dry-run must be on or off: maybe"}, {"release -1", USAGE, "…"},
	 {"status -n 3", USAGE, "-n goes with decisions, not with: status"},
	 {"decisions -n", USAGE, "…"}, {"decisions -n -3", USAGE, "not a number of lines: -3"},
	 {"--color=red status", USAGE, "--color is auto, always or never, not: red"},
	 {"--json top", USAGE, "--json does not go with: top"},
	 {"trial start --minutes 10", USAGE,
	  "a trial takes 11 to 10080 minutes, and 1 to 50 %, not: 10"},
	 {"trial stop --minutes 60", USAGE,
	  "--minutes and --percent go with trial start, not with trial: stop"},
	 {"status --minutes 60", USAGE, "--minutes and --percent go with trial, not with: status"},
	 {"trial begin", USAGE, "trial must be start, status, stop or service: begin"},
	 {"trial service", USAGE, "trial service needs a unit"},
	 {"trial service a", USAGE, "trial service needs --measure COMMAND"},
	 {"trial start --periods 12", USAGE, GO_WITH_SERVICE " trial: start"},
	 {"trial status a", USAGE, "one argument too many: a"},
	 {"status --seconds 1", USAGE, GO_WITH_SERVICE ": status"},
	 {"trial service a --periods 0", USAGE,
	  "1 to 1000 periods of 1 to 86400 s are possible, not: 0"},
	 {"steer numa-migrd", USAGE, "the value must be off, observe, on or reset"},
	 {"steer numa-migrd away", USAGE, "the value must be off, observe, on or reset: away"},
	 {"--help", 0, "Usage: numa-migrctl…"}, {"--version", 0, "numa-migrctl …\n"},
	 {"-V", 0, "numa-migrctl …\n"})

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

TEST(test_documents)
{
	static const struct {
		const char *name, *array; /* the name is the command */
		size_t size;
	} rows[] = {
		{"--json processes", "processes", 2},
		{"threads --json", "threads", 3},
		{"threads 4711 --json", "threads", 2},
		{"--json decisions", "decisions", 3},
		{"--json decisions -n 2", "decisions", 2},
		{"--json decisions --lines=0", "decisions", 0},
		{"--json processes 816", "processes", 1}, /* listed only if it is named */
		{"--json processes --all", "processes", 3},
		{"--json processes --user 1000", "processes", 1},
		{"--json processes --unit batch@1", "processes", 1},
		{"--json processes --unit other.scope", "processes", 0},
		{"--json explain unit batch@1.service", "processes", 1},
		{"--json explain process 815", "decisions", 0},
		{"--json explain process 4711", "decisions", 3},
	};
	need_bus(state);
	EACH_ROW(row, rows)
	{
		json_t *found = document(row->name);
		CHECK(row, json_is_array(json_object_get(found, row->array)));
		CHECK(row, json_array_size(json_object_get(found, row->array)) == row->size);
		json_decref(found);
	}
}

CTL_TEST(processes_are_sorted_by_a_column, fake_service,
	 {"--json processes", 0, "…\"pid\": 4711,…\"pid\": 815,…"},
	 {"--json processes --sort rss", 0, "…\"pid\": 815,…\"pid\": 4711,…"},
	 {"--json processes --sort run_share", 0, "…\"pid\": 4711,…\"pid\": 815,…"},
	 {"--json decisions -n 1", 0, "…\"decisions\": [\n    {\n      \"decision\": 19,…"})

/* Of this machine: only the form is known. */
TEST(advice_is_given_with_and_without_the_loads)
{
	need(access("/sys/devices/system/node/online", R_OK) == 0, "the kernel shows no nodes");
	need_bus(state);
	assert_ctl("--json place --cpus 1 --memory 1", 0, "\"nodes\": [\n");
	assert_ctl("place --cpus 4000000 --memory 1K", 0, "too few idle CPUs");
	assert_ctl("nodes", 0, "node distances:\n");
}

/* No byte of another program reaches the terminal as it is. */
CTL_TEST(test_status, fake_service,
	 {"status --json", 0,
	  "…\"version\": \"0.1.0\",…\"samples\": 5000000000,…\"paused\": false,…"
	  "\"summary\": \"caf\\u00E9 ?[31m\"…"},
	 {"status", 0,
	  "   state: café ?[31m\nsampling: ibs\n  policy: imar2\n"
	  " managed: 2 processes with 3 threads\n"
	  "   local: 75 % of accesses; 5000000000 samples so far\n"
	  "verdicts: 0 improved, 0 neutral, 0 worse, 0 rolled back, 0 cancelled, 0 inconclusive, "
	  "0 unverified\n"
	  "    cost: 0.21 % of one CPU; sampling is reduced above 1 %\n"
	  " control: 5 % of the processes are left alone, and compared\n"
	  "   trial: over; 50 % of the processes were left alone; a typical process used 12 % "
	  "fewer CPU seconds\n"})

#define DECISIONS                                                                                  \
	"ID  TIME             KIND      PID  COMMAND  NODES  PAGES  BEFORE  AFTER  RESULT   "      \
	"VERDICT\n"
#define DECISION "  Nov 14 22:13:20  migrate  4711  perf       2→0      –      2%    97%  applied  "
#define DECIDED DECISIONS "17" DECISION "improved\n18" DECISION "rolled-back\n19" DECISION "–\n"

CTL_TEST(
	test_tables, fake_service,
	{"processes", 0,
	 " PID COMMAND  STATE    HOME THR  RUN LOCAL  RSS  AGE MEMORY  REASON\n"
	 "4711 perf     managed     1   2 162%   97% 5.0G   5m 25% 75% –\n"
	 " 815 postgres observed    –   1    –     – 7.0G    – –       –\n"},
	{"processes --all", 0,
	 " PID  COMMAND   STATE     HOME  THR   RUN  LOCAL   RSS  AGE  MEMORY   REASON  NODE  DEC  "
	 "ASSIGN  LAT   INT…\n4711  perf …\n 815  postgres …\n 816  sh …"},
	{"processes 4711", 0, " PID COMMAND …\n4711 perf …"},
	{"processes 816", 0, "…\n816 sh      ignored …"},
	{"threads", 0, "…P\u0302…\n4711  4711 …\n4712  4711 …\n 815   815 …"},
	{"threads 815", 0, "…\n815  815  worker …"}, {"decisions", 0, DECIDED},
	{"explain 17", 0,
	 "moved perf from node 2\ndecision 17, Nov 14 22:13:20: migrate by policy imar2\n"
	 "result: applied\nverdict: improved\njudged by: local_share\nbefore: 2%\nafter: 97%\n"
	 "\ncandidates (2 of 9):\nTICKETS  NODE  CPU  PARTNER  WON\n"
	 "      4     0    –        –  yes\n"
	 "    2.5     3    7     4721   no\n"
	 "\nfields in the journal:\n  POLICY=imar2\n  TID=4712\n"},
	{"explain 17 --json", 0, "…\"fields\": \"POLICY=imar2\\nTID=4712\\n\"…"},
	{"explain", 0, "moved perf from node 2\ndecision 19, …"},
	{"explain process 4711", 0,
	 "perf[4711]: it is managed\n\n           pid: 4711\n          comm: perf\n…"
	 "\ndecisions:\n" DECIDED},
	{"explain process 816", 0,
	 "sh[816]: its resident memory of 2.0 MiB is too small\n\n"
	 "        pid: 816\n       comm: sh\n      state: ignored\n     reason: small\n"
	 "explanation: its resident memory of 2.0 MiB is too small\n\ndecisions:\n…"},
	{"explain unit batch@1", 0, "perf[4711]: it is managed\n"},
	{"explain unit other", 1,
	 "other.service: numa-migrd knows no process of it: none has used enough CPU time to be "
	 "sampled"})

CTL_TEST(test_colours, fake_service,
	 {"decisions --color=always", 0,
	  "…\033[32mimproved\033[0m\n18…\033[31mrolled-back\033[0m\n…"},
	 {"decisions", 0, DECIDED}, /* not a terminal */
	 {"decisions --color=never", 0, DECIDED})

TEST(an_explicit_request_for_colour_wins)
{
	need_bus(state);
	(void)setenv("TERM", "xterm", 1);
	(void)setenv("NO_COLOR", "1", 1);
	assert_ctl("decisions --color=always", 0, "\033[32m");
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

CTL_TEST(test_refusals, fake_service, {"release 4711", 0, ""},
	 {"release 42", 1, "there is no such process"},
	 {"release 13", DENIED, "only root may control numa-migrd: run it as root"},
	 {"manage 4711", 0, ""},
	 {"explain 4", 1,
	  "decision 4 is not among those remembered; the journal may have it: journalctl "
	  "DECISION=4"},
	 {"resume", 1, "no?[31m"}, {"dry-run on", 0, ""},
	 {"dry-run off --json", 0, "{\"version\": 2, \"result\": \"dry-run off\"}\n"},
	 {"reload", 1,
	  "/etc/numa-migrd.conf:3: first\nnuma-migrctl: /etc/numa-migrd.conf:9: ?[31m"},
	 {"top", 1, "top needs a terminal: try processes or threads"},
	 {"steer numa-migrd off", ABSENT,
	  "numa-migrd.service: systemd does not answer on the system bus (systemctl status)"})

/* ---- a trial ---- */

#define TRIAL                                                                                            \
	"Trial: over; 50 % of the processes were left alone.\n"                                          \
	"Result: a typical process used 12 % fewer CPU seconds.\n\n"                                     \
	"COMMAND  MANAGED  ALONE   CPU  FROM   TO  ELAPSED  FROM  TO  STATE\n"                           \
	"cc1          214    209  -12%  -16%  -7%        –     –   –  compared\n"                  \
	"ld             –      –     –     –    –        –     –   –  too few units\n\n" \
	"A unit is one process, or several drawn together…this is no comparison with\n"                \
	"a machine without the service.\n"

CTL_TEST(test_trial, fake_service,
	 {"trial start", 0,
	  "The trial takes 60 min: 50 % of the processes that start in the first 50 min are\n"
	  "left alone, for at most 10 min each. It continues without this terminal…"},
	 {"trial start --json", 0, "{\"version\": 2, \"result\": \"trial started\"}\n"},
	 {"trial start --percent 40", DENIED, "only root may control numa-migrd: run it as root"},
	 {"trial", 0, TRIAL}, {"trial status", 0, TRIAL}, {"trial stop", 0, TRIAL},
	 {"trial --json", 0, "…\"cpu_change\": -0.12…"})

CTL_TEST(a_trial_that_ended_early_names_the_cause, fake_paused_service,
	 {"trial", 0,
	  "Trial: over, ended early: paused; 50 % of the processes were left alone.\n"
	  "Result: no comparison: 3 managed units?.\n…"},
	 {"trial stop --json", 0, "…\"ended_early\": \"paused\"…"})

CTL_TEST(without_a_trial_there_is_no_result, fake_idle_service,
	 {"trial", 0, "There was no trial since numa-migrd started…"})

/* A process that the daemon does not know is looked up in /proc: this one, and one that has ended.
 */
CTL_TEST(test_unknown_process, fake_service,
	 {"explain process $PPID", 1, "…does not know process …(test_ctl): none of its…"},
	 {"processes $(sh -c 'echo $$')", 1, "there is no process …: it has ended…"})

/* A service that samples nothing gives the reason, not one of the process: the shell, here. */
CTL_TEST(test_nothing_is_sampled, fake_idle_service,
	 {"explain process $$", 1, "…numa-migrd is paused…"},
	 {"explain process $$", 1, "…one node has CPUs: nothing is sampled or moved…"},
	 {"explain process $$", 1, "…there is no sampling source…"})

#define NO_READER                                                                                  \
	"only root and members of the group numa-migrd may read this: run it as root, or join "    \
	"the group (usermod -aG numa-migrd USER)\n12 threads managed, 3 assigned?[31m"

/* The bus refuses the call; systemd shows the status line of the unit to every user. */
CTL_TEST(test_not_allowed, fake_refusing_service, {"status", DENIED, NO_READER},
	 {"processes", DENIED, NO_READER}, {"threads", DENIED, NO_READER},
	 {"explain 1", DENIED, NO_READER}, {"top", DENIED, NO_READER},
	 {"pause", DENIED, "only root may control numa-migrd: run it as root"})

/* ---- attributes of cgroups ---- */

#define TEST_CGROUP "/sys/fs/cgroup/numa-migrctl-test"

static int with_cgroup(void **state)
{
	(void)setenv("FAKE_CGROUP", strrchr(TEST_CGROUP, '/'), 1);
	(void)mkdir(TEST_CGROUP, 0755);
	return with_service(state);
}

static int without_cgroup(void **state)
{
	(void)rmdir(TEST_CGROUP);
	(void)unsetenv("FAKE_CGROUP");
	return teardown(state);
}

static void set_attribute(const char *value)
{
	need(setxattr(TEST_CGROUP, "user.numa-migrd", value, strlen(value), 0) == 0,
	     "no cgroup can be made");
}

/* The attribute is this afterwards. */
static void steer(const char *command, int status, const char *prints, const char *attribute)
{
	char value[16] = "none";
	check_ctl(&(struct ctl_row){command, status, prints});
	ssize_t length = getxattr(TEST_CGROUP, "user.numa-migrd", value, sizeof(value) - 1);
	if (length >= 0)
		value[length] = '\0';
	if (strcmp(value, attribute) != 0)
		fail_msg("%s: the attribute is %s, expected %s", command, value, attribute);
}

TEST_BETWEEN(with_cgroup, without_cgroup, test_steer)
{
	need_bus(state);
	set_attribute("on");
	steer("steer a.mount off", 1, "a.mount: not a service, scope or slice", "on");
	steer("release numa-migrd", 1, "numa-migrd: has no process", "on");
	steer("steer numa-migrd observe", 0, "", "observe");
	steer("steer numa-migrd.service reset --json", 0,
	      "{\"version\": 2, \"result\": \"reset\"}\n", "none");
	steer("steer numa-migrd reset", 0, "", "none");
	steer("steer numa-migrd.slice off --permanent", 1,
	      "numa-migrd.slice: there is no such unit", "none");
	steer("steer php8.2-fpm off", 0, "", "off"); /* a dot in its name */
	steer("steer php8.2-fpm.service reset", 0, "", "none");
}

#define FIFTY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

CTL_TEST(test_steer_without_cgroup, fake_refusing_service,
	 {"steer numa-migrd off", 1, "numa-migrd.service: has no cgroup, because it does not run"},
	 {"steer nosuch off", 1, "nosuch.service: there is no such unit"},
	 {"steer nosuch.slice off", 1, "nosuch.slice: there is no such unit"},
	 {"steer nosuch.8 off", 1, "nosuch.8.service: there is no such unit"},
	 {"steer postgresql off", 1,
	  "postgresql.service: has no process; name one of its instances: "
	  "postgresql@15-main.service"},
	 {"release nosuch", 1, "nosuch.service: there is no such unit"},
	 {"steer a.timer off", 1, "a.timer: not a service, scope or slice"},
	 {"steer /a off", 1, "/a: not the name of a unit"},
	 {"steer " FIFTY FIFTY FIFTY FIFTY FIFTY " off", 1, "a…: not the name of a unit"})

/* ---- a trial of a service ---- */

#define TRIAL_OF "trial service numa-migrd --seconds 1 --measure "

TEST_BETWEEN(with_cgroup, without_cgroup, a_service_is_measured_in_both_kinds_of_periods)
{
	need_bus(state);
	set_attribute("on");
	(void)removexattr(TEST_CGROUP, "user.numa-migrd");
	need(system("command -v getfattr >/dev/null") == 0, "no getfattr");
	steer(TRIAL_OF "'getfattr -n user.numa-migrd --only-values " TEST_CGROUP
		       " 2>/dev/null | grep -q observe && echo 200 || echo 100' --periods 12",
	      0,
	      "…Result: the measure was 50.0 % smaller with numa-migrd (-50.0 to -50.0 %); 6 and 6 "
	      "periods.\n…",
	      "none");
}

TEST_BETWEEN(with_cgroup, without_cgroup, a_trial_of_a_service_restores_the_attribute)
{
	need_bus(state);
	set_attribute("on");
	steer(TRIAL_OF "'echo a; echo 7' --periods 2", 0,
	      "…Result: too few periods: 1 with numa-migrd and 1 without, at least 6 of each…",
	      "on");
	steer(TRIAL_OF "'echo none'", 1,
	      "…numa-migrctl: echo none: its last line is no number above 0", "on");
	steer(TRIAL_OF "false", 1, "…numa-migrctl: false: failed", "on");
	/* One period is one without. */
	steer(TRIAL_OF "'echo 7' --periods 1", 0,
	      "…too few periods: 0 with numa-migrd and 1 without…", "on");
	set_attribute("off");
	steer(TRIAL_OF "true", 1, "numa-migrd: its attribute excludes it (reset it)", "off");
}

/* ---- services that do not answer well ---- */

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

#define NO_DAEMON "numa-migrd is not running…"

CTL_TEST(test_service_is_absent, NULL, {"status", ABSENT, NO_DAEMON}, {"top", ABSENT, NO_DAEMON},
	 {"pause", ABSENT, NO_DAEMON},
	 {"place --cpus 1 --memory 1", 0, "…the loads of the nodes are unknown…"})

TEST(test_bus_is_absent)
{
	need_bus(state);
	(void)setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	assert_ctl("status", ABSENT, "the system bus is not running");
}

CTL_TEST(test_old_daemon, fake_old_service, {"processes", 1, "…does not know this command…"})

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
