/* SPDX-License-Identifier: MIT */
/* The interface to Scotch, which is loaded when it is used: one policy needs it, and it brings
 * three compression libraries. Each call uses its own context with one thread and a newly seeded
 * generator; otherwise the result would depend on earlier calls and on the environment. */
#include <dlfcn.h>
#include <math.h>
#include <scotch.h>
#include <stdarg.h>
#include <string.h>

#include "hierarchy.h"
#include "policy/policy.h"

#define LOAD_UNIT 100 /* load of one CPU */
#define LOAD_MAX (16 * LOAD_UNIT)
#define WEIGHTS_MAX (1U << 29) /* Scotch sums weights in 32 bits */
#define IMBALANCE 0.05	       /* by how much a CPU may exceed its share */

/* Scotch's own versions write to stderr; its return values are sufficient. The program exports
 * these, so that they come first. */
void SCOTCH_errorProg(const char *name)
{
	(void)name;
}

void SCOTCH_errorPrint(const char *format, ...)
{
	(void)format;
}

void SCOTCH_errorPrintW(const char *format, ...)
{
	(void)format;
}

/* The functions of Scotch that are called. */
#define CALLS                                                                                      \
	CALL(stratExit)                                                                            \
	CALL(archExit)                                                                             \
	CALL(graphExit)                                                                            \
	CALL(contextExit)                                                                          \
	CALL(contextInit)                                                                          \
	CALL(graphInit)                                                                            \
	CALL(archInit)                                                                             \
	CALL(stratInit)                                                                            \
	CALL(numSizeof)                                                                            \
	CALL(contextRandomClone)                                                                   \
	CALL(contextThreadSpawn)                                                                   \
	CALL(contextRandomSeed)                                                                    \
	CALL(contextRandomReset)                                                                   \
	CALL(archTleaf)                                                                            \
	CALL(archSub)                                                                              \
	CALL(stratGraphMapBuild)                                                                   \
	CALL(graphBuild)                                                                           \
	CALL(contextBindGraph)                                                                     \
	CALL(graphMap)

struct scotch {
#define CALL(name) __typeof__(&SCOTCH_##name) name;
	CALLS
#undef CALL
};

static const struct {
	const char *name;
	size_t offset;
} calls[] = {
#define CALL(name) {"SCOTCH_" #name, offsetof(struct scotch, name)},
	CALLS
#undef CALL
};

/* It stays loaded: a second call only looks up the functions. Returns 0, or -ELIBACC with a
 * sentence. */
static int load(const char *library, struct scotch *ret, char *error, size_t size)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!handle) {
		(void)snprintf(error, size, "%s", dlerror());
		return -ELIBACC;
	}
	for (size_t i = 0; i < NM_ARRAY_SIZE(calls); i++) {
		void *function = dlsym(handle, calls[i].name);
		if (!function) {
			(void)snprintf(error, size, "%s contains no %s", library, calls[i].name);
			(void)dlclose(handle);
			return -ELIBACC;
		}
		memcpy((char *)ret + calls[i].offset, &function, sizeof(function));
	}
	(void)dlclose(handle);
	/* Builds of Scotch use integers of different widths under the same library name. */
	if (ret->numSizeof() == (int)sizeof(SCOTCH_Num))
		return 0;
	(void)snprintf(error, size, "%s has integers of another width", library);
	return -ELIBACC;
}

int nm_kmaf_check(const char *library, char *error, size_t size)
{
	struct scotch scotch;

	return load(library ? library : NM_SCOTCH_SONAME, &scotch, error, size);
}

/* The graph in Scotch's format; the arrays must outlive it. */
struct arrays {
	SCOTCH_Num *first, *partner, *weight, *load, *part;
};

static void free_arrays(struct arrays *arrays)
{
	free(arrays->first);
	free(arrays->partner);
	free(arrays->weight);
	free(arrays->load);
	free(arrays->part);
}

