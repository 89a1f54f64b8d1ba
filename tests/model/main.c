/* SPDX-License-Identifier: MIT */
/* simulate: runs a workload on a model of a machine with one policy after another
 * (docs/simulation.md). Not installed. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "numa-migrd/file.h"
#include "policies.h"

#define POLICIES_MOST 16U
#define FILE_BYTES (1U << 20)
#define POLICY_FILE_BYTES (1U << 16)

struct options {
	const char *machine, *workload; /* NULL: not given */
	const char *policies[POLICIES_MOST];
	unsigned nr_policies;
	bool json;
	uint64_t seed, runs;
	double wander_per_s;
};

static int wrong_usage(const char *what, const char *which)
{
	(void)fprintf(stderr, "simulate: %s%s%s\n", what, which ? ": " : "", which ? which : "");
	return EX_USAGE;
}

static int fail(const char *file, const char *why)
{
	(void)fprintf(stderr, "simulate: %s: %s\n", file, why);
	return EXIT_FAILURE;
}

static int simulation_failed(int r)
{
	(void)fprintf(stderr, "simulate: the simulation ended early: %s\n", strerror(-r));
	return EXIT_FAILURE;
}

/* ---- arguments ---- */

static int list_machines(const char *unknown)
{
	(void)fprintf(stderr, "simulate: no machine or file of this name: %s\nThere are:\n",
		      unknown);
	for (size_t i = 0; nm_sim_model(i); i++)
		(void)fprintf(stderr, "  %-12s %s\n", nm_sim_model(i)->name,
			      nm_sim_model(i)->words);
	(void)fputs("and XML files of hwloc (lstopo --of xml)\n", stderr);
	return EX_USAGE;
}

static int list_policies(const char *unknown)
{
	(void)fprintf(stderr, "simulate: no policy or file of this name: %s\nThere are:\n",
		      unknown);
	for (size_t i = 0; nm_sim_policy_at(i); i++)
		(void)fprintf(stderr, "  %-16s %s\n", nm_sim_policy_at(i)->name,
			      nm_sim_policy_at(i)->words);
	(void)fputs("and configuration files (numa-migrd.conf(5))\n", stderr);
	return EX_USAGE;
}

/* Returns false for a mistyped name. */
static bool is_path(const char *word)
{
	return strchr(word, '/') || strchr(word, '.') || access(word, F_OK) == 0;
}

static int wrong_file(const char *path, const char *why)
{
	/* Some functions that read files include their names in errors. */
	if (strncmp(why, path, strlen(path)) != 0)
		return fail(path, why);
	(void)fprintf(stderr, "simulate: %s\n", why);
	return EXIT_FAILURE;
}

static int read_machine(const char *path, struct nm_sim_machine **ret)
{
	struct nm_topology_source source = {.xml_path = path};
	struct nm_topology *topology = NULL;
	char error[256] = "";
	if (nm_topology_load(&source, error, sizeof(error), &topology) < 0)
		return wrong_file(path, error);
	if (topology->nr_nodes > NM_SIM_NODES_MAX) {
		(void)snprintf(error, sizeof(error), "%u nodes; the model has %u at most",
			       topology->nr_nodes, NM_SIM_NODES_MAX);
		nm_topology_free(topology);
		return wrong_file(path, error);
	}
	int r = nm_sim_machine_of(topology, ret);
	if (r == 0)
		return EXIT_SUCCESS;
	nm_topology_free(topology);
	return simulation_failed(r);
}

static int load_machine(const char *word, struct nm_sim_machine **ret)
{
	int r = nm_sim_machine_by_name(word, ret);
	if (r == 0)
		return EXIT_SUCCESS;
	if (r != -ENOENT)
		return simulation_failed(r);
	return is_path(word) ? read_machine(word, ret) : list_machines(word);
}

static int read_text(const char *path, size_t most, char **ret, size_t *ret_length)
{
	nm_autofree char *text = malloc(most);
	int r = text ? nm_read_text(AT_FDCWD, path, text, most) : -ENOMEM;
	char why[64];
	(void)snprintf(why, sizeof(why), "larger than %zu KiB", most >> 10);
	if (r < 0)
		return wrong_file(path, r == -EFBIG ? why : strerror(-r));
	*ret = NM_TAKE(text);
	*ret_length = (size_t)r;
	return EXIT_SUCCESS;
}

static int load_workload(const char *path, struct nm_sim_workload *ret)
{
	nm_autofree char *text = NULL;
	char error[512] = "";
	size_t length = 0;
	int status = read_text(path, FILE_BYTES, &text, &length);
	if (status != EXIT_SUCCESS)
		return status;
	if (nm_sim_workload_parse(path, text, length, error, sizeof(error), ret) < 0)
		return wrong_file(path, error);
	return EXIT_SUCCESS;
}

