// SPDX-License-Identifier: MIT
// SECURITY: helper-socket
/*
 * Requests to the privileged helper. For any request, the sysctl changes only if root's
 * configuration permits it. Also reads the state file of the sysctl.
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

static void require_harmless(const struct nm_helper_request *request, bool permitted)
{
	const char *sysctl = fixture_read(fixture->root, SYSCTL);
	bool restores = request->value == -1;

	if (request->act != NM_HELPER_NUMA_BALANCING || (!permitted && !restores))
		FUZZ_REQUIRE(strcmp(sysctl, "0\n") == 0);
}

/* The first byte selects the configuration of root, then come the request and the state file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct nm_event_fds fds;

	begin();
	bool permitted = fuzz_byte(&input) % 2;
	struct nm_helper_request request = take_request(&input);
	char *state = fuzz_text(&input);
	fixture_file(fixture->root, "numa-migrd.conf", permitted ? CONFIG_BALANCING : "");
	fixture_file(fixture->root, SYSCTL, "0\n");
	fixture_file(fixture->root, "run/numa_balancing", state);
	int r = nm_helper_serve(&fixture->context, &request, &fds);
	FUZZ_REQUIRE(r <= 0 && fds.event < 0 && fds.leader < 0);
	require_harmless(&request, permitted);
	(void)nm_helper_restore(&fixture->context);
	free(state);
	return 0;
}
