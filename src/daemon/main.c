/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "numa-migrd/config.h"
#include "numa-migrd/file.h"
#include "options.h"
#include "sample/sample.h"

#define SERVICE_USER "numa-migrd"
#define CACHE_FOLDER "/var/cache/numa-migrd"
#define SEED_MAX ((uint64_t)INT64_MAX) /* as a signed 64-bit integer of any reader */

static void print_help(FILE *out)
{
	fputs("Usage: numa-migrd [OPTION]...\n"
	      "Place processes and their memory on NUMA nodes.\n"
	      "\n"
	      "  -c, --config FILE  read FILE instead of " NM_CONFIG_FILE "\n"
	      "                     and " NM_CONFIG_FOLDER "/*.conf\n"
	      "      --parameters FILE\n"
	      "                     read parameters of the policies, for research\n"
	      "      --seed NUMBER  random seed; 0: from the kernel\n"
	      "      --check-config [FILE]\n"
	      "                     check the configuration, print every error, and exit\n"
	      "      --dry-run      sample, decide and log, but change nothing\n"
	      "      --restore      restore the affinities that an earlier run left, and exit\n"
	      "      --list-events  print the hardware events of this machine, and exit\n"
	      "      --pmu NAME     with --list-events: print the events of another CPU\n"
	      "      --json         with --list-events: print the sampling sources as JSON\n"
	      "      --no-trial     with --json: open no events\n"
	      "      --version      print the version and exit\n"
	      "  -h, --help         print this help and exit\n"
	      "\n"
	      "Exit status: 0 success, 1 failure, 64 wrong usage, 75 no memory for --restore,\n"
	      "78 invalid configuration.\n"
	      "See numa-migrd(8), numa-migrd.conf(5) and numa-migrctl(1).\n",
	      out);
}

static int usage_error(const char *what)
{
	fprintf(stderr, "numa-migrd: %s; see numa-migrd --help\n", what);
	return -EINVAL;
}

static int parse_seed(const char *text, uint64_t *ret)
{
	char *end;
	errno = 0;
	unsigned long long seed = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || seed > SEED_MAX)
		return usage_error(
			"--seed: allowed is a whole number from 0 to 9223372036854775807");
	*ret = seed;
	return 0;
}

/* Refuses options of which one would have no effect. */
static int check_combination(const struct nm_options *options)
{
	int modes = options->check_config + options->restore + options->list_events;
	if (modes > 1)
		return usage_error("use one of --check-config, --restore and --list-events");
	if (modes > 0 && options->dry_run)
		return usage_error("--dry-run is for the daemon only");
	if ((options->pmu || options->json || options->no_trial) && !options->list_events)
		return usage_error("--pmu, --json and --no-trial are for --list-events only");
	return 0;
}

enum {
	CHECK_CONFIG = 256,
	DRY_RUN,
	RESTORE,
	VERSION,
	LIST_EVENTS,
	PMU,
	JSON,
	NO_TRIAL,
	PARAMETERS,
	SEED
};

static const struct option longs[] = {
	{"config", required_argument, NULL, 'c'},
	{"check-config", no_argument, NULL, CHECK_CONFIG},
	{"parameters", required_argument, NULL, PARAMETERS},
	{"seed", required_argument, NULL, SEED},
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

/* Takes one option. Returns 0 or a negative errno. */
static int take_option(int option, struct nm_options *options)
{
	switch (option) {
	case 'c':
		options->config = (struct nm_config_files){
			.path = optarg, .parameters = options->config.parameters};
		break;
	case PARAMETERS:
		options->config.parameters = optarg;
		break;
	case SEED:
		return parse_seed(optarg, &options->seed);
	case CHECK_CONFIG:
		options->check_config = true;
		break;
	case DRY_RUN:
		options->dry_run = true;
		break;
	case RESTORE:
		options->restore = true;
		break;
	case LIST_EVENTS:
		options->list_events = true;
		break;
	case PMU:
		options->pmu = optarg;
		break;
	case JSON:
		options->json = true;
		break;
	case NO_TRIAL:
		options->no_trial = true;
		break;
	case VERSION:
		options->version = true;
		break;
	case 'h':
		options->help = true;
		break;
	default:
		return -EINVAL;
	}
	return 0;
}

static int parse_options(int argc, char **argv, struct nm_options *ret)
{
	struct nm_options options = {.config = {.path = NM_CONFIG_FILE,
						.folder = NM_CONFIG_FOLDER,
						.may_be_missing = true}};

	for (int c; (c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1;)
		if (take_option(c, &options) < 0)
			return -EINVAL;
	if (options.check_config && optind + 1 == argc && options.config.folder)
		options.config = (struct nm_config_files){.path = argv[optind++],
							  .parameters = options.config.parameters};
	if (optind < argc) {
		fprintf(stderr, "numa-migrd: unexpected argument \"%s\"; see numa-migrd --help\n",
			argv[optind]);
		return -EINVAL;
	}
	*ret = options;
	return options.help || options.version ? 0 : check_combination(&options);
}

/* Reads the service's configuration as its user: root could also read files that the service
 * cannot. */
static int become_reader(const struct nm_options *options)
{
	const struct passwd *user = getpwnam(SERVICE_USER);
	if (geteuid() != 0 || !options->config.folder || !user)
		return 0;
	if (initgroups(SERVICE_USER, user->pw_gid) < 0 ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
		return -errno;
	return 0;
}

/* The service creates its own folder for it at the start. */
static void warn_of_metrics(const struct nm_config *config)
{
	nm_autofree char *folder = nm_must(strdup(config->metrics.file));
	if (folder[0] == '\0')
		return;
	*strrchr(folder, '/') = '\0';
	if (strcmp(folder, CACHE_FOLDER) != 0 && access(folder[0] ? folder : "/", W_OK | X_OK) < 0)
		fprintf(stderr, "%s: warning: metrics.file: \"%s\" cannot be written: %s\n",
			config->metrics.place, config->metrics.file, strerror(errno));
}

static int check_config(const struct nm_options *options)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	nm_auto(nm_closep) int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct nm_config_files files = options->config;
	files.may_be_missing = false;
	int r = become_reader(options);
	/* A file that is named is not in its place yet, as with "validate" of Ansible. */
	if (r == 0)
		r = nm_config_load(&files, files.folder ? geteuid() : NM_ANY_OWNER, &errors,
				   &config);
	/* A folder needs o+x, too, and so does each one above it. */
	for (size_t i = 0; i < errors.count; i++)
		fprintf(stderr, "%s%s\n", errors.text[i],
			r == -EACCES ? " by user " SERVICE_USER
				       ": chmod o+rX this path, and o+x the folders above it"
				     : "");
	if (r < 0 && errors.count == 0)
		fprintf(stderr, "%s: %s\n", files.path, strerror(-r));
	for (size_t i = 0; r == 0 && i < config->warnings.count; i++)
		fprintf(stderr, "%s\n", config->warnings.text[i]);
	if (r == 0)
		warn_of_metrics(config);
	if (r == 0)
		r = nm_list_events_check(stderr, root, config);
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
	if (nm_config_load(&options->config, geteuid(), &errors, &config) < 0 &&
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
