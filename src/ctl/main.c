/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "ctl.h"
#include "numa-migrd/config.h"
#include "periods.h"

/* Each command is one row; its help and its completion are derived from it. */
struct command {
	const char *name;
	const char *argument; /* NULL: none; in brackets if it is optional */
	const char *needs;    /* description of the argument */
	const char *summary;
	nm_ctl_command *run;
};

static nm_ctl_command help_about;

static const struct command commands[] = {
	{"status", NULL, NULL, "Show what the service does and has done", nm_ctl_status},
	{"top", NULL, NULL, "Show nodes, processes and threads, updated every 2 s", nm_ctl_top},
	{"threads", "[PID]", NULL, "List the managed threads, of all processes or of one",
	 nm_ctl_threads},
	{"processes", "[PID]", NULL, "List processes with home, memory per node and reason",
	 nm_ctl_processes},
	{"decisions", NULL, NULL, "List the last decisions and their verdicts", nm_ctl_decisions},
	{"explain", "[ID]", NULL,
	 "Explain a decision, process PID or unit NAME; or the last decision", nm_ctl_explain},
	{"nodes", NULL, NULL, "Show CPUs, memory, distances and counters of the nodes",
	 nm_ctl_nodes},
	{"place", NULL, NULL, "Print the nodes where --cpus and --memory fit", nm_ctl_place},
	{"show-config", NULL, NULL, "Show each setting, and the file that sets it",
	 nm_ctl_show_config},
	{"pause", NULL, NULL, "Restore all CPU affinities, and stay idle", nm_ctl_pause},
	{"resume", NULL, NULL, "End a pause", nm_ctl_resume},
	{"release", "PID|UNIT", "a process id or a unit",
	 "Leave a process, or those of a unit, alone until it ends", nm_ctl_release},
	{"manage", "PID", "a process id", "Manage a released process again", nm_ctl_manage},
	{"dry-run", "on|off", "on or off", "Only log decisions, or carry them out", nm_ctl_dry_run},
	{"steer", "UNIT VALUE", "a unit and a value",
	 "Set the attribute of its cgroup: off, observe, on, reset", nm_ctl_steer},
	{"reload", NULL, NULL, "Read the configuration again", nm_ctl_reload},
	{"trial", "[start|status|stop|service]", NULL,
	 "Leave processes alone for some time, and compare", nm_ctl_trial},
	{"doctor", NULL, NULL, "Check the machine, the configuration and the service",
	 nm_ctl_doctor},
	{"help", "[COMMAND]", NULL, "Show the commands, or the usage of one", help_about},
};

static const char options_text[] =
	"\n"
	"Options:\n"
	"  -n, --lines N         decisions: number of decisions (20)\n"
	"      --minutes N       trial start: its duration (60)\n"
	"      --percent N       trial start: share of processes that are left alone (50)\n"
	"      --measure COMMAND trial service: prints a number after each period\n"
	"      --periods N       trial service: their number, of both kinds (24)\n"
	"      --seconds N       trial service: length of a period (300)\n"
	"  -a, --all             processes: all of them, with all columns\n"
	"      --user NAME       processes: of this user\n"
	"      --unit NAME       processes: of this unit\n"
	"      --sort COLUMN     processes: in the order of this column\n"
	"      --cpus N          place: number of CPUs\n"
	"      --memory SIZE     place: memory, in MB or with K, M, G or T\n"
	"      --permanent       set the attribute at every start, too\n"
	"      --report FILE     doctor: write a report of this machine, without names\n"
	"      --names           doctor: write the report with names\n"
	"      --json            print JSON\n"
	"      --color=WHEN      auto, always or never (auto)\n"
	"  -h, --help            print this help\n"
	"  -V, --version         print the version\n"
	"\n"
	"Without a command: status.\n"
	"Exit status: 0 success, 1 failure, refusal or problem found, 64 wrong usage,\n"
	"69 numa-migrd is not running, 77 not allowed.\n";

