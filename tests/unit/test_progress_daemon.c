/* SPDX-License-Identifier: MIT */
/* Restoration reports progress to systemd, so that neither a time limit nor the watchdog ends
 * it. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../src/daemon/daemon.h"
#include "../../src/daemon/loop.h"
#include "../../src/daemon/pipeline_build.h"
#include "../../src/daemon/report.h"
#include "../../src/daemon/stages.h"
#include "fixture.h"

static char root[FIXTURE_PATH];
static int receiver;

/* The socket of sd_notify(3), as provided by systemd. */
static int set_up(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)state;
	fixture_make(root, sizeof(root));
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.64s/notify", root);
	receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(receiver >= 0);
	assert_int_equal(bind(receiver, (const struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unsetenv("NOTIFY_SOCKET");
	close(receiver);
	fixture_remove(root);
	return 0;
}

/* SECURITY: slow-restore */
TEST(progress_extends_limits_and_the_watchdog)
{
	const struct nm_move_event event = {.kind = NM_MOVE_PROGRESS};
	struct nm_daemon *daemon = calloc(1, sizeof(*daemon));
	char text[256] = "";
	assert_non_null(daemon);
	nm_report_move(daemon, &event);
	assert_true(recv(receiver, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "EXTEND_TIMEOUT_USEC=60000000"));
	assert_non_null(strstr(text, "WATCHDOG=1"));
	free(daemon);
}

RUN_TESTS()