/* A node named in a workload may not exist. */
static int check_nodes(const char *path, const struct nm_sim_machine *machine,
		       const struct nm_sim_workload *workload)
{
	const struct nm_topology *topology = machine->topology;
	char why[128];
	for (size_t u = 0; u < workload->nr_users; u++) {
		const struct nm_sim_user *user = &workload->users[u];
		bool there = user->node < (int)topology->nr_nodes;
		if (user->node < 0 ||
		    (there && !hwloc_bitmap_iszero(topology->nodes[user->node].cpus)))
			continue;
		if (there)
			(void)snprintf(why, sizeof(why), "user %zu (%s): node %d has no usable CPU",
				       u + 1, user->name, user->node);
		else
			(void)snprintf(why, sizeof(why),
				       "user %zu (%s): no node %d; the machine has 0 to %u", u + 1,
				       user->name, user->node, topology->nr_nodes - 1);
		return wrong_file(path, why);
	}
	return EXIT_SUCCESS;
}

/* All policies, which are checked before the first long run. */
struct choice {
	struct nm_sim_policy policies[POLICIES_MOST];
	char *texts[POLICIES_MOST]; /* texts of those that are files */
};

static void choice_clear(struct choice *choice)
{
	for (size_t i = 0; i < POLICIES_MOST; i++)
		free(choice->texts[i]);
}

/* Loads a policy of the table or from a file. The caller frees *ret_text. */
static int load_policy(const char *word, struct nm_sim_policy *ret, char **ret_text)
{
	const struct nm_sim_policy *known = nm_sim_policy_by_name(word);
	if (known) {
		*ret = *known;
		return EXIT_SUCCESS;
	}
	if (!is_path(word))
		return list_policies(word);
	size_t length;
	int status = read_text(word, POLICY_FILE_BYTES, ret_text, &length);
	*ret = (struct nm_sim_policy){.name = word, .config = *ret_text};
	return status == EXIT_SUCCESS && nm_sim_policy_check(ret) < 0 ? EXIT_FAILURE : status;
}

static int load_policies(const struct options *asked, struct choice *ret)
{
	int status = EXIT_SUCCESS;
	for (unsigned i = 0; i < asked->nr_policies && status == EXIT_SUCCESS; i++)
		status = load_policy(asked->policies[i], &ret->policies[i], &ret->texts[i]);
	return status;
}

/* ---- output ---- */

/* Returns "-" if a value is missing. */
static const char *percent(char text[16], double now, double before)
{
	if (!(now > 0 && before > 0))
		return "-";
	(void)snprintf(text, 16, "%+.1f%%", 100 * (now / before - 1));
	return text;
}

/* If a user has not finished, less time may only mean less work. */
static double computing_of(const struct nm_sim_outcome *outcome)
{
	return outcome->all_ended ? outcome->slowest_user_s : (double)NAN;
}

static void print_row(const char *name, const struct nm_sim_outcome *outcome,
		      const struct nm_sim_outcome *first)
{
	char time[16], computing[16] = "-", changed[16];
	if (outcome->all_ended)
		(void)snprintf(computing, sizeof(computing), "%.1f", outcome->slowest_user_s);
	printf("%-14s %9.1f %7s %6.0f %9s %7s %7.1f%% %8.0f %9.0f %8.0f %7.0f %6.0f\n", name,
	       outcome->time_s, percent(time, outcome->time_s, first->time_s),
	       outcome->programs_ended, computing,
	       percent(changed, computing_of(outcome), computing_of(first)),
	       100 * outcome->local_share, outcome->moves, outcome->pages_moved, outcome->improved,
	       outcome->neutral, outcome->rolled_back);
	(void)fflush(stdout);
}

static json_t *to_json(const struct nm_sim_policy *policy, const struct nm_sim_outcome *outcome)
{
	char digest[17];
	json_t *row = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "policy",
				policy->name, "time_s", outcome->time_s, "programs_ended",
				outcome->programs_ended, "local_share", outcome->local_share,
				"moves", outcome->moves, "pages_moved", outcome->pages_moved,
				"decisions", outcome->decisions, "improved", outcome->improved,
				"neutral", outcome->neutral, "rolled_back", outcome->rolled_back);
	if (row && outcome->all_ended)
		(void)json_object_set_new(row, "computing_s", json_real(outcome->slowest_user_s));
	if (row && policy->config) {
		(void)snprintf(digest, sizeof(digest), "%016" PRIx64, outcome->decisions_digest);
		(void)json_object_set_new(row, "digest", json_string(digest));
	}
	return row;
}

static int report_outcome(const struct options *asked, const struct nm_sim_policy *policy,
			  const struct nm_sim_outcome *outcome, const struct nm_sim_outcome *first,
			  json_t *rows)
{
	if (!asked->json) {
		print_row(policy->name, outcome, first);
		return EXIT_SUCCESS;
	}
	return json_array_append_new(rows, to_json(policy, outcome)) < 0
		       ? simulation_failed(-ENOMEM)
		       : EXIT_SUCCESS;
}

/* ---- the command ---- */

