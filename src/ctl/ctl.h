/* SPDX-License-Identifier: MIT */
/* numa-migrctl: a command line in front of the bus object (numa-migrctl(1)). */
#ifndef NM_CTL_H
#define NM_CTL_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "numa-migrd/base.h"

#define NM_CTL_UNAVAILABLE 69 /* EX_UNAVAILABLE of sysexits.h(3head): no daemon, no bus */

/* Calls a method without arguments, or with `pid`. Exit status; says on stderr what went wrong. */
int nm_ctl_call(const char *method, const uint32_t *pid, sd_bus_message **ret_reply);

/* Prints the a{sv} that Status returned, as aligned lines or one JSON object. Exit status. */
int nm_ctl_show_status(sd_bus_message *reply, bool json);

#endif
