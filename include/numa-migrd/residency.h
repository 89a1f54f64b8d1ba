/* SPDX-License-Identifier: MIT */
/*
 * R_p(i), the number of pages of a process on each node (kMLB, section 3.2.2). The paper counts
 * them in the kernel; here they are counted or estimated from the best available source, and each
 * value has an age and an error. Pure.
 */
#ifndef NUMA_MIGRD_RESIDENCY_H
#define NUMA_MIGRD_RESIDENCY_H

#include "numa-migrd/base.h"
#include "numa-migrd/topology.h"

enum nm_residency_source {
	NM_RESIDENCY_NONE,
	NM_RESIDENCY_ACCESSES, /* sampled accesses by node: pages are weighted by their use */
	NM_RESIDENCY_QUERY,    /* move_pages(2) query for a sample of pages, each counted once */
	NM_RESIDENCY_MAPS,     /* /proc/PID/numa_maps */
};

/* The data of one source. */
struct nm_residency_reading {
	enum nm_residency_source source;
	uint64_t time_ns;
	const double *seen; /* nr_nodes values: amount found on each node, in any unit */
	double samples;	    /* number of samples; not used for a source that covers every page */
	double resident;    /* total number of pages of the process (RSS) */
};

/* pages has nr_nodes values. All zero: nothing is known. */
struct nm_residency {
	enum nm_residency_source source;
	uint64_t time_ns;
	double resident, samples;
	const double *pages;
	unsigned nr_nodes;
};

/*
 * Computes the estimate into `pages` (room for nr_nodes, referenced by *ret): the amounts found,
 * scaled to the resident pages. Returns 0, or -ENODATA if nothing was found or there are no
 * samples.
 */
int nm_residency_estimate(const struct nm_residency_reading *reading, unsigned nr_nodes,
			  double *pages, struct nm_residency *ret);

/*
 * Return the standard error, in pages, of R(i) and of the gain R(to) − R(from) at the time of the
 * reading: the sampling error, which is smaller if much of the resident memory was sampled, and 0
 * for a source that covers every page. A node not found in few samples is not certain to be empty.
 * NaN if nothing is known.
 */
double nm_residency_error(const struct nm_residency *residency, int node);
double nm_residency_gain_error(const struct nm_residency *residency, int from, int to);

uint64_t nm_residency_age_ns(const struct nm_residency *residency, uint64_t now_ns);

/*
 * Returns whether `a` is the better one to use now: the one with the smaller maximum error over the
 * nodes. Age adds `drift` (initial estimate 0.01) of the resident pages per second to the error, so
 * that fresher samples eventually replace an exact count. Any data is better than none.
 */
bool nm_residency_better(const struct nm_residency *a, const struct nm_residency *b,
			 uint64_t now_ns, double drift);

/*
 * Adds the counts of one line of numa_maps to `pages` (nr_nodes values, in pages of page_bytes); its
 * counts are in pages of its kernelpagesize_kB. Returns 0, also for a mapping without pages, or
 * -EINVAL for another text. Nodes that are not in the topology are ignored.
 */
int nm_residency_read_numa_maps_line(const char *line, const struct nm_topology *topology,
				     double page_bytes, double *pages);

#endif
