/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "ctl.h"

/* A command is one line here: its help and its completion follow from it. */
struct command {
	const char *name;
	const char *argument; /* NULL: none; in brackets where it may be left out */
	const char *needs;    /* the argument, in words */
	const char *summary;
	int (*run)(const struct nm_ctl *ctl, char *const *words);
};

static const struct command commands[] = {
	{"status", NULL, NULL, "what numa-migrd does and has done", nm_ctl_status},
	{"top", NULL, NULL, "nodes, processes and threads on a full screen", nm_ctl_top},
	{"threads", "[PID]", NULL, "the threads managed, of this process or of all",
	 nm_ctl_threads},
	{"processes", NULL, NULL, "the processes managed, and those left alone", nm_ctl_processes},
	{"pages", "PID", "a process id", "where a process's memory is, and which node's it is",
	 nm_ctl_pages},
	{"topology", NULL, NULL, "nodes, CPUs and distances; without numa-migrd", nm_ctl_topology},
	{"decisions", NULL, NULL, "the last decisions and their verdicts", nm_ctl_decisions},
	{"explain", "ID", "the number of a decision",
	 "why a decision was made, and what came of it", nm_ctl_explain},
	{"pause", NULL, NULL, "give every thread its own CPU mask back and do nothing",
	 nm_ctl_pause},
	{"resume", NULL, NULL, "go on after a pause", nm_ctl_resume},
	{"release", "PID", "a process id", "leave this process alone for as long as it lives",
	 nm_ctl_release},
	{"dry-run", "on|off", "on or off", "decide and tell, but move nothing", nm_ctl_dry_run},
	{"reload", NULL, NULL, "read the configuration again", nm_ctl_reload},
	{"doctor", NULL, NULL, "what is in the way here, and what helps; without numa-migrd",
	 nm_ctl_doctor},
	{"advise", "PID", "a process id", "what the program's owner can do better", nm_ctl_advise},
};

static const char options_text[] =
	"\n"
	"Options:\n"
	"  -f, --follow          decisions: go on with those to come\n"
	"  -n, --lines N         decisions: so many of the last ones\n"
	"      --json            machine-readable output\n"
	"      --no-pager        no pager for long output\n"
	"      --color=WHEN      auto (on a terminal), always or never\n"
	"  -h, --help            show this text\n"
	"      --version         show the version\n"
	"\n"
	"Exit status: 0 done, 1 refused or failed, 64 wrong usage, 69 numa-migrd is not running,\n"
	"77 not allowed.\n";

static int help(void)
{
	puts("Usage: numa-migrctl [OPTION]... COMMAND [ARGUMENT]\n\nCommands:");
	for (size_t i = 0; i < NM_ARRAY_SIZE(commands); i++) {
		const char *argument = commands[i].argument ? commands[i].argument : "";
		int used = printf("  %s %s", commands[i].name, argument);
		printf("%*s%s\n", 24 - used, "", commands[i].summary);
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

static int missing_argument(const struct command *command)
{
	char text[128];
	(void)snprintf(text, sizeof(text), "%s needs %s", command->name, command->needs);
	return nm_ctl_wrong_usage(text, NULL);
}

static int run(const struct nm_ctl *ctl, char *const *words)
{
	if (!words[0])
		return nm_ctl_wrong_usage("a command is missing", NULL);
	const struct command *command = find_command(words[0]);
	if (!command)
		return nm_ctl_wrong_usage("no such command", words[0]);
	if (command->needs && !words[1])
		return missing_argument(command);
	char *const *behind = words + (words[1] && command->argument ? 2 : 1);
	if (*behind)
		return nm_ctl_wrong_usage("one argument too many", *behind);
	if ((ctl->follow || ctl->lines_given) && command->run != nm_ctl_decisions)
		return nm_ctl_wrong_usage("-f and -n go with decisions, not with", words[0]);
	return command->run(ctl, words + 1);
}

/* ---- options ---- */

enum {
	OPTION_JSON = 256,
	OPTION_NO_PAGER,
	OPTION_COLOR,
	OPTION_VERSION,
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

static int set_lines(struct nm_ctl *ctl, const char *word)
{
	uint64_t lines;
	if (!nm_ctl_number(word, 0, UINT32_MAX, &lines))
		return nm_ctl_wrong_usage("not a number of lines", word);
	ctl->lines = (uint32_t)lines;
	ctl->lines_given = true;
	return EXIT_SUCCESS;
}

static int set_option(struct nm_ctl *ctl, int option)
{
	switch (option) {
	case 'f':
		ctl->follow = true;
		return EXIT_SUCCESS;
	case 'n':
		return set_lines(ctl, optarg);
	case OPTION_JSON:
		ctl->json = true;
		return EXIT_SUCCESS;
	case OPTION_NO_PAGER:
		ctl->pager = false;
		return EXIT_SUCCESS;
	case OPTION_COLOR:
		return set_color(ctl, optarg);
	default: /* getopt_long(3) has told */
		(void)fputs("Try: numa-migrctl --help\n", stderr);
		return EX_USAGE;
	}
}

static const struct option options[] = {
	{"follow", no_argument, NULL, 'f'},
	{"lines", required_argument, NULL, 'n'},
	{"json", no_argument, NULL, OPTION_JSON},
	{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
	{"color", required_argument, NULL, OPTION_COLOR},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{0},
};

int main(int argc, char **argv)
{
	/* Characters only: numbers stay as programs read them. */
	(void)setlocale(LC_CTYPE, "");
	struct nm_ctl ctl = {.pager = true,
			     .style = {.color = color_by_itself(),
				       .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0}};
	int option, r = EXIT_SUCCESS;
	while (r == EXIT_SUCCESS &&
	       (option = getopt_long(argc, argv, "fn:h", options, NULL)) != -1) {
		if (option == 'h')
			return help();
		if (option == OPTION_VERSION)
			return puts("numa-migrctl " NM_VERSION) < 0;
		r = set_option(&ctl, option);
	}
	return r == EXIT_SUCCESS ? run(&ctl, argv + optind) : r;
}
