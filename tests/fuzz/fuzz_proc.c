// SPDX-License-Identifier: MIT
// SECURITY: stat-fields, proc-sys
/* /proc/PID/stat, status, cgroup, /proc/stat, uptime, and lists of CPUs. */
#include "fuzz.h"
#include "numa-migrd/proc.h"

#define CPUS 64U

static void parse_cgroup(const char *text)
{
	const char *path = NULL;
	size_t length = 0;

	if (nm_proc_parse_cgroup(text, &path, &length) < 0)
		return;
	FUZZ_REQUIRE(path >= text && path + length <= text + strlen(text));
	FUZZ_REQUIRE(!memchr(path, '\n', length));
}

static void parse(const char *text)
{
	struct nm_cpu_times times[CPUS] = {0};
	struct nm_proc_status status;
	struct nm_proc_stat stat;

	if (nm_proc_parse_stat(text, &stat) == 0)
		FUZZ_REQUIRE(memchr(stat.comm, '\0', sizeof(stat.comm)));
	(void)nm_proc_parse_status(text, &status);
	(void)nm_proc_parse_cpu_times(text, times, CPUS);
	parse_cgroup(text);
}

static void read_files(const char *text, size_t size)
{
	struct fuzz_platform fuzz = fuzz_platform_returning(text, size);
	nm_autofree char *cgroup = NULL;
	struct nm_proc_status status;
	struct nm_proc_stat stat;
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	struct nm_cgroups *cgroups;
	double limit;

	cgroups = nm_cgroups_new(&fuzz.platform);
	(void)nm_proc_read_stat(&fuzz.platform, FUZZ_DIRECTORY, &stat);
	(void)nm_proc_read_status(&fuzz.platform, FUZZ_DIRECTORY, &status);
	(void)nm_proc_ticks_now(&fuzz.platform);
	if (nm_proc_read_cgroup(&fuzz.platform, FUZZ_DIRECTORY, &cgroup) == 0)
		(void)nm_cgroups_cpus(cgroups, cgroup, cpus, NULL);
	(void)nm_cgroups_cpus(cgroups, "/a.slice/b.service", cpus, NULL);
	(void)nm_cgroups_cpuset_of(cgroups, FUZZ_DIRECTORY, cpus, NULL, NULL);
	if (nm_cgroups_cpu_limit(cgroups, "/a.slice/b.service", &limit) == 0)
		FUZZ_REQUIRE(limit >= 0);
	nm_cgroups_free(cgroups);
	hwloc_bitmap_free(cpus);
	FUZZ_REQUIRE(fuzz.open == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fuzz_input input = {data, size};
	char *text = fuzz_text(&input);

	parse(text);
	read_files(text, size);
	free(text);
	return 0;
}
