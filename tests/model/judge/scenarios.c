/* SPDX-License-Identifier: MIT */
/* Typical server loads, shortened. Sizes and times depend on the seed. */
#include "judge.h"

#include <math.h>

/* Programs that are memory-bound to different degrees, and one that is not. */
static const char *const some[] = {"sp", "bt", "cg", "ua", "lu", "stream", "table", "compute"};

static double between(struct nm_rng *rng, double least, double most)
{
	return least + nm_rng_unit(rng) * (most - least);
}

static const char *any(struct nm_rng *rng)
{
	return some[nm_rng_below(rng, NM_ARRAY_SIZE(some))];
}

/* Programs that one memory channel cannot serve. */
static const char *const streaming[] = {"stream", "sp", "cg", "stencil"};

static const char *any_streaming(struct nm_rng *rng)
{
	return streaming[nm_rng_below(rng, NM_ARRAY_SIZE(streaming))];
}

/* Instructions in N seconds with local memory on an idle machine. */
static double giga_of(const struct nm_sim_machine *machine, const struct nm_sim_phase *phase,
		      double seconds)
{
	double ns = phase->cpi / machine->ghz +
		    phase->misses_per_kilo / 1000 * machine->latency_ns[0] / phase->overlap;
	return seconds / ns;
}

/* A program of one phase; memory in MB. */
static struct nm_sim_program *add(const struct nm_sim_machine *machine, struct nm_sim_user *user,
				  const char *name, unsigned threads, double seconds, double mb)
{
	struct nm_sim_program *program = user ? nm_sim_user_add(user, name, threads) : NULL;
	if (!program)
		return NULL;
	program->footprint_mb = mb;
	program->phases[0].giga = giga_of(machine, &program->phases[0], seconds);
	program->phases[0].period_giga =
		program->phases[0].period_giga > 0 ? program->phases[0].giga / 40 : 0;
	return program;
}

/* Draws one of the programs with a duration and a memory size, in the same order with every
 * compiler. */
struct range {
	double least, most;
};
static struct nm_sim_program *add_any(const struct nm_sim_machine *machine,
				      struct nm_sim_user *user, struct nm_rng *rng,
				      unsigned threads, struct range seconds, struct range mb)
{
	double memory_mb = between(rng, mb.least, mb.most);
	double takes_s = between(rng, seconds.least, seconds.most);
	return add(machine, user, any(rng), threads, takes_s, memory_mb);
}

/* Gives the program N phases like its first one. */
static int set_phases(struct nm_sim_program *program, size_t count)
{
	struct nm_sim_phase *phases = reallocarray(program->phases, count, sizeof(*phases));
	if (!phases)
		return -ENOMEM;
	program->phases = phases;
	program->nr_phases = count;
	for (size_t i = 1; i < count; i++)
		phases[i] = phases[0];
	return 0;
}

/* In this phase only the first thread runs, for N seconds, and uses all memory. */
static void make_serial(const struct nm_sim_machine *machine, struct nm_sim_phase *phase,
			double seconds, double touched)
{
	phase->threads = 1;
	phase->touched = touched;
	phase->period_giga = 0;
	phase->private_part = phase->neighbour_part = 0;
	phase->shared_part = 1;
	phase->giga = giga_of(machine, phase, seconds);
}

/* ---- scenarios ---- */

static int fill_in_sequence(const struct nm_sim_machine *machine, struct nm_rng *rng,
			    unsigned threads, unsigned programs, double least_s, double most_s,
			    struct nm_sim_workload *ret)
{
	for (unsigned u = 0; u < 4; u++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		if (user)
			user->spread_s = 2;
		for (unsigned i = 0; i < programs; i++)
			if (!add_any(machine, user, rng, threads, (struct range){least_s, most_s},
				     (struct range){200, 1000}))
				return -ENOMEM;
	}
	return 0;
}

