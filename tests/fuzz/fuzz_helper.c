// SPDX-License-Identifier: MIT
// SECURITY: helper-socket
/*
 * Requests to the privileged helper, with a /proc of one process that the targets name. For any
 * request, clear_refs is written only for that process and the sysctl is 0 or 1. Also reads the
 * state file of the sysctl.
 */
#include "../unit/helper_fixture.h"
#include "fuzz.h"

#define ABSENT_CPU 65535 /* so that no event of this machine is opened */

static struct helper_fixture *fixture;

static void end(void)
{
	void *state = fixture;
	(void)helper_fixture_teardown(&state);
}

static void begin(void)
{
	void *state = NULL;

	if (fixture)
		return;
	FUZZ_REQUIRE(helper_fixture_setup(&state) == 0);
	fixture = state;
	FUZZ_REQUIRE(atexit(end) == 0);
	fixture_directory(fixture->root, "run");
}

static struct nm_helper_request take_request(struct fuzz_input *input)
{
	struct nm_helper_request request = {0};
	size_t size = input->size < sizeof(request) ? input->size : sizeof(request);

	memcpy(&request, input->data, size);
	input->data += size;
	input->size -= size;
	if (request.act == NM_HELPER_OPEN_EVENT && request.cpu >= 0)
		request.cpu = ABSENT_CPU;
	return request;
}

static void require_harmless(const struct nm_helper_request *request, int r)
{
	const char *cleared = fixture_read(fixture->root, "proc/100/clear_refs");

	if (cleared[0])
		FUZZ_REQUIRE(request->act == NM_HELPER_CLEAR_REFS && request->pid == 100 &&
			     request->start_ticks == START_TICKS && r == 0);
	const char *sysctl = fixture_read(fixture->root, SYSCTL);
	FUZZ_REQUIRE(request->act == NM_HELPER_NUMA_BALANCING || strcmp(sysctl, "0\n") == 0);
}

/* The first byte selects the configuration of root, 40 bytes are the request, and the rest is the
 * state file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const configurations[] = {CONFIG_SOFT_DIRTY, CONFIG_BALANCING, ""};
	struct fuzz_input input = {data, size};
	struct nm_event_fds fds;

	begin();
	const char *config = configurations[fuzz_byte(&input) % 3];
	struct nm_helper_request request = take_request(&input);
	char *state = fuzz_text(&input);
	fixture_file(fixture->root, "numa-migrd.conf", config);
	fixture_file(fixture->root, SYSCTL, "0\n");
	fixture_file(fixture->root, "proc/100/clear_refs", "");
	fixture_file(fixture->root, "run/numa_balancing", state);
	int r = nm_helper_serve(&fixture->context, &request, &fds);
	FUZZ_REQUIRE(r <= 0 && fds.leader < 0);
	if (fds.event >= 0) {
		FUZZ_REQUIRE(r == 0 && request.act == NM_HELPER_CLEAR_REFS);
		helper_fixture_clear(&fds);
	}
	require_harmless(&request, r);
	(void)nm_helper_restore(&fixture->context);
	free(state);
	return 0;
}
