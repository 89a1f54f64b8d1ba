/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The memory that the QEMU plugin (host) and the kernel module (guest) share: a file on the one
 * side, the second bar of an ivshmem device on the other. The guest describes its machine, the
 * plugin models the caches and hands over counts and samples.
 *
 * A ring's producer is the plugin while the CPU executes, its consumer that same CPU: both are one
 * thread of the host, so head and tail need no barriers.
 */
#ifndef NUMALAB_H
#define NUMALAB_H

#include <linux/types.h>

#define NUMALAB_MAGIC 0x62616c616d756e31ULL
#define NUMALAB_MAX_NODES 8
#define NUMALAB_MAX_CPUS 16
#define NUMALAB_RING 8192 /* records; a power of two */

enum numalab_level { NUMALAB_LLC, NUMALAB_DRAM };

/* One access that missed the L1. */
struct numalab_record {
	__u64 address;	/* virtual */
	__u64 physical; /* as the guest numbers it */
	__u64 ip;
	__u32 latency; /* core cycles; 0 for stores, whose latency is hidden from them */
	__u8 level;    /* enum numalab_level */
	__u8 store;
	__u8 node; /* home of the memory */
	__u8 reserved;
};

struct numalab_counts {
	__u64 accesses;
	__u64 instructions;
	__u64 flops; /* of SSE, AVX and FMA; a vector counts by its width */
	__u64 l1_misses;
	__u64 local; /* served by DRAM of the CPU's own node */
	__u64 remote;
	__u64 stall_cycles; /* waiting for DRAM */
	__u64 dropped;	    /* samples: the ring was full */
	__u64 cycles;	    /* instructions and what they waited for, where time is paced; else 0 */
	__u64 queue_cycles; /* of the stalls, where time is paced: others used controller or ports too */
	__u64 late_ns; /* of the guest: the CPU was ahead of the clock, as the host did not hold it
			*/
};

/* Of one vCPU, by the number that the plugin knows it by. */
struct numalab_ring {
	__u64 head;   /* written by the plugin */
	__u64 tail;   /* and these two by the guest */
	__u32 period; /* every n-th L1 miss is recorded; 0: none */
	__u32 reserved;
	struct numalab_counts counts;
	struct numalab_record records[NUMALAB_RING];
};

/* A stretch of one node's memory by the addresses that the plugin sees. */
struct numalab_region {
	__u64 first, end;
	__u64 to_guest; /* what to add, modulo 2^64, for the guest's physical address */
};

/*
 * How the two find out about each other: the guest sets `address` and reads there; the plugin,
 * seeing an access to that virtual address, answers who it was and where the memory is.
 */
struct numalab_probe {
	__u64 address; /* 0: none */
	__u64 physical;
	__u32 vcpu;
	__u32 answered;
};

struct numalab_shared {
	__u64 magic;	    /* set by the plugin */
	__u32 attached;	    /* set by the guest: code is to be instrumented from here on */
	__u32 instrumented; /* set by the plugin: it is */
	__u32 ready;	    /* set by the guest: what follows is valid */
	__u32 nodes;
	__u32 node_of_vcpu[NUMALAB_MAX_CPUS];
	__u32 distance[NUMALAB_MAX_NODES][NUMALAB_MAX_NODES];
	struct numalab_region regions[NUMALAB_MAX_NODES]; /* by node */
	struct numalab_probe probe;
	struct numalab_ring rings[NUMALAB_MAX_CPUS];
};

#endif
