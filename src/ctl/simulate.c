/* SPDX-License-Identifier: MIT */
/* numa-migrctl simulate: a workload on a model machine, under one policy after another. */
#include "simulate.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "numa-migrd/file.h"

#define FILE_BYTES (1U << 20)
#define POLICY_FILE_BYTES (1U << 16)

int nm_ctl_simulate_failed(int r)
{
	(void)fprintf(stderr, "numa-migrctl: the simulation ended early: %s\n", strerror(-r));
	return EXIT_FAILURE;
}

/* ---- what is asked for ---- */

static int list_machines(const char *unknown)
{
	(void)fprintf(stderr,
		      "numa-migrctl: no such machine, nor a file of that name: %s\nThere are:\n",
		      unknown);
	for (size_t i = 0; nm_sim_model(i); i++)
		(void)fprintf(stderr, "  %-12s %s\n", nm_sim_model(i)->name,
			      nm_sim_model(i)->words);
	(void)fputs("and files of hwloc's XML (lstopo --of xml)\n", stderr);
	return EX_USAGE;
}

static int list_policies(const char *unknown)
{
	(void)fprintf(stderr,
		      "numa-migrctl: no such policy, nor a file of that name: %s\nThere are:\n",
		      unknown);
	for (size_t i = 0; nm_sim_policy_at(i); i++)
		(void)fprintf(stderr, "  %-12s %s\n", nm_sim_policy_at(i)->name,
			      nm_sim_policy_at(i)->words);
	(void)fputs("and files as numa-migrd.conf(5)\n", stderr);
	return EX_USAGE;
}

static bool is_path(const char *word)
{
	return strchr(word, '/') || strchr(word, '.');
}

static int load_machine(const char *word, struct nm_sim_machine **ret)
{
	struct nm_topology_source source = {.xml_path = word};
	struct nm_topology *topology = NULL;
	char error[256] = "";
	int r = nm_sim_machine_by_name(word, ret);
	if (r == 0)
		return EXIT_SUCCESS;
	if (r != -ENOENT)
		return nm_ctl_simulate_failed(r);
	if (!is_path(word))
		return list_machines(word);
	if (nm_topology_load(&source, error, sizeof(error), &topology) < 0) {
		(void)fprintf(stderr, "numa-migrctl: %s: %s\n", word, error);
		return EXIT_FAILURE;
	}
	r = nm_sim_machine_of(topology, ret);
	if (r == 0)
		return EXIT_SUCCESS;
	nm_topology_free(topology);
	return nm_ctl_simulate_failed(r);
}