static void fill(const struct nm_task *task, unsigned idle, struct arrays *arrays)
{
	const struct nm_affinity_graph *graph = task->graph;
	/* The number of bits by which weights must be shifted for their sum to fit. */
	uint64_t sum = 0;
	unsigned bits = 0;

	for (uint32_t i = 0; i < graph->first[graph->nr_threads]; i++)
		sum += graph->weight[i];
	while (sum >> bits > WEIGHTS_MAX)
		bits++;

	for (size_t i = 0; i < graph->nr_threads; i++) {
		double load = nm_task_load(task, i) * LOAD_UNIT;
		arrays->first[i] = (SCOTCH_Num)graph->first[i];
		arrays->load[i] = (SCOTCH_Num)fmin(fmax(load, 1), LOAD_MAX);
	}
	for (size_t i = graph->nr_threads; i <= graph->nr_threads + idle; i++) {
		arrays->first[i] = (SCOTCH_Num)graph->first[graph->nr_threads];
		arrays->load[i] = LOAD_UNIT;
	}
	for (uint32_t i = 0; i < graph->first[graph->nr_threads]; i++) {
		uint32_t weight = graph->weight[i] >> bits;
		arrays->partner[i] = (SCOTCH_Num)graph->partner[i];
		arrays->weight[i] = weight ? (SCOTCH_Num)weight : 1;
	}
}

/* All Scotch objects, for a complete cleanup after any failure. */
struct session {
	struct scotch scotch;
	SCOTCH_Context context;
	SCOTCH_Graph graph, bound;
	SCOTCH_Arch whole, present;
	SCOTCH_Strat strategy;
	unsigned begun; /* number of initialized objects, in the order of init_all() */
};

/* Frees the objects that were initialized. */
static void end_session(struct session *session)
{
	if (session->begun > 4)
		session->scotch.stratExit(&session->strategy);
	if (session->begun > 3)
		session->scotch.archExit(&session->present);
	if (session->begun > 2)
		session->scotch.archExit(&session->whole);
	if (session->begun > 1)
		session->scotch.graphExit(&session->graph);
	if (session->begun > 0)
		session->scotch.contextExit(&session->context);
	session->begun = 0;
}

static bool init_all(struct session *session)
{
	session->begun = 0;
	if (session->scotch.contextInit(&session->context))
		return false;
	session->begun++;
	if (session->scotch.graphInit(&session->graph))
		return false;
	session->begun++;
	if (session->scotch.archInit(&session->whole))
		return false;
	session->begun++;
	if (session->scotch.archInit(&session->present))
		return false;
	session->begun++;
	if (session->scotch.stratInit(&session->strategy))
		return false;
	session->begun++;
	return true;
}

/* On failure nothing is left to free. */
static int init_session(struct session *session, uint32_t seed)
{
	char error[256];
	int r = load(NM_SCOTCH_SONAME, &session->scotch, error, sizeof(error));
	if (r < 0)
		return r;
	if (!init_all(session) || session->scotch.contextRandomClone(&session->context) ||
	    session->scotch.contextThreadSpawn(&session->context, 1, NULL)) {
		end_session(session);
		return -ENOMEM;
	}
	session->scotch.contextRandomSeed(&session->context, (SCOTCH_Num)(seed & INT32_MAX));
	session->scotch.contextRandomReset(&session->context);
	return 0;
}

/* The cost of an arc that crosses a level: the mean distance between nodes, then as in
 * nm_mapping_distance(). */
static SCOTCH_Num crossing_cost(const struct nm_topology *topology, unsigned level)
{
	static const SCOTCH_Num within[NM_LEVELS] = {0, NM_MAPPING_LOCAL, NM_MAPPING_CACHE,
						     NM_MAPPING_CORE};
	uint64_t sum = 0, pairs = 0;

	if (level > 0)
		return within[level];
	for (unsigned a = 0; a < topology->nr_nodes; a++)
		for (unsigned b = 0; b < topology->nr_nodes; b++)
			if (a != b) {
				sum += nm_topology_distance(topology, (int)a, (int)b);
				pairs++;
			}
	return pairs ? (SCOTCH_Num)(sum / pairs) : 1;
}

