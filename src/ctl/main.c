/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "ctl.h"

static const char usage_text[] =
	"Usage: numa-migrctl [--json] COMMAND\n"
	"\n"
	"  status       what numa-migrd does and has done\n"
	"  pause        give every thread its own CPU mask back and do nothing (root)\n"
	"  resume       go on after a pause (root)\n"
	"  release PID  leave this process alone for as long as it lives (root)\n"
	"\n"
	"      --json     machine-readable output\n"
	"  -h, --help     show this text\n"
	"      --version  show the version\n"
	"\n"
	"Exit status: 0 done, 1 refused or failed, 64 wrong usage, 69 numa-migrd is not running.\n";

static int wrong_usage(const char *what, const char *which)
{
	(void)fprintf(stderr, "numa-migrctl: %s%s%s\nTry: numa-migrctl --help\n", what,
		      which ? ": " : "", which ? which : "");
	return EX_USAGE;
}

/* A decimal process id; anything else, also trailing text, is refused. */
static bool parse_pid(const char *text, uint32_t *ret)
{
	char *end;
	errno = 0;
	unsigned long value = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || text[0] < '0' || text[0] > '9')
		return false;
	if (value == 0 || value > INT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

static int status(bool json)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r = nm_ctl_call("Status", NULL, &reply);
	return r == EXIT_SUCCESS ? nm_ctl_show_status(reply, json) : r;
}

static int steer(const char *method, const uint32_t *pid, const char *done, bool json)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r = nm_ctl_call(method, pid, &reply);
	if (r == EXIT_SUCCESS && json)
		printf("{\"result\": \"%s\"}\n", done);
	return r;
}

static int release(const char *argument, bool json)
{
	uint32_t pid;
	if (!argument)
		return wrong_usage("release needs a process id", NULL);
	if (!parse_pid(argument, &pid))
		return wrong_usage("not a process id", argument);
	return steer("Release", &pid, "released", json);
}

static int run(char *const *words, int count, bool json)
{
	if (count == 0)
		return wrong_usage("a command is missing", NULL);
	int most = strcmp(words[0], "release") == 0 ? 2 : 1;
	if (count > most)
		return wrong_usage("one argument too many", words[most]);
	if (strcmp(words[0], "status") == 0)
		return status(json);
	if (strcmp(words[0], "pause") == 0)
		return steer("Pause", NULL, "paused", json);
	if (strcmp(words[0], "resume") == 0)
		return steer("Resume", NULL, "resumed", json);
	if (strcmp(words[0], "release") == 0)
		return release(count > 1 ? words[1] : NULL, json);
	return wrong_usage("no such command", words[0]);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	bool json = false;
	int option;
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			json = true;
			break;
		case 'h':
			(void)fputs(usage_text, stdout);
			return EXIT_SUCCESS;
		case 'V':
			puts("numa-migrctl " NM_VERSION);
			return EXIT_SUCCESS;
		default:
			(void)fputs("Try: numa-migrctl --help\n", stderr);
			return EX_USAGE;
		}
	}
	return run(argv + optind, argc - optind, json);
}
