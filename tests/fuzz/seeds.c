// SPDX-License-Identifier: MIT
/* seeds FOLDER: writes initial inputs to FOLDER/TARGET/NUMBER in the format of each target. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../support/machine.h"
#include "../support/spe_records.h"
#include "../unit/fixture.h"
#include "platform/event.h"
#include "platform/helper.h"
#include "platform/worker.h"
#include "texts.h"

#define RING_BYTES 4096U

struct seed {
	char bytes[2 * RING_BYTES];
	size_t size;
};

static void add(struct seed *seed, const void *bytes, size_t size)
{
	if (seed->size + size > sizeof(seed->bytes))
		abort();
	memcpy(seed->bytes + seed->size, bytes, size);
	seed->size += size;
}

static void add_text(struct seed *seed, const char *text)
{
	add(seed, text, strlen(text));
}

static void write_seed(const char *folder, const char *target, unsigned number,
		       const struct seed *seed)
{
	char path[FIXTURE_PATH];

	fixture_directory(folder, target);
	snprintf(path, sizeof(path), "%s/%s/%u", folder, target, number);
	FILE *file = fopen(path, "we");
	if (!file || fwrite(seed->bytes, 1, seed->size, file) != seed->size || fclose(file) != 0)
		abort();
}

/* ---- texts, some with a prefix that states their use ---- */

static void write_texts(const char *folder)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct seed seed = {0};
		add(&seed, texts[i].before, texts[i].nr_before);
		add_text(&seed, texts[i].text);
		write_seed(folder, texts[i].target, (unsigned)i, &seed);
	}
}

/* The shipped configuration with every setting uncommented. */
static void write_config(const char *folder)
{
	struct seed seed = {0};
	char line[256];
	unsigned number = 1000;
	FILE *file = fopen(NM_SOURCE_DIR "/conf/numa-migrd.conf", "re");

	while (file && fgets(line, sizeof(line), file)) {
		const char *text = line[0] == '#' ? line + 1 : line;
		if (seed.size + strlen(text) > RING_BYTES) {
			write_seed(folder, "config", number++, &seed);
			seed.size = 0;
		}
		add_text(&seed, text);
	}
	if (!file)
		abort();
	fclose(file);
	write_seed(folder, "config", number, &seed);
}

/* ---- records and packets ---- */

static void put_records(struct record_ring *ring)
{
	static const uint32_t ids[4] = {10, 10, 12, 11};
	const struct record_access access = {.id = 1000 + NM_EVENT_MEMORY,
					     .pid = 10,
					     .tid = 11,
					     .time = 6,
					     .address = 0x7000,
					     .weight = 300,
					     .data_src = 0x68100142,
					     .physical = 0x200000};

	record_run(ring, 1000 + NM_EVENT_CLOCK, 10, 11, 5);
	record_fault(ring, 1000 + NM_EVENT_FAULT_MIN, 10, 11, 5, 0x7000, 0x200000);
	record_memory(ring, &access);
	record_fork_exit(ring, true, ids, 7);
	record_comm(ring, true, 10, 11, "a b", 8);
	record_fork_exit(ring, false, ids, 9);
	record_lost(ring, 1000, 3);
	record_lost_samples(ring, 1000, 3);
	record_throttle(ring, true, 1000);
}

/* The offset at which the ring begins, and its records. */
static void write_ring(const char *folder)
{
	static const uint64_t tails[] = {0, RING_BYTES - 24, 1ULL << 40};
	uint8_t bytes[RING_BYTES] = {0};
	struct record_ring ring = {.bytes = bytes, .size = sizeof(bytes)};

	put_records(&ring);
	for (unsigned i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct seed seed = {0};
		add(&seed, &tails[i], sizeof(tails[i]));
		add(&seed, bytes, ring.head);
		write_seed(folder, "ring", i, &seed);
	}
}

static void write_spe(const char *folder)
{
	static const uint8_t packets = 0, areas = 1;
	const struct spe_load load = {.address = 0x7000, .ticks = 40, .context = 11};
	uint8_t bytes[1024] = {0}, piece[SPE_LOAD_BYTES];
	struct record_ring ring = {.bytes = bytes, .size = sizeof(bytes)};
	struct seed alone = {0}, both = {0};
	uint64_t place = 0;

	spe_load_write(piece, &load);
	add(&alone, &packets, 1);
	add(&alone, &place, sizeof(place));
	add(&alone, piece, sizeof(piece));
	record_itrace_start(&ring, 10, 11, 900);
	record_switch(&ring, false, 10, 11, 1000);
	record_aux(&ring, 0, SPE_LOAD_BYTES, 0, 2000);
	record_switch(&ring, true, 10, 11, 2100);
	add(&both, &areas, 1);
	add(&both, &place, sizeof(place));
	add(&both, bytes, sizeof(bytes));
	add(&both, piece, sizeof(piece));
	write_seed(folder, "spe", 0, &alone);
	write_seed(folder, "spe", 1, &both);
}