static int fill_users(const struct nm_sim_machine *machine, struct nm_rng *rng,
		      struct nm_sim_workload *ret)
{
	return fill_in_sequence(machine, rng, 6, 2, 8, 16, ret);
}

static int fill_gathered(const struct nm_sim_machine *machine, struct nm_rng *rng,
			 struct nm_sim_workload *ret)
{
	return fill_in_sequence(machine, rng, 4, 2, 8, 16, ret);
}

static int fill_brief(const struct nm_sim_machine *machine, struct nm_rng *rng,
		      struct nm_sim_workload *ret)
{
	return fill_in_sequence(machine, rng, 4, 5, 2, 5, ret);
}

static int fill_crowded(const struct nm_sim_machine *machine, struct nm_rng *rng,
			struct nm_sim_workload *ret)
{
	return fill_in_sequence(machine, rng, 12, 2, 5, 10, ret);
}

static int fill_cache(const struct nm_sim_machine *machine, struct nm_rng *rng,
		      struct nm_sim_workload *ret)
{
	return fill_in_sequence(machine, rng, 6, 1, 15, 25, ret);
}

static int fill_arrivals(const struct nm_sim_machine *machine, struct nm_rng *rng,
			 struct nm_sim_workload *ret)
{
	for (unsigned u = 0; u < 20; u++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		unsigned threads = 1U << nm_rng_below(rng, 4);
		if (!add_any(machine, user, rng, threads, (struct range){3, 15},
			     (struct range){20.0 * threads, 200.0 * threads}))
			return -ENOMEM;
		user->spread_s = 30;
	}
	return 0;
}

/* Loads data with one thread, then computes with one thread for each CPU of a node. */
static int fill_serial(const struct nm_sim_machine *machine, struct nm_rng *rng,
		       struct nm_sim_workload *ret)
{
	struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
	struct nm_sim_program *program =
		add_any(machine, user, rng, 8, (struct range){8, 15}, (struct range){400, 1600});
	if (!program || set_phases(program, 2) < 0)
		return -ENOMEM;
	double touched = between(rng, 0.1, 0.6);
	make_serial(machine, &program->phases[0], between(rng, 4, 8), touched);
	return 0;
}

/* Gets more threads and memory, sleeps, and continues, beside other programs. */
static int fill_growth(const struct nm_sim_machine *machine, struct nm_rng *rng,
		       struct nm_sim_workload *ret)
{
	for (unsigned u = 0; u < 3; u++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		struct nm_sim_program *program = add_any(
			machine, user, rng, 8, (struct range){4, 6}, (struct range){400, 1600});
		if (!program || set_phases(program, 4) < 0)
			return -ENOMEM;
		user->spread_s = 5;
		program->phases[0].threads = 2;
		program->phases[0].touched = 0.2;
		program->phases[1].threads = 4;
		program->phases[1].touched = 0.5;
		program->phases[1].idle_s = between(rng, 1, 3);
	}
	return 0;
}

/* Servers whose many threads sleep most of the time, and programs that compute. */
static int fill_servers(const struct nm_sim_machine *machine, struct nm_rng *rng,
			struct nm_sim_workload *ret)
{
	for (unsigned u = 0; u < 4; u++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "server");
		struct nm_sim_program *program =
			add(machine, user, "table", 48, 0.05, between(rng, 400, 1600));
		if (!program || set_phases(program, 25) < 0)
			return -ENOMEM;
		for (size_t i = 0; i < program->nr_phases; i++)
			program->phases[i].idle_s = 0.95;
		program->phases[0].giga *= 0.02; /* a short first phase before the work */
	}
	for (unsigned u = 0; u < 2; u++)
		if (!add_any(machine, nm_sim_workload_add(ret, "user"), rng, 6,
			     (struct range){10, 20}, (struct range){200, 1000}))
			return -ENOMEM;
	return 0;
}

