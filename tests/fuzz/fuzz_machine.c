// SPDX-License-Identifier: MIT
// SECURITY: proc-sys
/* Descriptions of the machine in /sys and /proc: CPU, nodes, memory, zones, and terms of a PMU. */
#include "../../src/mover/mover_internal.h"
#include "../../src/platform/pmu.h"
#include "../../src/topology/sysfs.h"
#include "../support/machine.h"
#include "folder.h"
#include "platform/event.h"
#include "numa-migrd/proc.h"

#define NODES 4U
#define PMU "sys/bus/event_source/devices/cpu"

static void parse_texts(const char *text)
{
	struct nm_cpu_identity identity;
	struct nm_node_memory memory;

	if (nm_cpu_identity_parse(text, &identity) == 0)
		FUZZ_REQUIRE(nm_event_table_for(&identity));
	(void)nm_node_memory_parse(text, &memory);
	(void)nm_huge_free_parse(text, 1);
	(void)nm_reclaim_parse(text);
}

static void parse_zones(struct fuzz_input *input)
{
	nm_auto(nm_physmap_freep) struct nm_physmap *map = NULL;
	struct nm_topology *topology = machine_topology(NODES, NODES);
	uint64_t address = fuzz_u64(input);

	FUZZ_REQUIRE(topology);
	folder_write("proc/zoneinfo", input->data, input->size);
	folder_write("sys/devices/system/memory/block_size_bytes", input->data,
		     input->size < 17 ? input->size : 17);
	int r = nm_physmap_load(topology, folder_path, &map);
	FUZZ_REQUIRE(r == 0 || r == -ENODATA);
	if (map) {
		int node = nm_physmap_node(map, address);
		FUZZ_REQUIRE(node >= -1 && node < (int)NODES);
	}
	nm_topology_free(topology);
}

static void parse_lists(const struct fuzz_input *input)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	folder_write("list", input->data, input->size);
	folder_write("sys/devices/system/node/node0/cpumap", input->data, input->size);
	(void)nm_sysfs_add_list(folder(), "list", set);
	(void)nm_sysfs_node_cpus(folder(), 0, set);
	hwloc_bitmap_free(set);
}

/* A format, an event of the PMU, and the event that root configures. */
static void parse_pmu(struct fuzz_input *input)
{
	struct nm_event_word word = {0};
	char *format = fuzz_piece(input), *event = fuzz_piece(input), *type = fuzz_piece(input);
	char *text = fuzz_piece(input);

	folder_write(PMU "/format/event", format, strlen(format));
	folder_write(PMU "/events/loads", event, strlen(event));
	folder_write(PMU "/type", type, strlen(type));
	if (nm_pmu_parse(folder(), text, &word) == 0)
		FUZZ_REQUIRE(strncmp(word.name, text, sizeof(word.name) - 1) == 0);
	free(format), free(event), free(type), free(text);
}

/* Lists the events of a CPU with this /proc/cpuinfo, and looks one up by this name. */
static void list_events(struct fuzz_input *input)
{
	struct nm_event_selection selection = {.load_latency = 30};
	struct nm_event_list list;

	selection.source = (enum nm_memory_source)(fuzz_byte(input) % NM_MEMORY_SOURCE_MAX);
	selection.pmu = selection.source == NM_MEMORY_PMU ? "cpu/loads/" : NULL;
	char *event = selection.source == NM_MEMORY_EVENT ? fuzz_piece(input) : NULL;
	selection.event = event;
	folder_write("proc/cpuinfo", input->data, input->size);
	if (nm_event_list_read(folder(), &selection, NM_EVENT_KIND_MAX, &list) == 0)
		FUZZ_REQUIRE(list.count <= NM_EVENT_LIST_MAX);
	free(event);
}

static void make_folders(void)
{
	static const char *const below[] = {"proc",
					    "sys/devices/system/memory",
					    "sys/devices/system/node/node0/memory1",
					    "sys/devices/system/node/node2/memory7",
					    PMU "/format",
					    PMU "/events"};
	static bool made;

	for (size_t i = 0; !made && i < NM_ARRAY_SIZE(below); i++) {
		(void)folder();
		fixture_directory(folder_path, below[i]);
	}
	made = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};

	make_folders();
	switch (fuzz_byte(&input) % 5) {
	case 0: {
		char *text = fuzz_text(&input);
		parse_texts(text);
		free(text);
		break;
	}
	case 1:
		parse_zones(&input);
		break;
	case 2:
		parse_lists(&input);
		break;
	case 3:
		parse_pmu(&input);
		break;
	default:
		list_events(&input);
	}
	return 0;
}
