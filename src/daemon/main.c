/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "numa-migrd/config.h"
#include "numa-migrd/file.h"
#include "numa-migrd/sample.h"
#include "options.h"

#define DEFAULT_CONFIG "/etc/numa-migrd.conf"

static void print_help(FILE *out)
{
	fputs("Usage: numa-migrd [OPTION]...\n"
	      "Place processes and their memory on NUMA nodes.\n"
	      "\n"
	      "  -c, --config FILE  read FILE instead of " DEFAULT_CONFIG "\n"
	      "      --check-config check the configuration, print every error, and exit\n"
	      "      --dry-run      sample, decide and log, but change nothing\n"
	      "      --restore      restore the affinities that an earlier run left, and exit\n"
	      "      --list-events  print the hardware events of this machine, and exit\n"
	      "      --pmu NAME     with --list-events: print the events of another CPU\n"
	      "      --json         with --list-events: print the sampling sources as JSON\n"
	      "      --no-trial     with --json: open no events\n"
	      "      --version      print the version and exit\n"
	      "  -h, --help         print this help and exit\n"
	      "\n"
	      "Exit status: 0 success, 1 failure, 64 wrong usage, 78 invalid configuration.\n"
	      "See numa-migrd(8), numa-migrd.conf(5) and numa-migrctl(1).\n",
	      out);
}

static int parse_options(int argc, char **argv, struct nm_options *ret)
{
	enum { CHECK_CONFIG = 256, DRY_RUN, RESTORE, VERSION, LIST_EVENTS, PMU, JSON, NO_TRIAL };
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, CHECK_CONFIG},
		{"dry-run", no_argument, NULL, DRY_RUN},
		{"restore", no_argument, NULL, RESTORE},
		{"list-events", no_argument, NULL, LIST_EVENTS},
		{"pmu", required_argument, NULL, PMU},
		{"json", no_argument, NULL, JSON},
		{"no-trial", no_argument, NULL, NO_TRIAL},
		{"version", no_argument, NULL, VERSION},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct nm_options options = {.config_path = DEFAULT_CONFIG};

	for (int c; (c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1;) {
		switch (c) {
		case 'c':
			options.config_path = optarg;
			break;
		case CHECK_CONFIG:
			options.check_config = true;
			break;
		case DRY_RUN:
			options.dry_run = true;
			break;
		case RESTORE:
			options.restore = true;
			break;
		case LIST_EVENTS:
			options.list_events = true;
			break;
		case PMU:
			options.pmu = optarg;
			break;
		case JSON:
			options.json = true;
			break;
		case NO_TRIAL:
			options.no_trial = true;
			break;
		case VERSION:
			options.version = true;
			break;
		case 'h':
			options.help = true;
			break;
		default:
			return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "numa-migrd: unexpected argument \"%s\"; see numa-migrd --help\n",
			argv[optind]);
		return -EINVAL;
	}
	*ret = options;
	return 0;
}

static int check_config(const struct nm_options *options)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	nm_auto(nm_closep) int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = nm_config_load(options->config_path, &errors, &config);
	for (size_t i = 0; i < errors.count; i++)
		fprintf(stderr, "%s\n", errors.text[i]);
	if (r < 0 && errors.count == 0)
		fprintf(stderr, "%s: %s\n", options->config_path, strerror(-r));
	if (r == 0)
		r = nm_list_events_check(stderr, root, options->config_path, config);
	return r < 0 ? EX_CONFIG : EXIT_SUCCESS;
}

static int list_as_json(const struct nm_options *options, struct nm_platform *platform,
			const struct nm_config *config)
{
	nm_auto(nm_topology_freep) struct nm_topology *topology = NULL;
	char error[256];
	/* Without a topology nothing is tried. */
	bool may_try = !options->no_trial &&
		       nm_topology_load(&options->topology, error, sizeof(error), &topology) == 0;
	return nm_list_events_json(stdout, platform, topology, config, may_try) < 0 ? EXIT_FAILURE
										    : EXIT_SUCCESS;
}

/* If the configuration cannot be read, the default one is used. */
static int list_events(const struct nm_options *options)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	const struct nm_platform_options direct = {.root_path = "/", .dry_run = true};

	if (options->pmu)
		return nm_list_events_table(stdout, options->pmu) < 0 ? EX_USAGE : EXIT_SUCCESS;
	if (nm_config_load(options->config_path, &errors, &config) < 0 &&
	    nm_config_default(&config) < 0)
		return EXIT_FAILURE;
	if (nm_platform_linux_new(&direct, &platform) < 0)
		return EXIT_FAILURE;
	if (options->json)
		return list_as_json(options, platform, config);
	nm_list_events_here(stdout, platform, config);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct nm_options options;
	if (parse_options(argc, argv, &options) < 0)
		return EX_USAGE;
	if (options.help) {
		print_help(stdout);
		return EXIT_SUCCESS;
	}
	if (options.version) {
		puts("numa-migrd " NM_VERSION);
		return EXIT_SUCCESS;
	}
	if (options.list_events)
		return list_events(&options);
	return options.check_config ? check_config(&options) : nm_daemon_run(&options);
}