/* A tenant whose owner has bound it fills a node. */
static int fill_neighbour(const struct nm_sim_machine *machine, struct nm_rng *rng,
			  struct nm_sim_workload *ret)
{
	struct nm_sim_user *noisy = nm_sim_workload_add(ret, "noisy");
	unsigned threads = 4 + (unsigned)nm_rng_below(rng, 5);
	if (!add(machine, noisy, "compute", threads, between(rng, 2, 6), 64))
		return -ENOMEM;
	noisy->placement = NM_SIM_PLACE_DIRECT;
	noisy->node = (int)nm_rng_below(rng, machine->topology->nr_nodes);
	noisy->start_s = between(rng, 0, 10);
	noisy->idle_s = between(rng, 0, 6);
	noisy->for_ever = true;
	for (unsigned u = 0; u < 3; u++)
		if (!add_any(machine, nm_sim_workload_add(ret, "user"), rng, 5,
			     (struct range){15, 25}, (struct range){200, 1000}))
			return -ENOMEM;
	ret->limit_s = 200;
	return 0;
}

/* More threads than a node has CPUs. */
static unsigned many_threads(struct nm_rng *rng)
{
	return 10 + (unsigned)nm_rng_below(rng, 15);
}

static int fill_large(const struct nm_sim_machine *machine, struct nm_rng *rng,
		      struct nm_sim_workload *ret)
{
	unsigned threads = many_threads(rng);
	struct nm_sim_program *program =
		add_any(machine, nm_sim_workload_add(ret, "user"), rng, threads,
			(struct range){15, 25}, (struct range){1000, 4000});
	if (!program)
		return -ENOMEM;
	program->touch = nm_rng_below(rng, 2) ? NM_SIM_TOUCH_MASTER : NM_SIM_TOUCH_OWN;
	return 0;
}

/* Threads access their own parts only, or all memory. */
static int fill_one(const struct nm_sim_machine *machine, struct nm_rng *rng, bool everywhere,
		    struct nm_sim_workload *ret)
{
	unsigned threads = many_threads(rng);
	double mb = between(rng, 1000, 4000), seconds = between(rng, 15, 25);
	struct nm_sim_program *program =
		add(machine, nm_sim_workload_add(ret, "user"), "stream", threads, seconds, mb);
	if (!program)
		return -ENOMEM;
	program->phases[0].shared_part = everywhere;
	program->phases[0].private_part = !everywhere;
	return 0;
}

/* Each thread touched its own part first and streams over it. */
static int fill_parts(const struct nm_sim_machine *machine, struct nm_rng *rng,
		      struct nm_sim_workload *ret)
{
	return fill_one(machine, rng, false, ret);
}

static int fill_random(const struct nm_sim_machine *machine, struct nm_rng *rng,
		       struct nm_sim_workload *ret)
{
	return fill_one(machine, rng, true, ret);
}

/* Each program saturates a memory controller; most CPUs are idle. */
static int fill_bandwidth(const struct nm_sim_machine *machine, struct nm_rng *rng,
			  struct nm_sim_workload *ret)
{
	for (unsigned u = 0; u < 2; u++) {
		double mb = between(rng, 400, 1600), seconds = between(rng, 5, 10);
		if (!add(machine, nm_sim_workload_add(ret, "user"), any_streaming(rng), 8, seconds,
			 mb))
			return -ENOMEM;
	}
	return 0;
}

static int fill_singles(const struct nm_sim_machine *machine, struct nm_rng *rng,
			struct nm_sim_workload *ret)
{
	for (unsigned u = 0; u < 24; u++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		if (!add_any(machine, user, rng, 1, (struct range){8, 16}, (struct range){50, 400}))
			return -ENOMEM;
		user->spread_s = 10;
	}
	return 0;
}

