// SPDX-License-Identifier: MIT
// SECURITY: rings
/* Single SPE packets, and pieces of an AUX area that the records of a ring announce. */
#include "../../src/sample/spe_read.h"
#include "fuzz.h"

#define RING_BYTES 1024U
#define AUX_BYTES 4096U

static void take_record(void *context, const struct nm_spe_record *record)
{
	struct nm_sample sample = {0};

	++*(uint64_t *)context;
	if (nm_spe_sample(record, (enum nm_spe_sources)(record->ticks % 4), &sample))
		FUZZ_REQUIRE(sample.kind == NM_EVENT_MEMORY || sample.kind == NM_EVENT_STORE);
}

static void decode(const struct fuzz_input *input, uint64_t offset)
{
	struct nm_spe_counts counts = {0};
	uint64_t seen = 0;
	char *exact = fuzz_text(input);
	size_t used = nm_spe_decode((const uint8_t *)exact, input->size, offset, take_record, &seen,
				    &counts);

	FUZZ_REQUIRE(used <= input->size);
	FUZZ_REQUIRE(counts.records == seen && counts.corrupt <= input->size);
	free(exact);
}

static void take_sample(void *context, struct nm_sample *sample)
{
	(void)context;
	FUZZ_REQUIRE(sample->cpu == 3 && sample->level <= NM_LEVEL_DRAM);
}

static void read_areas(struct fuzz_input input, uint64_t tail)
{
	struct nm_spe_reader reader = {
		.cpu = 3, .clock = {.known = true, .shift = 4, .mult = 32, .zero_ns = 1000}};
	uint8_t *ring = calloc(1, RING_BYTES), *aux = calloc(1, AUX_BYTES);
	uint8_t *scratch = malloc(AUX_BYTES);
	size_t records = input.size < RING_BYTES ? input.size & ~7UL : RING_BYTES;
	struct nm_ring_counts counts = {0};
	const struct nm_spe_areas areas = {ring, RING_BYTES, aux, AUX_BYTES, scratch};
	const struct nm_sample_sink sink = {.on_sample = take_sample};

	FUZZ_REQUIRE(ring && aux && scratch);
	for (size_t i = 0; i < records; i++)
		ring[(tail + i) & (RING_BYTES - 1)] = input.data[i];
	size_t left = input.size - records;
	memcpy(aux, input.data + records, left < AUX_BYTES ? left : AUX_BYTES);
	FUZZ_REQUIRE(nm_spe_read(&reader, &areas, tail, tail + records, &sink, &counts) ==
		     tail + records);
	nm_spe_reader_clear(&reader);
	free(ring), free(aux), free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	bool areas = fuzz_byte(&input) & 1;
	uint64_t place = fuzz_u64(&input);

	if (areas)
		read_areas(input, place & ~7ULL);
	else
		decode(&input, place);
	return 0;
}
