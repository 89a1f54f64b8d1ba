/* SPDX-License-Identifier: MIT */
/* Main loop of a process that fakes a service on a bus. */
#ifndef NM_TEST_SERVE_BUS_H
#define NM_TEST_SERVE_BUS_H

#include <stdint.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

/* Requests the name unless r, the result of the steps before, is an error; writes 0 or the error to
 * `ready`, and serves until the bus ends. Does not return. */
static inline void serve_bus(sd_bus *bus, int r, const char *name, int ready)
{
	if (r >= 0)
		r = sd_bus_request_name(bus, name, 0);
	r = r < 0 ? r : 0;
	if (write(ready, &r, sizeof(r)) != sizeof(r) || r < 0)
		_exit(1);
	for (;;) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
		if (r < 0)
			_exit(0);
	}
}

#endif