/* Processes whose threads share all memory, which the first one has written. */
static int fill_shared(const struct nm_sim_machine *machine, struct nm_rng *rng,
		       struct nm_sim_workload *ret)
{
	for (unsigned u = 0; u < 3; u++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		double mb = between(rng, 200, 1000), seconds = between(rng, 10, 20);
		if (!add(machine, user, "table", 4 + (unsigned)nm_rng_below(rng, 3), seconds, mb))
			return -ENOMEM;
		user->spread_s = 5;
	}
	return 0;
}

/* ---- situations in which gathering a program does harm ---- */

static unsigned cores_of_node(const struct nm_sim_machine *machine)
{
	return machine->topology->nr_cpus / machine->topology->nr_nodes;
}

/* One program with a thread for each core of a node. Returns NULL without memory. */
static struct nm_sim_program *add_as_large_as_a_node(const struct nm_sim_machine *machine,
						     struct nm_rng *rng,
						     struct nm_sim_workload *workload)
{
	struct nm_sim_user *user = nm_sim_workload_add(workload, "user");
	double mb = between(rng, 400, 2000), seconds = between(rng, 15, 30);
	const char *name = nm_rng_below(rng, 3) ? any_streaming(rng) : any(rng);
	return add(machine, user, name, cores_of_node(machine), seconds, mb);
}

/* The program starts while three others fill the rest of the machine, and then runs alone. */
static int fill_burst(const struct nm_sim_machine *machine, struct nm_rng *rng,
		      struct nm_sim_workload *ret)
{
	unsigned nodes = machine->topology->nr_nodes;
	if (!add_as_large_as_a_node(machine, rng, ret))
		return -ENOMEM;
	ret->users[0].start_s = between(rng, 0.5, 1.5);
	for (unsigned u = 1; u < nodes; u++)
		if (!add(machine, nm_sim_workload_add(ret, "burst"), "compute",
			 cores_of_node(machine) - (u == 1), between(rng, 1.5, 2.5), 64))
			return -ENOMEM;
	return 0;
}

/* Its first thread has written all memory, of which each thread then uses its part. */
static int fill_master(const struct nm_sim_machine *machine, struct nm_rng *rng,
		       struct nm_sim_workload *ret)
{
	struct nm_sim_program *program = add_as_large_as_a_node(machine, rng, ret);
	if (!program)
		return -ENOMEM;
	program->touch = NM_SIM_TOUCH_MASTER;
	return 0;
}

/* One thread and all threads run in turns. */
static int fill_turns(const struct nm_sim_machine *machine, struct nm_rng *rng,
		      struct nm_sim_workload *ret)
{
	struct nm_sim_program *program = add_as_large_as_a_node(machine, rng, ret);
	if (!program || set_phases(program, 8) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < program->nr_phases; i++) {
		program->phases[i].giga = giga_of(machine, &program->phases[i], between(rng, 2, 4));
		if (i % 2 == 0)
			make_serial(machine, &program->phases[i], between(rng, 0.5, 2),
				    i == 0 ? 1 : 0);
	}
	return 0;
}

/* Its memory is on the node whose memory controller a tenant uses, who is bound to half of the
 * node's CPUs from then on. */
static int fill_channel(const struct nm_sim_machine *machine, struct nm_rng *rng,
			struct nm_sim_workload *ret)
{
	unsigned nodes = machine->topology->nr_nodes;
	unsigned node = (unsigned)nm_rng_below(rng, nodes);
	struct nm_sim_program *program = add_as_large_as_a_node(machine, rng, ret);
	if (!program)
		return -ENOMEM;
	program->touch = NM_SIM_TOUCH_MASTER;
	ret->users[0].start_s = 0.5;
	for (unsigned k = 0; k < nodes; k++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "bound");
		bool is_tenant = k == node;
		if (!add(machine, user, is_tenant ? "stream" : "compute",
			 cores_of_node(machine) / (is_tenant ? 2 : 1), is_tenant ? 20 : 1, 256))
			return -ENOMEM;
		user->placement = NM_SIM_PLACE_DIRECT;
		user->node = (int)k;
		user->start_s = is_tenant ? 1 : 0;
		user->for_ever = is_tenant;
	}
	ret->limit_s = 400;
	return 0;
}

