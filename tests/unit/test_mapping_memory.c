/* SPDX-License-Identifier: MIT */
/* Scotch may lack memory for any of its objects: those that were created are freed. These functions
 * replace those of the library, when they are looked up (--wrap=dlsym). */
#include "../support/test.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "../../src/policy/mapping/mapping.h"
#include "../support/machine.h"

#define THREADS 8U
#define CALLS_MOST 32U

static unsigned calls, fail_at; /* 0: none */
static bool counting;
static int made;

static void *library; /* of the last look-up */

void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);

static void *real(const char *name)
{
	void *function = __real_dlsym(library, name);
	assert_non_null(function);
	return function;
}

static bool fails(void)
{
	return counting && ++calls == fail_at;
}

static int make(const char *name, void *object)
{
	int (*function)(void *);
	if (fails())
		return 1;
	*(void **)&function = real(name);
	int r = function(object);
	made += r == 0;
	return r;
}

static void unmake(const char *name, void *object)
{
	void (*function)(void *);
	*(void **)&function = real(name);
	made--;
	function(object);
}

#define PAIR(what)                                                                                 \
	int SCOTCH_##what##Init(void *object);                                                     \
	void SCOTCH_##what##Exit(void *object);                                                    \
	int SCOTCH_##what##Init(void *object)                                                      \
	{                                                                                          \
		return make("SCOTCH_" #what "Init", object);                                       \
	}                                                                                          \
	void SCOTCH_##what##Exit(void *object)                                                     \
	{                                                                                          \
		unmake("SCOTCH_" #what "Exit", object);                                            \
	}

PAIR(context)
PAIR(graph)
PAIR(arch)
PAIR(strat)

int SCOTCH_contextRandomClone(void *context);
int SCOTCH_contextRandomClone(void *context)
{
	int (*function)(void *);
	if (fails())
		return 1;
	*(void **)&function = real("SCOTCH_contextRandomClone");
	return function(context);
}

/* Creates the graph that it binds. */
int SCOTCH_contextBindGraph(void *context, const void *graph, void *bound);
int SCOTCH_contextBindGraph(void *context, const void *graph, void *bound)
{
	int (*function)(void *, const void *, void *);
	if (fails())
		return 1;
	*(void **)&function = real("SCOTCH_contextBindGraph");
	int r = function(context, graph, bound);
	made += r == 0;
	return r;
}

/* The runtime of a sanitizer also looks up names, before it can check any access. */
__attribute__((no_sanitize("address", "undefined"))) void *__wrap_dlsym(void *handle,
									const char *name)
{
#define OURS(function)                                                                             \
	{                                                                                          \
#function, (void (*)(void))(function)                                              \
	}
	static const struct {
		const char *name;
		void (*function)(void);
	} ours[] = {
		OURS(SCOTCH_contextInit),	 OURS(SCOTCH_contextExit),
		OURS(SCOTCH_graphInit),		 OURS(SCOTCH_graphExit),
		OURS(SCOTCH_archInit),		 OURS(SCOTCH_archExit),
		OURS(SCOTCH_stratInit),		 OURS(SCOTCH_stratExit),
		OURS(SCOTCH_contextRandomClone), OURS(SCOTCH_contextBindGraph),
	};
	if (!counting)
		return __real_dlsym(handle, name);
	library = handle;
	for (size_t i = 0; i < NM_ARRAY_SIZE(ours); i++)
		if (strcmp(ours[i].name, name) == 0)
			return *(void *const *)&ours[i].function;
	return __real_dlsym(handle, name);
}

TEST(every_failure_frees_all_memory)
{
	struct nm_config *config;
	nm_auto(nm_affinity_freep) struct nm_affinity *affinity = NULL;
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = NULL;
	nm_auto(nm_topology_freep) struct nm_topology *topology = machine_topology(2, 8);
	hwloc_bitmap_t everywhere = hwloc_bitmap_alloc_full();
	struct nm_mapping_thread threads[THREADS];
	uint32_t tids[THREADS];
	uint16_t ids[THREADS];
	unsigned failed = 0;
	assert_int_equal(nm_config_default(&config), 0);
	nm_affinity_new(config, &affinity);
	for (uint32_t i = 0; i < THREADS; i++) {
		tids[i] = 100 + i;
		threads[i] =
			(struct nm_mapping_thread){.cpu = (int)i, .load = 1, .allowed = everywhere};
		assert_int_equal(nm_affinity_join(affinity, tids[i], 0, &ids[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		for (unsigned times = 0; times < 20; times++)
			nm_affinity_share(affinity, ids[i], ids[(i + 4) % THREADS]);
	nm_affinity_graph(affinity, tids, THREADS, 16, &graph);
	counting = true;
	for (fail_at = 1; fail_at < CALLS_MOST; fail_at++) {
		struct nm_mapping *mapping = NULL;
		calls = 0;
		made = 0;
		int r = nm_mapping_compute(topology, graph, threads, 0.1, 7, &mapping);
		assert_int_equal(made, 0);
		failed += r < 0;
		nm_mapping_free(mapping);
		if (calls < fail_at)
			break;
	}
	counting = false;
	assert_in_range(failed, 6, CALLS_MOST);
	hwloc_bitmap_free(everywhere);
	nm_config_free(config);
}

RUN_TESTS()
