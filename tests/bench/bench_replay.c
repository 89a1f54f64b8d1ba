/* SPDX-License-Identifier: MIT */
/*
 * Reading a recording back into the metrics. replay_samples_per_s: half of them runs, half accesses
 * with address, latency and node, of 256 threads on 64 CPUs and four nodes, emptied from the rings
 * by 20,000; file, checksum, decoding and counting are in it. replay_read_per_s: without the
 * counting. recording_bytes_per_sample.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "../support/machine.h"
#include "bench.h"
#include "numa-migrd/metrics.h"
#include "numa-migrd/recording.h"
#include "numa-migrd/rng.h"

#define NODES 4U
#define CPUS 64U
#define THREADS 256U
#define BATCH 20000U
#define BATCHES 100U
#define REPETITIONS 5U

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench: %s: %d\n", what, r);
	exit(EXIT_FAILURE);
}

static struct nm_sample draw(struct nm_rng *rng, uint64_t time_ns)
{
	uint32_t thread = (uint32_t)nm_rng_below(rng, THREADS);
	struct nm_sample sample = {
		.kind = NM_EVENT_CYCLES,
		.pid = 1000 + thread / 64 * 100,
		.tid = 1000 + thread,
		.cpu = thread % CPUS,
		.time_ns = time_ns,
	};
	if (nm_rng_below(rng, 2))
		return sample;
	sample.kind = NM_EVENT_MEMORY;
	sample.address = 0x7f0000000000 + nm_rng_below(rng, 1 << 30);
	sample.home = 1 + (uint32_t)nm_rng_below(rng, NODES);
	sample.page_bytes = 4096;
	sample.latency_cycles = 100 + (uint32_t)nm_rng_below(rng, 400);
	sample.level = NM_LEVEL_DRAM;
	return sample;
}

static void write_recording(int fd)
{
	const struct nm_recording_options options = {0};
	static struct nm_sample samples[BATCH];
	struct nm_recorder_writer *writer;
	struct nm_rng rng;
	nm_rng_seed(&rng, 1);
	check(nm_recording_create(dup(fd), &options, &writer), "create");
	for (unsigned i = 0; i < BATCHES; i++) {
		struct nm_recorded record = {.kind = NM_RECORDED_SAMPLES,
					     .samples = {.samples = samples, .nr_samples = BATCH}};
		for (unsigned k = 0; k < BATCH; k++)
			samples[k] = draw(&rng, (uint64_t)(i * BATCH + k) * 1000);
		check(nm_recording_add(writer, &record, NODES), "add");
	}
	nm_recording_close(writer);
}

static double read_once(int fd, struct nm_metrics *metrics)
{
	char error[256];
	struct nm_recording *recording;
	struct nm_recorded record;
	double before_ns = bench_cpu_ns();
	int r;
	check(nm_recording_open(dup(fd), error, sizeof(error), &recording), "open");
	while ((r = nm_recording_next(recording, &record)) > 0)
		for (size_t i = 0; metrics && i < record.samples.nr_samples; i++)
			nm_metrics_add(metrics, &record.samples.samples[i]);
	check(r, "read");
	nm_recording_free(recording);
	return (double)BATCH * BATCHES / ((bench_cpu_ns() - before_ns) / 1e9);
}

int main(void)
{
	double counted[REPETITIONS], only_read[REPETITIONS];
	struct nm_topology *topology = machine_topology(NODES, CPUS);
	struct nm_physmap *physmap;
	struct nm_metrics *metrics;
	int fd = memfd_create("recording", MFD_CLOEXEC);
	check(fd, "memfd_create");
	check(nm_physmap_empty(&physmap), "physmap");
	check(nm_metrics_new(topology, physmap, &metrics), "metrics");
	write_recording(fd);
	for (unsigned i = 0; i < REPETITIONS; i++) {
		counted[i] = read_once(fd, metrics);
		only_read[i] = read_once(fd, NULL);
	}
	bench_print("replay_samples_per_s", bench_median(counted, REPETITIONS), "samples/s");
	bench_print("replay_read_per_s", bench_median(only_read, REPETITIONS), "samples/s");
	bench_print("recording_bytes_per_sample",
		    (double)lseek(fd, 0, SEEK_END) / (BATCH * BATCHES), "bytes");
	nm_metrics_free(metrics);
	nm_physmap_free(physmap);
	nm_topology_free(topology);
	close(fd);
	return EXIT_SUCCESS;
}