/* One program whose threads, one for each CPU of half of the machine, wait for each other. */
static int fill_lockstep(const struct nm_sim_machine *machine, struct nm_rng *rng,
			 struct nm_sim_workload *ret)
{
	static const char *const waiting[] = {"lu", "bt", "sp", "ua"};
	const char *name = waiting[nm_rng_below(rng, NM_ARRAY_SIZE(waiting))];
	double mb = between(rng, 1000, 4000), seconds = between(rng, 10, 20);
	return add(machine, nm_sim_workload_add(ret, "user"), name,
		   machine->topology->nr_cpus / 2, seconds, mb)
		       ? 0
		       : -ENOMEM;
}

/* A program of a few threads whose memory is larger than a node. */
static int fill_overflow(const struct nm_sim_machine *machine, struct nm_rng *rng,
			 struct nm_sim_workload *ret)
{
	double node_mb = (double)machine->topology->nodes[0].memory_bytes / (1 << 20);
	double mb = between(rng, 1.1, 1.5) * node_mb, seconds = between(rng, 15, 25);
	return add(machine, nm_sim_workload_add(ret, "user"), any_streaming(rng),
		   cores_of_node(machine) - 2, seconds, mb)
		       ? 0
		       : -ENOMEM;
}

/* One program whose threads, one for each CPU of half of the machine, exchange a part of what they
 * access with their neighbours. */
static int exchange(const struct nm_sim_machine *machine, struct nm_rng *rng, double part,
		    struct nm_sim_workload *ret)
{
	double mb = between(rng, 1000, 4000), seconds = between(rng, 15, 25);
	struct nm_sim_program *program =
		add(machine, nm_sim_workload_add(ret, "user"), "stencil",
		    machine->topology->nr_cpus / 2, seconds, mb);
	if (!program)
		return -ENOMEM;
	program->phases[0].neighbour_part = part;
	program->phases[0].private_part = 1 - part;
	return 0;
}

static int fill_exchange(const struct nm_sim_machine *machine, struct nm_rng *rng,
			 struct nm_sim_workload *ret)
{
	return exchange(machine, rng, 0.5, ret);
}

static int fill_quarter(const struct nm_sim_machine *machine, struct nm_rng *rng,
			struct nm_sim_workload *ret)
{
	return exchange(machine, rng, 0.25, ret);
}

static int fill_tenth(const struct nm_sim_machine *machine, struct nm_rng *rng,
		      struct nm_sim_workload *ret)
{
	return exchange(machine, rng, 0.1, ret);
}

#define SERVER .machine = "o6320-4x8"
#define NODE_EACH .a_node_each = true
#define IN_ORDER .in_order = true