static int run_policies(const struct options *asked, const struct nm_sim_case *what,
			const struct choice *choice, json_t *rows)
{
	struct nm_sim_outcome first = {0};
	if (!asked->json)
		printf("%-14s %9s %7s %6s %9s %7s %8s %8s %9s %8s %7s %6s\n", "POLICY", "TIME s",
		       "CHANGE", "ENDED", "COMPUTE s", "CHANGE", "LOCAL", "MOVES", "PAGES",
		       "IMPROVED", "NEUTRAL", "BACK");
	for (unsigned i = 0; i < asked->nr_policies; i++) {
		const struct nm_sim_policy *policy = &choice->policies[i];
		struct nm_sim_outcome outcome;
		int r = nm_sim_case_run(what, policy, &outcome);
		if (r < 0)
			return simulation_failed(r);
		if (i == 0)
			first = outcome;
		int status = report_outcome(asked, policy, &outcome, &first, rows);
		if (status != EXIT_SUCCESS)
			return status;
	}
	return EXIT_SUCCESS;
}

static int run_case(const struct options *asked, const struct nm_sim_case *what,
		    const struct choice *choice)
{
	json_t *rows = json_array();
	int status = run_policies(asked, what, choice, rows);
	if (status == EXIT_SUCCESS && asked->json) {
		json_t *document = json_pack("{siso}", "version", 1, "simulated", rows);
		(void)json_dumpf(document, stdout, JSON_INDENT(2));
		(void)putchar('\n');
		json_decref(document);
		return status;
	}
	json_decref(rows);
	return status;
}

static int simulate(const struct options *asked)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	nm_auto(choice_clear) struct choice choice = {0};
	int status = load_machine(asked->machine, &machine);
	if (status == EXIT_SUCCESS)
		status = load_workload(asked->workload, &workload);
	if (status == EXIT_SUCCESS)
		status = check_nodes(asked->workload, machine, &workload);
	if (status == EXIT_SUCCESS)
		status = load_policies(asked, &choice);
	if (status != EXIT_SUCCESS)
		return status;
	struct nm_sim_case what = {
		.machine = machine,
		.workload = &workload,
		.how = {.runs = (unsigned)asked->runs,
			.options = {.seed = asked->seed, .wander_per_s = asked->wander_per_s}}};
	return run_case(asked, &what, &choice);
}

/* ---- options ---- */

static int set_number(const char *option, const char *word, uint64_t most, uint64_t *ret)
{
	char *end, text[96];
	errno = 0;
	uint64_t number = strtoull(word, &end, 10);
	if (*word >= '0' && *word <= '9' && *end == '\0' && !errno && number >= 1 &&
	    number <= most) {
		*ret = number;
		return EXIT_SUCCESS;
	}
	(void)snprintf(text, sizeof(text), "%s is a whole number from 1 to %" PRIu64 ", not",
		       option, most);
	return wrong_usage(text, word);
}

static int set_wander(const char *word, double *ret)
{
	char *end;
	double rate = strtod(word, &end);
	if (end == word || *end != '\0' || !(rate >= 0 && rate <= 10))
		return wrong_usage("--wander is a number from 0 to 10, not", word);
	*ret = rate;
	return EXIT_SUCCESS;
}

static int add_policy(struct options *options, const char *word)
{
	if (options->nr_policies == POLICIES_MOST)
		return wrong_usage("--policy may be given 16 times, not once more with", word);
	options->policies[options->nr_policies++] = word;
	return EXIT_SUCCESS;
}

static int set_option(struct options *options, int option)
{
	switch (option) {
	case 'm':
		options->machine = optarg;
		return EXIT_SUCCESS;
	case 'f':
		options->workload = optarg;
		return EXIT_SUCCESS;
	case 'p':
		return add_policy(options, optarg);
	case 's':
		return set_number("--seed", optarg, INT64_MAX, &options->seed);
	case 'r':
		return set_number("--runs", optarg, 1000, &options->runs);
	case 'w':
		return set_wander(optarg, &options->wander_per_s);
	case 'j':
		options->json = true;
		return EXIT_SUCCESS;
	default:
		(void)fputs("usage: simulate --machine=M --workload=FILE --policy=P... [--seed=N] "
			    "[--runs=N] [--wander=R] [--json]\n",
			    stderr);
		return EX_USAGE;
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"machine", required_argument, NULL, 'm'},
		{"workload", required_argument, NULL, 'f'},
		{"policy", required_argument, NULL, 'p'},
		{"seed", required_argument, NULL, 's'},
		{"runs", required_argument, NULL, 'r'},
		{"wander", required_argument, NULL, 'w'},
		{"json", no_argument, NULL, 'j'},
		{0},
	};
	struct options options = {.seed = 1, .runs = 1, .wander_per_s = NM_SIM_WANDER_USUAL};
	int status = EXIT_SUCCESS;
	for (int c; status == EXIT_SUCCESS && (c = getopt_long(argc, argv, "", longs, NULL)) != -1;)
		status = set_option(&options, c);
	if (status != EXIT_SUCCESS)
		return status;
	if (optind < argc)
		return wrong_usage("one argument too many", argv[optind]);
	if (!options.machine || !options.workload || options.nr_policies == 0)
		return wrong_usage("--machine, --workload and --policy are needed", NULL);
	status = simulate(&options);
	if (fflush(stdout) != 0)
		return fail("standard output", strerror(errno));
	return status;
}
