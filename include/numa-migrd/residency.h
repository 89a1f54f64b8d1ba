/* SPDX-License-Identifier: MIT */
/*
 * R_p(i), the pages of a process on each node (kMLB, section 3.2.2), from whatever tells it: the
 * paper counts them in the kernel, here they are counted or estimated, and each value knows its age
 * and its error. Pure: text and counts in, values out.
 */
#ifndef NUMA_MIGRD_RESIDENCY_H
#define NUMA_MIGRD_RESIDENCY_H

#include "numa-migrd/base.h"
#include "numa-migrd/topology.h"

enum nm_residency_source {
	NM_RESIDENCY_NONE,
	NM_RESIDENCY_ACCESSES, /* sampled accesses by home node: pages weigh as they are used */
	NM_RESIDENCY_QUERY,    /* move_pages(2) asked where a choice of pages is, each once */
	NM_RESIDENCY_MAPS,     /* /proc/PID/numa_maps */
};

/* What a source told. */
struct nm_residency_reading {
	enum nm_residency_source source;
	uint64_t time_ns;
	const double *seen; /* nr_nodes: what was found on each node, in any unit */
	double samples;	    /* behind them; of sources that see every page it is not asked for */
	double resident;    /* pages of the process in all (RSS) */
};

/* pages: nr_nodes values. All zero: nothing is known. */
struct nm_residency {
	enum nm_residency_source source;
	uint64_t time_ns;
	double resident, samples;
	const double *pages;
	unsigned nr_nodes;
};

/*
 * The estimate into `pages` (room for nr_nodes, which *ret refers to): what was seen, scaled to
 * what is resident. -ENODATA: nothing was seen, or it rests on no sample.
 */
int nm_residency_estimate(const struct nm_residency_reading *reading, unsigned nr_nodes,
			  double *pages, struct nm_residency *ret);

/*
 * Standard error in pages of R(i), and of the gain R(to) − R(from), as of the reading: sampling
 * error, less where much of what is resident was looked at, and 0 of sources that see every page.
 * Nothing seen of a node in few samples is no certainty. NaN where nothing is known.
 */
double nm_residency_error(const struct nm_residency *residency, int node);
double nm_residency_gain_error(const struct nm_residency *residency, int from, int to);

uint64_t nm_residency_age_ns(const struct nm_residency *residency, uint64_t now_ns);

/*
 * Is `a` the better one to go by now? The one with the smaller largest error over the nodes, to
 * which age adds `drift` (first guess 0.01) of what is resident for each second: so an exact count
 * gives way to fresher samples in time. Something known is better than nothing.
 */
bool nm_residency_better(const struct nm_residency *a, const struct nm_residency *b,
			 uint64_t now_ns, double drift);

/*
 * Adds to `pages` (nr_nodes, in pages of page_bytes) the counts of one line of numa_maps (numa(7));
 * its counts are in pages of its kernelpagesize_kB. 0 also for a mapping without pages. -EBADMSG:
 * it is damaged; `pages` is as it was. Nodes that the topology does not have are left out.
 */
int nm_residency_read_numa_maps_line(const char *line, const struct nm_topology *topology,
				     double page_bytes, double *pages);

#endif
