// SPDX-License-Identifier: MIT
/* A machine to simulate, as hwloc has exported it. */
#include "folder.h"
#include "numa-migrd/sim.h"

#define CPUS_MOST 256U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	struct nm_topology *topology = NULL;
	char path[FIXTURE_PATH], error[256] = "";

	folder_write("machine.xml", data, size);
	snprintf(path, sizeof(path), "%s/machine.xml", folder_path);
	const struct nm_topology_source source = {.xml_path = path};
	int r = nm_topology_load(&source, error, sizeof(error), &topology);
	FUZZ_REQUIRE((r == 0) == (topology != NULL) && (r == 0 || error[0]));
	if (!topology)
		return 0;
	if (topology->nr_cpus > CPUS_MOST || nm_sim_machine_of(topology, &machine) < 0)
		nm_topology_free(topology);
	return 0;
}