static int read_text(const char *path, size_t most, char **ret, size_t *ret_length)
{
	nm_autofree char *text = malloc(most);
	int r = text ? nm_read_text(AT_FDCWD, path, text, most) : -ENOMEM;
	if (r < 0) {
		(void)fprintf(stderr, "numa-migrctl: %s: %s\n", path, strerror(-r));
		return EXIT_FAILURE;
	}
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
	if (nm_sim_workload_parse(path, text, length, error, sizeof(error), ret) < 0) {
		(void)fprintf(stderr, "numa-migrctl: %s\n", error);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

/* A node that a workload names may not be there. */
static int check_nodes(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload)
{
	for (size_t u = 0; u < workload->nr_users; u++) {
		if (workload->users[u].node < (int)machine->topology->nr_nodes)
			continue;
		(void)fprintf(stderr,
			      "numa-migrctl: user %s wants node %d, and the machine has %u nodes\n",
			      workload->users[u].name, workload->users[u].node,
			      machine->topology->nr_nodes);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

/* A policy of the table, or what a file says; *ret_text is what the caller frees. */
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
	return status;
}

/* ---- output ---- */

static void print_head(void)
{
	printf("%-14s %9s %7s %9s %7s %8s %8s %9s %6s %6s\n", "POLICY", "TIME s", "CHANGE",
	       "COMPUTE s", "CHANGE", "LOCAL", "MOVES", "PAGES", "KEPT", "UNDONE");
}

static double change(double now, double before)
{
	return before > 0 ? 100 * (now / before - 1) : (double)NAN;
}

/* Where no program ended, there is no time to compare. */
static const char *percent(char text[16], double now, double before)
{
	double by = change(now, before);
	if (isnan(by))
		return "-";
	(void)snprintf(text, 16, "%+.1f%%", by);
	return text;
}

static void print_row(const char *name, const struct nm_sim_outcome *outcome,
		      const struct nm_sim_outcome *first)
{
	char time[16], computing[16];
	printf("%-14s %9.1f %7s %9.1f %7s %7.1f%% %8.0f %9.0f %6.0f %6.0f\n", name, outcome->time_s,
	       percent(time, outcome->time_s, first->time_s), outcome->slowest_user_s,
	       percent(computing, outcome->slowest_user_s, first->slowest_user_s),
	       100 * outcome->local_share, outcome->moves, outcome->pages_moved, outcome->kept,
	       outcome->rolled_back);
}

static json_t *to_json(const char *name, const struct nm_sim_outcome *outcome)
{
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "policy", name, "time_s",
			 outcome->time_s, "computing_s", outcome->slowest_user_s, "local_share",
			 outcome->local_share, "moves", outcome->moves, "pages_moved",
			 outcome->pages_moved, "decisions", outcome->decisions, "kept",
			 outcome->kept, "rolled_back", outcome->rolled_back);
}

static int tell(const struct nm_ctl *ctl, const char *name, const struct nm_sim_outcome *outcome,
		const struct nm_sim_outcome *first, json_t *rows)
{
	if (!ctl->json) {
		print_row(name, outcome, first);
		return EXIT_SUCCESS;
	}
	return json_array_append_new(rows, to_json(name, outcome)) < 0
		       ? nm_ctl_simulate_failed(-ENOMEM)
		       : EXIT_SUCCESS;
}

/* ---- the command ---- */

static int run_policies(const struct nm_ctl *ctl, const struct nm_sim_case *what, json_t *rows)
{
	struct nm_sim_outcome first = {0};
	if (!ctl->json)
		print_head();
	for (unsigned i = 0; i < ctl->simulate.nr_policies; i++) {
		nm_autofree char *text = NULL;
		struct nm_sim_policy policy;
		struct nm_sim_outcome outcome;
		int status = load_policy(ctl->simulate.policies[i], &policy, &text);
		if (status != EXIT_SUCCESS)
			return status;
		int r = nm_sim_case_run(what, &policy, &outcome);
		if (r == -EINVAL)
			return EXIT_FAILURE;
		if (r < 0)
			return nm_ctl_simulate_failed(r);
		if (i == 0)
			first = outcome;
		status = tell(ctl, policy.name, &outcome, &first, rows);
		if (status != EXIT_SUCCESS)
			return status;
	}
	return EXIT_SUCCESS;
}

static int open_record(const struct nm_ctl *ctl, int *ret)
{
	const char *path = ctl->simulate.record;
	if (!path)
		return EXIT_SUCCESS;
	if (ctl->simulate.nr_policies != 1)
		return nm_ctl_wrong_usage("--record goes with one --policy", NULL);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		(void)fprintf(stderr, "numa-migrctl: %s: %s\n", path, strerror(errno));
		return EXIT_FAILURE;
	}
	*ret = fd;
	return EXIT_SUCCESS;
}

static int simulate(const struct nm_ctl *ctl)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	struct nm_sim_case what = {
		.workload = &workload, .seed = ctl->simulate.seed, .runs = ctl->simulate.runs};
	int status = load_machine(ctl->simulate.machine, &machine);
	if (status == EXIT_SUCCESS)
		status = load_workload(ctl->simulate.workload, &workload);
	if (status == EXIT_SUCCESS)
		status = check_nodes(machine, &workload);
	if (status != EXIT_SUCCESS)
		return status;
	what.machine = machine;
	nm_auto(nm_closep) int fd = -1;
	status = open_record(ctl, &fd);
	if (status != EXIT_SUCCESS)
		return status;
	what.recorded = fd >= 0;
	what.record_fd = fd;
	json_t *rows = json_array();
	status = run_policies(ctl, &what, rows);
	if (status == EXIT_SUCCESS && ctl->json)
		return nm_ctl_print_document(ctl, "simulated", rows);
	json_decref(rows);
	return status;
}

int nm_ctl_simulate(const struct nm_ctl *ctl, char *const *words)
{
	(void)words;
	if (ctl->simulate.paper)
		return nm_ctl_simulate_paper(ctl, ctl->simulate.paper);
	if (ctl->simulate.scale)
		return nm_ctl_simulate_scale(ctl);
	if (!ctl->simulate.machine || !ctl->simulate.workload || ctl->simulate.nr_policies == 0)
		return nm_ctl_wrong_usage("simulate needs --machine, --workload and --policy, or "
					  "--paper, or --scale",
					  NULL);
	return simulate(ctl);
}