/* Levels without branches are omitted (section 3.4.1). */
static int make_architecture(struct session *session, const struct nm_hierarchy *tree)
{
	SCOTCH_Num size[NM_LEVELS], cost[NM_LEVELS], levels = 0;

	for (unsigned level = 0; level < NM_LEVELS; level++) {
		if (tree->arity[level] < 2)
			continue;
		size[levels] = (SCOTCH_Num)tree->arity[level];
		cost[levels++] = crossing_cost(tree->topology, level);
	}
	return session->scotch.archTleaf(&session->whole, levels, size, cost) ? -ENOMEM : 0;
}

/* Restricts the architecture to the existing leaves, if the machine is irregular or some CPUs may
 * not be used. */
static int keep_present(struct session *session, const struct nm_hierarchy *tree)
{
	nm_autofree SCOTCH_Num *places = nm_must(calloc(tree->nr_leaves, sizeof(*places)));

	for (unsigned i = 0; i < tree->nr_leaves; i++)
		places[i] = (SCOTCH_Num)tree->place[i];
	return session->scotch.archSub(&session->present, &session->whole,
				       (SCOTCH_Num)tree->nr_leaves, places)
		       ? -ENOMEM
		       : 0;
}

static int map(struct session *session, const struct nm_task *task, unsigned idle,
	       struct arrays *arrays)
{
	const struct nm_hierarchy *tree = task->hierarchy;
	SCOTCH_Num threads = (SCOTCH_Num)(task->graph->nr_threads + idle);
	bool regular = tree->nr_leaves == tree->width[0] * tree->arity[0];

	int r = make_architecture(session, tree);
	if (r == 0 && !regular)
		r = keep_present(session, tree);
	if (r < 0)
		return r;
	if (session->scotch.stratGraphMapBuild(&session->strategy, SCOTCH_STRATRECURSIVE,
					       (SCOTCH_Num)tree->nr_leaves, IMBALANCE) ||
	    session->scotch.graphBuild(&session->graph, 0, threads, arrays->first,
				       arrays->first + 1, arrays->load, NULL,
				       arrays->first[threads], arrays->partner, arrays->weight) ||
	    session->scotch.contextBindGraph(&session->context, &session->graph, &session->bound))
		return -ENOMEM;
	r = session->scotch.graphMap(&session->bound, regular ? &session->whole : &session->present,
				     &session->strategy, arrays->part)
		    ? -ENOMEM
		    : 0;
	session->scotch.graphExit(&session->bound);
	return r;
}

int nm_scotch_map(struct nm_task *task, uint32_t seed, unsigned idle)
{
	nm_auto(free_arrays) struct arrays arrays = {0};
	struct session session;
	size_t threads = task->graph->nr_threads;

	if (task->hierarchy->nr_leaves == 1 || threads == 0) {
		for (size_t i = 0; i < threads; i++)
			task->leaf[i] = 0;
		return 0;
	}
	size_t vertices = threads + idle + 1;
	size_t arcs = (size_t)task->graph->first[threads] + 1;
	arrays.first = nm_must(calloc(vertices, sizeof(SCOTCH_Num)));
	arrays.load = nm_must(calloc(vertices, sizeof(SCOTCH_Num)));
	arrays.part = nm_must(calloc(vertices, sizeof(SCOTCH_Num)));
	arrays.partner = nm_must(calloc(arcs, sizeof(SCOTCH_Num)));
	arrays.weight = nm_must(calloc(arcs, sizeof(SCOTCH_Num)));
	fill(task, idle, &arrays);
	int r = init_session(&session, seed);
	if (r < 0)
		return r;
	r = map(&session, task, idle, &arrays);
	end_session(&session);
	for (size_t i = 0; i < threads && r == 0; i++)
		task->leaf[i] = (int)arrays.part[i];
	return r;
}