const struct judge_scenario judge_scenarios[] = {
	{"users", "four users, two programs of 8 to 16 s each", SERVER, NODE_EACH,
	 .fill = fill_users},
	{"brief", "four users, five programs of 2 to 5 s each", SERVER, NODE_EACH,
	 .fill = fill_brief},
	{"cache", "four users, the page cache full", SERVER, NODE_EACH, .full_page_cache = true,
	 .fill = fill_cache},
	{"gathered", "as users, half of the machine, and the kernel gathers by cache", SERVER,
	 NODE_EACH, .cache_aware = true, .fill = fill_gathered},
	{"crowded", "four users, three threads for two CPUs", SERVER, NODE_EACH,
	 .fill = fill_crowded},
	{"arrivals", "twenty programs of 1 to 8 threads in half a minute", SERVER,
	 .fill = fill_arrivals},
	{"serial", "loads with one thread, computes with eight, alone", SERVER, NODE_EACH, IN_ORDER,
	 .fill = fill_serial},
	{"growth", "three programs whose threads and memory grow", SERVER, NODE_EACH,
	 .fill = fill_growth},
	{"servers", "many mostly idle threads beside programs that compute", SERVER,
	 .fill = fill_servers},
	{"neighbour", "one node filled by a tenant bound to it, on and off", SERVER,
	 .fill = fill_neighbour},
	{"large", "one program of more threads than a node has CPUs", SERVER, IN_ORDER,
	 .fill = fill_large},
	{"parts", "one such program whose threads stream over their own parts", SERVER, IN_ORDER,
	 .fill = fill_parts},
	{"random", "one such program with random accesses to all memory", SERVER, IN_ORDER,
	 .fill = fill_random},
	{"bandwidth", "two programs that each fill a memory controller", .machine = "ring-4x10",
	 IN_ORDER, .fill = fill_bandwidth},
	{"singles", "twenty-four programs of one thread", SERVER, .fill = fill_singles},
	{"shared", "three programs whose threads share all memory", SERVER, NODE_EACH,
	 .fill = fill_shared},
#define SITUATION(name, words, filler)                                                              \
	{name, words ", 15 GB/s", .machine = "ring-4x10", .fill = filler, .is_situation = true},    \
	{name "-104", words ", 104 GB/s", .machine = "mesh-4x20", .fill = filler,                   \
	 .is_situation = true}
	SITUATION("burst", "one as large as a node starts in a burst, then runs alone", fill_burst),
	SITUATION("master", "one whose memory its first thread has written", fill_master),
	SITUATION("turns", "one of one thread and of many in turns", fill_turns),
	SITUATION("channel", "one whose memory is where a bound tenant streams", fill_channel),
#undef SITUATION
	{"lockstep", "one whose threads wait for each other, on half of eight nodes, 15 GB/s",
	 .machine = "ring-8x10", .fill = fill_lockstep, .is_situation = true},
	{"lockstep-104", "the same, 104 GB/s", .machine = "mesh-8x20", .fill = fill_lockstep,
	 .is_situation = true},
	{"overflow", "one whose memory is larger than one of eight nodes, 15 GB/s",
	 .machine = "ring-8x10", .fill = fill_overflow, .is_situation = true},
	{"overflow-104", "the same, 104 GB/s", .machine = "mesh-8x20", .fill = fill_overflow,
	 .is_situation = true},
#define CACHED(name, words, model, filler)                                                          \
	{name "-llc", words ", shared caches", .machine = model "-llc", .fill = filler,             \
	 .is_situation = true}
	CACHED("users", "as users", "o6320-4x8", fill_users),
	CACHED("crowded", "as crowded", "o6320-4x8", fill_crowded),
	CACHED("singles", "as singles", "o6320-4x8", fill_singles),
	CACHED("shared", "as shared", "o6320-4x8", fill_shared),
	CACHED("large", "as large", "o6320-4x8", fill_large),
	CACHED("exchange", "one whose threads exchange data with neighbours", "o6320-4x8",
	       fill_exchange),
	CACHED("exchange-epyc", "the same, eight caches a node", "epyc-2x32", fill_exchange),
	CACHED("quarter", "one whose threads exchange 25 %", "o6320-4x8", fill_quarter),
	CACHED("quarter-epyc", "the same, eight caches a node", "epyc-2x32", fill_quarter),
	CACHED("tenth", "one whose threads exchange 10 %", "o6320-4x8", fill_tenth),
	CACHED("tenth-epyc", "the same, eight caches a node", "epyc-2x32", fill_tenth),
#undef CACHED
};
const size_t judge_scenario_count = NM_ARRAY_SIZE(judge_scenarios);

int judge_fill(const struct judge_scenario *scenario, const struct nm_sim_machine *machine,
	       uint64_t seed, struct nm_sim_workload *ret)
{
	struct nm_rng rng;
	nm_rng_seed(&rng, seed);
	ret->full_page_cache = scenario->full_page_cache;
	return scenario->fill(machine, &rng, ret);
}