/* ---- requests and calls ---- */

static void write_helper(const char *folder)
{
	static const struct nm_helper_request requests[] = {
		{.version = NM_HELPER_VERSION, .act = NM_HELPER_OPEN_EVENT, .period = 100},
		{.version = NM_HELPER_VERSION, .act = NM_HELPER_NUMA_BALANCING, .value = 1},
		{.version = NM_HELPER_VERSION, .act = NM_HELPER_NUMA_BALANCING, .value = -1},
	};
	for (uint8_t config = 0; config < 2; config++)
		for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
			struct seed seed = {0};
			add(&seed, &config, 1);
			add(&seed, &requests[i], sizeof(requests[i]));
			add_text(&seed, "0 1\n");
			write_seed(folder, "helper", config * 10 + i, &seed);
		}
}

/* Each request with two pages or ranges. */
static void write_worker(const char *folder)
{
	static const uint64_t addresses[] = {0x7f0000000000, 0x7f0000001000};
	static const struct nm_mappings_order mappings = {.budget_ns = 1000000, .begin = 1};
	static struct nm_units_order units = {
		.count = 2,
		.pages_most = 512,
		.nr_rooms = 1,
		.rooms = {{.node = 1, .memory = 1 << 30}},
		.units = {{0x7f0000200000, 512, NM_UNIT_BLOCK, 0, 1, 0, 0},
			  {0x7f0000600000, 3, NM_UNIT_BASE, -1, 1, 0, 0}},
	};
	static struct nm_ranges_order ranges = {
		.count = 2,
		.page_bytes = 4096,
		.pages_most = 512,
		.bytes_most = 1 << 20,
		.room = {.node = 1, .memory = 1 << 30},
		.ranges = {{0x7f0000000000, 0x7f0000004000, 0},
			   {0x7f0000200000, 0x7f0000600000, 7}},
	};
	const struct {
		const void *bytes;
		size_t size;
	} arguments[NM_WORKER_IDENTIFY + 1] = {
		[NM_WORKER_WHERE] = {addresses, sizeof(addresses)},
		[NM_WORKER_MAPPINGS] = {&mappings, sizeof(mappings)},
		[NM_WORKER_UNITS] = {&units, NM_UNITS_ORDER_BYTES(2)},
		[NM_WORKER_RANGES] = {&ranges, NM_RANGES_ORDER_BYTES(2)},
	};

	for (uint32_t act = NM_WORKER_HELLO; act <= NM_WORKER_IDENTIFY; act++) {
		const struct nm_worker_request request = {.version = NM_WORKER_VERSION,
							  .act = act,
							  .pid = 100,
							  .count = act == NM_WORKER_WHERE ? 2 : 0,
							  .start_ticks = 4242};
		struct seed seed = {0};
		add(&seed, &request, sizeof(request));
		if (arguments[act].size)
			add(&seed, arguments[act].bytes, arguments[act].size);
		write_seed(folder, "worker", act, &seed);
	}
}

static void write_document(const char *folder)
{
	static const char *const documents[] = {
		"{\"status\":{\"version\":\"0.1.0\",\"paused\":false,\"local_share\":0.5}}",
		"{\"status\":{},\"processes\":[{\"pid\":1,\"comm\":\"a\",\"state\":\"managed\","
		"\"memory_shares\":[0.5,0.5]},{\"state\":\"ignored\"}],\"rows_left_out\":7}",
		"{\"status\":{},\"threads\":[{\"tid\":1,\"leased\":true}],\"nodes\":[{\"node\":0,"
		"\"load\":0.5}]}",
		"{\"status\":{},\"decisions\":[{\"decision\":1,\"time_usec\":1700000000000000,"
		"\"from_node\":0,\"to_node\":1,\"before\":0.1,\"figure\":\"local_share\","
		"\"verdict\":\"improved\"}]}",
		"{\"status\":{\"a\\u001b[31m\":1,\"summary\":\"\\u009b\\n\\u202e\"},\"decisions\":["
		"{\"decision\":1,\"kind\":\"\\u001bc\",\"policy\":\"\\u0007\",\"fields\":"
		"\"A=1\\nB=\\u001b\"}],\"trial\":{\"result\":\"\\u001b[2J\",\"forecast\":\"\\r\"}}",
	};

	for (unsigned i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		struct seed seed = {0};
		add(&seed, documents[i], strlen(documents[i]));
		write_seed(folder, "document", i, &seed);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2 || (mkdir(argv[1], 0755) < 0 && errno != EEXIST))
		return 1;
	write_texts(argv[1]);
	write_config(argv[1]);
	write_ring(argv[1]);
	write_spe(argv[1]);
	write_helper(argv[1]);
	write_worker(argv[1]);
	write_document(argv[1]);
	return 0;
}