static int help(void)
{
	puts("Usage: numa-migrctl [OPTION]... [COMMAND [ARGUMENT]]\n\nCommands:");
	for (size_t i = 0; i < NM_ARRAY_SIZE(commands); i++) {
		const char *argument = commands[i].argument ? commands[i].argument : "";
		int used = printf("  %s %s", commands[i].name, argument);
		printf("%*s%s\n", used < 23 ? 24 - used : 2, "", commands[i].summary);
	}
	(void)fputs(options_text, stdout);
	return EXIT_SUCCESS;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int no_such_command(const char *name)
{
	const char *nearest = commands[0].name;
	char text[96];
	for (size_t i = 1; i < NM_ARRAY_SIZE(commands); i++)
		if (nm_name_distance(name, commands[i].name) < nm_name_distance(name, nearest))
			nearest = commands[i].name;
	/* More than half of its letters would have to change. */
	if (2 * nm_name_distance(name, nearest) > strlen(nearest))
		return nm_ctl_wrong_usage("no such command", name);
	(void)snprintf(text, sizeof(text), "did you mean \"%s\"? There is no command", nearest);
	return nm_ctl_wrong_usage(text, name);
}

static int help_about(const struct nm_ctl *ctl, char *const *words)
{
	(void)ctl;
	if (!words[0])
		return help();
	const struct command *command = find_command(words[0]);
	if (!command)
		return no_such_command(words[0]);
	printf("Usage: numa-migrctl %s%s%s\n%s.\nSee numa-migrctl(1).\n", command->name,
	       command->argument ? " " : "", command->argument ? command->argument : "",
	       command->summary);
	return EXIT_SUCCESS;
}

/* Describes given options that do not apply to the command; NULL: none. */
static const char *foreign_options(const struct nm_ctl *ctl, const struct command *command)
{
	if (ctl->lines_given && command->run != nm_ctl_decisions)
		return "-n goes with decisions, not with";
	if ((ctl->measure || ctl->periods_given) && command->run != nm_ctl_trial)
		return "--measure, --periods and --seconds go with trial service, not with";
	if (ctl->trial_given && command->run != nm_ctl_trial)
		return "--minutes and --percent go with trial, not with";
	if ((ctl->all || ctl->user || ctl->unit || ctl->sort) && command->run != nm_ctl_processes)
		return "--all, --user, --unit and --sort go with processes, not with";
	if ((ctl->cpus || ctl->memory_bytes) && command->run != nm_ctl_place)
		return "--cpus and --memory go with place, not with";
	if ((ctl->report || ctl->names) && command->run != nm_ctl_doctor)
		return "--report and --names go with doctor, not with";
	if (ctl->names && !ctl->report)
		return "--names goes with --report, not alone with";
	if (ctl->permanent && command->run != nm_ctl_steer)
		return "--permanent does not go with";
	if (ctl->json && command->run == nm_ctl_top)
		return "--json does not go with";
	return NULL;
}

/* As "explain process PID". */
static bool takes_two(const struct command *command)
{
	return command->run == nm_ctl_steer || command->run == nm_ctl_explain ||
	       command->run == nm_ctl_trial;
}

static int run_command(const struct nm_ctl *ctl, char *const *words)
{
	static char *const status[] = {"status", NULL};
	if (!words[0])
		words = status;
	const struct command *command = find_command(words[0]);
	if (!command)
		return no_such_command(words[0]);
	char needs[128], *const *behind = words + 1;
	if (command->needs && !words[1]) {
		(void)snprintf(needs, sizeof(needs), "%s needs %s", command->name, command->needs);
		return nm_ctl_wrong_usage(needs, NULL);
	}
	if (command->argument && *behind)
		behind += takes_two(command) && behind[1] ? 2 : 1;
	if (*behind)
		return nm_ctl_wrong_usage("one argument too many", *behind);
	const char *foreign = foreign_options(ctl, command);
	if (foreign)
		return nm_ctl_wrong_usage(foreign, words[0]);
	return command->run(ctl, words + 1);
}

enum {
	OPTION_JSON = 256,
	OPTION_MINUTES,
	OPTION_PERCENT,
	OPTION_COLOR,
	OPTION_USER,
	OPTION_UNIT,
	OPTION_SORT,
	OPTION_CPUS,
	OPTION_MEMORY,
	OPTION_PERMANENT,
	OPTION_MEASURE,
	OPTION_PERIODS,
	OPTION_SECONDS,
	OPTION_REPORT,
	OPTION_NAMES,
};

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);
	return value && value[0] != '\0';
}

/* https://no-color.org */
static bool color_by_itself(void)
{
	const char *terminal = getenv("TERM");
	if (is_set("NO_COLOR") || !terminal || strcmp(terminal, "dumb") == 0)
		return false;
	return isatty(STDOUT_FILENO);
}

static int set_color(struct nm_ctl *ctl, const char *when)
{
	if (strcmp(when, "auto") == 0)
		ctl->style.color = color_by_itself();
	else if (strcmp(when, "always") == 0 || strcmp(when, "never") == 0)
		ctl->style.color = when[0] == 'a';
	else
		return nm_ctl_wrong_usage("--color is auto, always or never, not", when);
	return EXIT_SUCCESS;
}

static int set_number(const char *word, uint32_t least, uint32_t most, const char *complaint,
		      uint32_t *ret)
{
	uint64_t number;
	if (!nm_ctl_number(word, least, most, &number))
		return nm_ctl_wrong_usage(complaint, word);
	*ret = (uint32_t)number;
	return EXIT_SUCCESS;
}

static int set_trial(struct nm_ctl *ctl, uint32_t least, uint32_t most, uint32_t *ret)
{
	ctl->trial_given = true;
	return set_number(optarg, least, most,
			  "a trial takes 11 to 10080 minutes, and 1 to 50 %, not", ret);
}

static int set_periods(struct nm_ctl *ctl, uint32_t most, uint32_t *ret)
{
	ctl->periods_given = true;
	return set_number(optarg, 1, most, "1 to 1000 periods of 1 to 86400 s are possible, not",
			  ret);
}

