/* SPDX-License-Identifier: MIT */
#include "config/exclusions.h"

#include <string.h>

#include "numa-migrd/base.h"

#define COMM_LENGTH 15	     /* TASK_COMM_LEN - 1, proc(5) */
#define DELETED " (deleted)" /* proc(5): the file was replaced, for example by an update */

#define OWN (1U << NM_EXCLUSION_OWN)
#define USERS (1U << NM_EXCLUSION_USER_MANAGER)
#define CONTAINERS (1U << NM_EXCLUSION_CONTAINER_INIT)

static const struct nm_exclusion_row rows[NM_EXCLUSIONS] = {
	[NM_EXCLUSION_HOST_INIT] = {"PID 1 of the host", false},
	[NM_EXCLUSION_OWN] = {"a program of numa-migrd", false},
	[NM_EXCLUSION_USER_MANAGER] = {"the service manager of a user", true},
	[NM_EXCLUSION_CONTAINER_INIT] = {"a service manager or reaper that is PID 1 of a container",
					 true},
	[NM_EXCLUSION_BEFORE_EXEC] = {"a child of a service manager that has not executed its "
				      "program yet",
				      false},
};

const struct nm_exclusion_row *nm_exclusion_row(enum nm_exclusion exclusion)
{
	return &rows[exclusion];
}

/* The first process of a container that only starts, watches and reaps others. Podman runs its
 * reaper from a file with another name. */
const struct nm_excluded_program nm_excluded_programs[] = {
	{"numa-migrd", NULL, OWN},
	{"numa-migrd-helper", NULL, OWN},
	{"numa-migrd-worker", NULL, OWN},
	{"numa-migrctl", NULL, OWN},
	{"systemd", NULL, USERS | CONTAINERS},
	{"init", NULL, CONTAINERS},
	{"busybox", "init", CONTAINERS},
	{"openrc-init", NULL, CONTAINERS},
	{"runit", NULL, CONTAINERS},
	{"runit-init", NULL, CONTAINERS},
	{"runsvdir", NULL, CONTAINERS},
	{"s6-svscan", NULL, CONTAINERS},
	{"catatonit", NULL, CONTAINERS},
	{"podman-init", NULL, CONTAINERS},
	{"docker-init", NULL, CONTAINERS},
	{"dumb-init", NULL, CONTAINERS},
	{"tini", NULL, CONTAINERS},
	{"tini-static", NULL, CONTAINERS},
	{"pause", NULL, CONTAINERS},
};
const size_t nm_excluded_program_count = NM_ARRAY_SIZE(nm_excluded_programs);
_Static_assert(NM_ARRAY_SIZE(nm_excluded_programs) < 256, "a number fits into a byte");

unsigned nm_excluded_program_in(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path;
	size_t length = strlen(file), end = strlen(DELETED);

	if (length > end && strcmp(file + length - end, DELETED) == 0)
		length -= end;
	for (unsigned i = 0; i < nm_excluded_program_count; i++) {
		const char *known = nm_excluded_programs[i].file;
		if (strlen(known) == length && memcmp(known, file, length) == 0)
			return i + 1;
	}
	return 0;
}

unsigned nm_excluded_program_called(const char *command)
{
	for (unsigned i = 0; i < nm_excluded_program_count; i++)
		if (strncmp(nm_excluded_programs[i].file, command, COMM_LENGTH) == 0)
			return i + 1;
	return 0;
}

bool nm_excludes_program(enum nm_exclusion exclusion, unsigned number, const char *command)
{
	if (number == 0 || number > nm_excluded_program_count)
		return false;
	const struct nm_excluded_program *program = &nm_excluded_programs[number - 1];
	return program->exclusions & 1U << exclusion &&
	       (!program->command || strcmp(program->command, command) == 0);
}
