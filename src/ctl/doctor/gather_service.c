/* SPDX-License-Identifier: MIT */
/* Collects facts about the service: privileges of its processes, its configuration, and the state
 * left by an earlier run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gather.h"
#include "numa-migrd/helper.h"
#include "numa-migrd/ledger.h"

#define CONFIG_PATH "/etc/numa-migrd.conf"

/* Returns the number after "name" in a file with such lines; "unlimited" becomes INT64_MAX. */
static struct nm_reading number_after(const char *text, const char *name, int base)
{
	const char *found = strstr(text, name);
	char *end;

	if (!found)
		return (struct nm_reading){.error = -ENODATA};
	found += strlen(name);
	found += strspn(found, ": \t");
	if (strncmp(found, "unlimited", strlen("unlimited")) == 0)
		return (struct nm_reading){.value = INT64_MAX};
	int64_t value = (int64_t)strtoull(found, &end, base);
	if (end == found)
		return (struct nm_reading){.error = -ENODATA};
	return (struct nm_reading){.value = value};
}

static void read_daemon(struct nm_platform *platform, struct nm_facts_service *service)
{
	char path[64], text[8192];

	(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/status", service->pid);
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) <= 0)
		text[0] = '\0';
	service->capabilities = number_after(text, "\nCapEff:", 16);
	(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/limits", service->pid);
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) <= 0)
		text[0] = '\0';
	service->files = number_after(text, "Max open files", 10);
	service->locked = number_after(text, "Max locked memory", 10);
}

/* Uses the path that an administrator would type; other roots are only used in tests. */
static int read_config(const struct nm_doctor_options *options, struct nm_facts *facts)
{
	const char *root = strcmp(options->root_path, "/") == 0 ? "" : options->root_path;
	const char *path = options->config_path ? options->config_path : CONFIG_PATH;

	(void)snprintf(facts->config_path, sizeof(facts->config_path), "%s%s", root, path);
	facts->config_error =
		nm_config_load(facts->config_path, &facts->config_errors, &facts->config);
	bool before_installing = facts->config_error == -ENOENT && !facts->unit.exists;
	if (before_installing || facts->config_error == -EACCES)
		return nm_config_default(&facts->config);
	return facts->config_error == -ENOMEM ? -ENOMEM : 0;
}

int nm_gather_service(struct nm_platform *platform, const struct nm_doctor_options *options,
		      struct nm_facts *facts)
{
	if (facts->daemon.pid)
		read_daemon(platform, &facts->daemon);
	if (facts->helper.pid)
		read_daemon(platform, &facts->helper);
	facts->helper_socket =
		nm_gather_name(platform, "run", strrchr(NM_HELPER_SOCKET_PATH, '/') + 1);
	facts->ledger = nm_gather_name(platform, "run/numa-migrd", NM_LEDGER_NAME);
	return read_config(options, facts);
}