/* As numad: a number alone is in MB. */
static int set_memory(struct nm_ctl *ctl, const char *word)
{
	static const char letters[] = "KMGT";
	char digits[24];
	uint64_t number;
	size_t length = strcspn(word, letters);
	const char *letter = word[length] ? strchr(letters, word[length]) : &letters[1];
	unsigned bits = 10 * (unsigned)(letter - letters + 1);
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)length, word);
	if ((word[length] && word[length + 1]) ||
	    !nm_ctl_number(digits, 1, UINT64_MAX >> bits, &number))
		return nm_ctl_wrong_usage("not an amount of memory", word);
	ctl->memory_bytes = number << bits;
	return EXIT_SUCCESS;
}

static int set_option(struct nm_ctl *ctl, int option)
{
	switch (option) {
	case 'n':
		ctl->lines_given = true;
		return set_number(optarg, 0, UINT32_MAX, "not a number of lines", &ctl->lines);
	case OPTION_MINUTES:
		return set_trial(ctl, 11, 10080, &ctl->minutes);
	case OPTION_PERCENT:
		return set_trial(ctl, 1, 50, &ctl->percent);
	case 'a':
		ctl->all = true;
		return EXIT_SUCCESS;
	case OPTION_USER:
		ctl->user = optarg;
		return EXIT_SUCCESS;
	case OPTION_UNIT:
		ctl->unit = optarg;
		return EXIT_SUCCESS;
	case OPTION_SORT:
		ctl->sort = optarg;
		return EXIT_SUCCESS;
	case OPTION_MEASURE:
		ctl->measure = optarg;
		return EXIT_SUCCESS;
	case OPTION_PERIODS:
		return set_periods(ctl, NM_PERIODS_MOST, &ctl->periods);
	case OPTION_SECONDS:
		return set_periods(ctl, 86400, &ctl->seconds);
	case OPTION_CPUS:
		return set_number(optarg, 1, UINT32_MAX, "not a number of CPUs", &ctl->cpus);
	case OPTION_MEMORY:
		return set_memory(ctl, optarg);
	case OPTION_PERMANENT:
		ctl->permanent = true;
		return EXIT_SUCCESS;
	case OPTION_REPORT:
		ctl->report = optarg;
		return EXIT_SUCCESS;
	case OPTION_NAMES:
		ctl->names = true;
		return EXIT_SUCCESS;
	case OPTION_JSON:
		ctl->json = true;
		return EXIT_SUCCESS;
	case OPTION_COLOR:
		return set_color(ctl, optarg);
	default: /* getopt_long(3) has printed a message */
		(void)fputs("Try: numa-migrctl --help\n", stderr);
		return EX_USAGE;
	}
}

static const struct option options[] = {
	{"lines", required_argument, NULL, 'n'},
	{"measure", required_argument, NULL, OPTION_MEASURE},
	{"periods", required_argument, NULL, OPTION_PERIODS},
	{"seconds", required_argument, NULL, OPTION_SECONDS},
	{"all", no_argument, NULL, 'a'},
	{"user", required_argument, NULL, OPTION_USER},
	{"unit", required_argument, NULL, OPTION_UNIT},
	{"sort", required_argument, NULL, OPTION_SORT},
	{"cpus", required_argument, NULL, OPTION_CPUS},
	{"memory", required_argument, NULL, OPTION_MEMORY},
	{"permanent", no_argument, NULL, OPTION_PERMANENT},
	{"report", required_argument, NULL, OPTION_REPORT},
	{"names", no_argument, NULL, OPTION_NAMES},
	{"json", no_argument, NULL, OPTION_JSON},
	{"color", required_argument, NULL, OPTION_COLOR},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{"minutes", required_argument, NULL, OPTION_MINUTES},
	{"percent", required_argument, NULL, OPTION_PERCENT},
	{0},
};

static int parse_and_run(struct nm_ctl *ctl, int argc, char **argv)
{
	int option, r = EXIT_SUCCESS;
	while (r == EXIT_SUCCESS &&
	       (option = getopt_long(argc, argv, "n:ahV", options, NULL)) != -1) {
		if (option == 'h')
			return help();
		if (option == 'V')
			return puts("numa-migrctl " NM_VERSION) < 0;
		r = set_option(ctl, option);
	}
	return r == EXIT_SUCCESS ? run_command(ctl, argv + optind) : r;
}

int main(int argc, char **argv)
{
	/* Characters only: numbers keep their machine-readable format. */
	(void)setlocale(LC_CTYPE, "");
	struct nm_ctl ctl = {.minutes = 60,
			     .percent = 50,
			     .periods = 24,
			     .seconds = 300,
			     .style = {.color = color_by_itself(),
				       .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0}};
	int r = parse_and_run(&ctl, argc, argv);
	return r == EXIT_SUCCESS ? nm_ctl_close_output() : r;
}
