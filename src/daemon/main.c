/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon.h"

#define DEFAULT_CONFIG "/etc/numa-migrd.conf"

static void print_help(FILE *out)
{
	fputs("numa-migrd - moves threads to their memory on NUMA machines\n"
	      "\n"
	      "Usage: numa-migrd [OPTION]...\n"
	      "\n"
	      "  -c, --config FILE  configuration (default " DEFAULT_CONFIG ")\n"
	      "      --check-config check the configuration, say what is wrong, and exit\n"
	      "      --dry-run      watch and decide, but change nothing\n"
	      "      --restore      return what a run that crashed has left, and exit\n"
	      "      --version      print the version and exit\n"
	      "  -h, --help         print this and exit\n"
	      "\n"
	      "Exit status: 0 fine, 1 failure, 64 wrong usage, 78 wrong configuration.\n"
	      "See numa-migrd(8), numa-migrd.conf(5), numa-migrctl(1).\n",
	      out);
}

static int parse_options(int argc, char **argv, struct nm_options *ret)
{
	enum { CHECK_CONFIG = 256, DRY_RUN, RESTORE, VERSION };
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, CHECK_CONFIG},
		{"dry-run", no_argument, NULL, DRY_RUN},
		{"restore", no_argument, NULL, RESTORE},
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
	int r = nm_config_load(options->config_path, &errors, &config);
	for (size_t i = 0; i < errors.count; i++)
		fprintf(stderr, "%s\n", errors.text[i]);
	if (r < 0 && errors.count == 0)
		fprintf(stderr, "%s: %s\n", options->config_path, strerror(-r));
	return r < 0 ? EX_CONFIG : EXIT_SUCCESS;
}

static int load_config(struct nm_daemon *daemon)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	int r = nm_config_load(daemon->options.config_path, &errors, &daemon->config);
	if (r == 0) {
		nm_journal_configure(daemon->journal, daemon->config->journal.level,
				     daemon->config->journal.rate_per_s);
		return 0;
	}
	nm_report_config_errors(daemon, NM_MESSAGE_PROBLEM, &errors);
	if (errors.count == 0)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_ERR, "%s: %s",
			  daemon->options.config_path, strerror(-r));
	return r;
}

static int open_runtime(struct nm_daemon *daemon)
{
	int r = nm_runtime_open(&daemon->runtime_directory);
	if (r == -EBUSY)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "another numa-migrd is running: it holds the runtime directory "
			  "(systemctl status "
			  "numa-migrd)");
	else if (r < 0)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "cannot use the runtime directory: %s; it must belong to the user of "
			  "numa-migrd and be "
			  "writable by nobody else (run by hand, numa-migrd needs to be root)",
			  strerror(-r));
	if (r < 0)
		return r;
	r = nm_runtime_restore(daemon);
	if (r < 0)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_ERR, "cannot replay the ledger: %s",
			  strerror(-r));
	return r;
}

static void choose_seed(struct nm_daemon *daemon)
{
	daemon->seed = daemon->config->general.seed;
	/* Positive in every reader's 64-bit integers; the file cannot say more either. */
	if (daemon->seed == 0 &&
	    getrandom(&daemon->seed, sizeof(daemon->seed), 0) == sizeof(daemon->seed))
		daemon->seed >>= 1;
	nm_rng_seed(&daemon->rng, daemon->seed);
}

static int run_daemon(struct nm_daemon *daemon)
{
	choose_seed(daemon);
	daemon->next_decision = 1;
	int r = sd_event_default(&daemon->event);
	if (r < 0)
		return r;
	r = nm_pipeline_open(daemon);
	if (r < 0)
		return r;
	nm_report_start(daemon);
	nm_report_coexistence(daemon);
	r = nm_loop_run(daemon);

	if (!daemon->paused)
		nm_pipeline_close(daemon);
	nm_report(daemon, NM_MESSAGE_STOP, LOG_NOTICE, "stopped: every mask is returned");
	return r;
}

static void daemon_clear(struct nm_daemon *daemon)
{
	nm_control_free(daemon->control);
	sd_event_source_disable_unref(daemon->timer);
	sd_event_source_disable_unref(daemon->nudge_timer);
	sd_event_source_disable_unref(daemon->ring_source);
	sd_event_unref(daemon->event);
	nm_journal_free(daemon->journal);
	nm_config_free(daemon->config);
	free(daemon->cpu_times);
	free(daemon->busy_share);
	free(daemon->events);
	if (daemon->runtime_directory >= 0)
		close(daemon->runtime_directory);
}

static int run(const struct nm_options *options)
{
	nm_auto(daemon_clear) struct nm_daemon daemon = {.options = *options,
							 .runtime_directory = -1};
	if (nm_journal_new(&daemon.journal) < 0)
		return EXIT_FAILURE;
	/* What a crashed run left is returned whatever the configuration is like. */
	if (!options->restore && load_config(&daemon) < 0)
		return EX_CONFIG;
	if (open_runtime(&daemon) < 0)
		return EXIT_FAILURE;
	if (options->restore)
		return EXIT_SUCCESS;
	int r = run_daemon(&daemon);
	if (r < 0)
		nm_report(&daemon, NM_MESSAGE_PROBLEM, LOG_ERR, "giving up: %s", strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
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
	return options.check_config ? check_config(&options) : run(&options);
}
