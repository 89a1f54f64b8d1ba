/* SPDX-License-Identifier: MIT */
/* The nodes of this machine, and where a virtual machine would fit. */
#ifndef NM_CTL_NODES_H
#define NM_CTL_NODES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Reads the nodes from /sys below an open directory, as an array of objects, which the caller
 * releases. Returns 0, or a negative errno if the kernel lists no nodes. */
int nm_ctl_read_nodes(int root, json_t **ret);

/* Prints them in the form of numactl -H and numastat. */
void nm_ctl_print_nodes(FILE *out, const json_t *nodes);

/* Adds the load (0 to 1) of the nodes in the document of the service. */
void nm_ctl_add_loads(json_t *nodes, const json_t *document);

/*
 * Chooses the fewest nodes that have this number of idle CPUs and this much free memory: among
 * these the nearest to each other, and then those with the most idle CPUs. Returns an array of node
 * numbers in ascending order, which the caller releases; all nodes, with *ret_fits false, if no
 * choice suffices. Pure.
 */
json_t *nm_ctl_choose_nodes(const json_t *nodes, double cpus, double bytes, bool *ret_fits);

#endif
