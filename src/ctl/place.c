/* SPDX-License-Identifier: MIT */
/* Advises on which nodes a program of known size fits, in the form of numad -w. */
#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "ctl.h"
#include "nodes.h"
#include "numa-migrd/file.h"

/* ---- the choice ---- */

struct choice {
	bool *taken; /* by index of the node */
	size_t count;
	double distance, idle_cpus, free_bytes;
};

static double number_of(const json_t *nodes, size_t index, const char *name)
{
	return json_number_value(json_object_get(json_array_get(nodes, index), name));
}

static double idle_cpus_of(const json_t *nodes, size_t index)
{
	const json_t *cpus = json_object_get(json_array_get(nodes, index), "cpus");
	return (double)json_array_size(cpus) * (1 - number_of(nodes, index, "load"));
}

static double distance_of(const json_t *nodes, size_t from, size_t to)
{
	const json_t *distances = json_object_get(json_array_get(nodes, from), "distances");
	return json_number_value(json_array_get(distances, to));
}

/* Returns whether node `a` should follow `from` rather than `b`. */
static bool is_nearer(const json_t *nodes, size_t from, size_t a, size_t b)
{
	double one = distance_of(nodes, from, a), other = distance_of(nodes, from, b);
	return one < other || (one <= other && idle_cpus_of(nodes, a) > idle_cpus_of(nodes, b));
}

/* Takes this node, and its nearest ones until they suffice. Returns false if all do not. */
static bool grow(const json_t *nodes, size_t from, double cpus, double bytes, struct choice *choice)
{
	size_t count = json_array_size(nodes), next = from;
	while (next < count) {
		choice->taken[next] = true;
		choice->count++;
		choice->distance += distance_of(nodes, from, next);
		choice->idle_cpus += idle_cpus_of(nodes, next);
		choice->free_bytes += number_of(nodes, next, "memory_free_bytes");
		if (choice->idle_cpus >= cpus && choice->free_bytes >= bytes)
			return true;
		next = count;
		for (size_t i = 0; i < count; i++)
			if (!choice->taken[i] && (next == count || is_nearer(nodes, from, i, next)))
				next = i;
	}
	return false;
}

static bool is_better(const struct choice *one, const struct choice *other)
{
	if (one->count != other->count)
		return one->count < other->count;
	if (one->distance < other->distance || one->distance > other->distance)
		return one->distance < other->distance;
	return one->idle_cpus > other->idle_cpus;
}

json_t *nm_ctl_choose_nodes(const json_t *nodes, double cpus, double bytes, bool *ret_fits)
{
	size_t count = json_array_size(nodes);
	nm_autofree bool *taken = nm_must(calloc(2 * count + 1, sizeof(*taken)));
	struct choice best = {.taken = taken};
	bool fits = false;
	for (size_t from = 0; from < count; from++) {
		struct choice choice = {.taken = taken + count};
		memset(choice.taken, 0, count);
		if (json_array_size(json_object_get(json_array_get(nodes, from), "cpus")) == 0 ||
		    !grow(nodes, from, cpus, bytes, &choice) ||
		    (fits && !is_better(&choice, &best)))
			continue;
		memcpy(best.taken, choice.taken, count);
		choice.taken = best.taken;
		best = choice;
		fits = true;
	}
	json_t *numbers = nm_must(json_array());
	for (size_t i = 0; i < count; i++)
		if (!fits || best.taken[i])
			nm_must_do(json_array_append(
				numbers, json_object_get(json_array_get(nodes, i), "node")));
	*ret_fits = fits;
	return numbers;
}

void nm_ctl_add_loads(json_t *nodes, const json_t *document)
{
	size_t index;
	json_t *row;
	json_array_foreach(nodes, index, row)
	{
		json_int_t number = json_integer_value(json_object_get(row, "node"));
		const json_t *shown = nm_ctl_find_row(nm_ctl_rows(document, &nm_node_table), "node",
						      (uint64_t)number);
		json_t *load = json_object_get(shown, "load");
		if (json_is_number(load))
			nm_must_do(json_object_set(row, "load", load));
	}
}

/* ---- the command ---- */

/* A list as in cpuset(7): "0-1,3". */
static void print_list(const json_t *numbers)
{
	size_t count = json_array_size(numbers);
	for (size_t i = 0; i < count; i++) {
		json_int_t first = json_integer_value(json_array_get(numbers, i)), last = first;
		const char *separator = i > 0 ? "," : "";
		while (i + 1 < count &&
		       json_integer_value(json_array_get(numbers, i + 1)) == last + 1) {
			last++;
			i++;
		}
		(void)printf("%s%lld", separator, first);
		if (last > first)
			(void)printf("-%lld", last);
	}
	(void)putchar('\n');
}

int nm_ctl_place(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(nm_closep) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(json_decrefp) json_t *nodes = NULL;
	nm_auto(json_decrefp) json_t *document = NULL;
	bool fits;
	(void)words;
	if (ctl->cpus == 0 || ctl->memory_bytes == 0)
		return nm_ctl_wrong_usage("place needs --cpus N and --memory SIZE", NULL);
	int r = nm_ctl_read_nodes(root, &nodes);
	if (r < 0)
		return nm_ctl_fail("/sys/devices/system/node", strerror(-r));
	/* Advice without the service, too: a virtual machine should start. */
	if (sd_bus_open_system(&bus) >= 0)
		document = nm_ctl_try_fetch(bus);
	nm_ctl_add_loads(nodes, document);
	if (!document)
		(void)fputs("numa-migrctl: the loads of the nodes are unknown\n", stderr);
	json_t *numbers = nm_ctl_choose_nodes(nodes, ctl->cpus, (double)ctl->memory_bytes, &fits);
	if (!fits)
		(void)fputs("numa-migrctl: too few idle CPUs or too little free memory: all "
			    "nodes\n",
			    stderr);
	if (ctl->json)
		return nm_ctl_print_document("nodes", numbers);
	print_list(numbers);
	json_decref(numbers);
	return nm_ctl_close_output();
}
