/* SPDX-License-Identifier: MIT */
#include "replay_seeds.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/recording/block.h"
#include "../unit/fixture.h"
#include "numa-migrd/recording.h"
#include "numa-migrd/sim.h"

#define NODES 2U
#define CPUS 4U

static const char workload_text[] = "users = ( { threads = 3; programs = ( \"lu\" ); }, { threads "
				    "= 2; programs = ( \"sp\" ); } );"
				    "limit_s = 6.0;";

#define EAGER "targets = { min_cpu_percent = 0.0; min_rss_mb = 1; };"
#define AT_ONCE "home_share = 0.0; warmup_s = 0.0; young_s = 0.0; quiet_s = 0.0; "

static const char *const kinds[] = {
	EAGER "threads = { policy = \"lbma\"; n = 4; gate = \"paper\"; " AT_ONCE "};",
	EAGER "threads = { policy = \"imar2\"; " AT_ONCE "};",
	EAGER "threads = { policy = \"kmaf\"; " AT_ONCE
	       "}; pages = { policy = \"exclusivity\"; };",
	EAGER "threads = { policy = \"balance\"; " AT_ONCE "};",
};

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "replay seeds: %s\n", what);
	abort();
}

static void simulate(int fd, const char *text)
{
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	const struct nm_sim_options options = {.seed = 3};
	const struct nm_simulate_output output = {.record_fd = fd, .config = text};
	struct nm_sim_workload workload;
	struct nm_config *config;
	struct nm_simulated done;
	char error[256] = "";

	int r = nm_config_parse("seed", text, strlen(text), &errors, &config);
	require(r == 0, errors.count ? errors.text[0] : "configuration");
	require(nm_sim_machine_regular(NODES, CPUS, &machine) == 0, "machine");
	r = nm_sim_workload_parse("seed", workload_text, strlen(workload_text), error,
				  sizeof(error), &workload);
	require(r == 0, error);
	require(nm_simulate(machine, &workload, &options, config, &output, &done) == 0,
		"simulation");
	nm_sim_workload_clear(&workload);
	nm_config_free(config);
}

/* Concatenates the contents of all blocks of a file. */
static void unpack_all(int fd, struct nm_bytes *ret)
{
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *file = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	struct nm_block_head head;

	require(file != MAP_FAILED, "mmap");
	for (off_t at = NM_FILE_HEAD; at + NM_BLOCK_HEAD <= size;
	     at += NM_BLOCK_HEAD + (off_t)head.stored) {
		struct nm_bytes contents = {0};
		require(nm_block_head_read(file + at, &head) == 0, "head");
		require(nm_block_unpack(&head, file + at + NM_BLOCK_HEAD, &contents) == 0, "block");
		nm_put_bytes(ret, contents.data, contents.used);
		nm_bytes_clear(&contents);
	}
	require(!ret->failed, "memory");
	munmap(file, (size_t)size);
}

void replay_seeds_write(const char *folder)
{
	fixture_directory(folder, "replay");
	for (unsigned i = 0; i < NM_ARRAY_SIZE(kinds); i++) {
		char path[FIXTURE_PATH];
		struct nm_bytes seed = {0};
		int fd = memfd_create("seed", MFD_CLOEXEC);

		simulate(fd, kinds[i]);
		unpack_all(fd, &seed);
		close(fd);
		snprintf(path, sizeof(path), "%s/replay/%u", folder, i);
		FILE *file = fopen(path, "we");
		require(file && fwrite(seed.data, 1, seed.used, file) == seed.used &&
				fclose(file) == 0,
			path);
		nm_bytes_clear(&seed);
	}
}
