/* SPDX-License-Identifier: MIT */
/* Domains. */
#include "../support/test.h"

#include <stdint.h>

#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"

static bool same_domain(const char *one, const char *other)
{
	return nm_domain_of(0, one) == nm_domain_of(0, other);
}

/* SECURITY: quota */
TEST(nested_cgroups_of_a_unit_share_its_domain)
{
	static const char *const same[][2] = {
		{"/system.slice/a.service", "/system.slice/a.service/x/y"},
		{"/system.slice/a.service", "/system.slice/a.service/b.slice/c.service"},
		{"/user.slice/user-7.slice/session-1.scope",
		 "/user.slice/user-7.slice/session-2.scope"},
		{"/user.slice/user-7.slice/session-1.scope",
		 "/user.slice/user-7.slice/user@7.service/app.slice/b.service"},
		{"/docker/1f/a", "/docker/1f/b"},
		{"/lxc.payload.one/system.slice/a.service",
		 "/lxc.payload.one/system.slice/b.service"},
		{"/kubepods/burstable/podA/1f", "/kubepods/burstable/podA/2f"},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(same); i++)
		assert_true(same_domain(same[i][0], same[i][1]));
}

/* ---- layouts of containers ---- */

struct layout {
	const char *name, *one, *other;
};

/* The parents that common programs create are known by their names. */
TEST(containers_of_common_programs_are_domains)
{
	static const struct layout layouts[] = {
		{"docker", "/docker/aaa", "/docker/bbb"},
		{"kubelet", "/kubepods/burstable/podA/1", "/kubepods/burstable/podB/2"},
		{"kind", "/kubelet/kubepods/burstable/podA/1",
		 "/kubelet/kubepods/burstable/podB/2"},
		{"kind with systemd",
		 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podA.slice/1",
		 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podB.slice/2"},
		{"containerd", "/k8s.io/aaa", "/k8s.io/bbb"},
		{"nerdctl", "/default/aaa", "/default/bbb"},
		{"podman", "/libpod_parent/libpod-aaa", "/libpod_parent/libpod-bbb"},
		{"ECS", "/ecs/taskA/1", "/ecs/taskB/2"},
		{"nomad", "/nomad.slice/share.slice/A.web.scope",
		 "/nomad.slice/share.slice/B.db.scope"},
		{"LXC", "/lxc.payload.a", "/lxc.payload.b"},
		{"older LXC", "/lxc/a", "/lxc/b"},
		{"libvirt", "/machine/qemu-1-a.libvirt-qemu", "/machine/qemu-2-b.libvirt-qemu"},
		{"libvirt with systemd", "/machine.slice/machine-qemu\\x2d1.scope/libvirt/vcpu0",
		 "/machine.slice/machine-qemu\\x2d2.scope/libvirt/vcpu0"},
		{"containerd.service",
		 "/system.slice/containerd.service/kubepods-podA.slice:cri-containerd:1",
		 "/system.slice/containerd.service/kubepods-podB.slice:cri-containerd:2"},
		{"Slurm", "/system.slice/slurmstepd.scope/job_1/step_0",
		 "/system.slice/slurmstepd.scope/job_2/step_0"},
		{"rootless podman",
		 "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-aaa.scope",
		 "/user.slice/user-1001.slice/user@1001.service/user.slice/libpod-bbb.scope"},
		{"Proxmox", "/qemu.slice/100.scope", "/qemu.slice/101.scope"},
		{"LXC of Proxmox", "/lxc/100/ns", "/lxc/101/ns"},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(layouts); i++)
		if (same_domain(layouts[i].one, layouts[i].other))
			fail_msg("%s: one domain", layouts[i].name);
}

/* A machine with one cgroup that has the given contents. */
static struct machine {
	struct nm_platform platform;
	const char *cgroup, *controllers, *processes;
	uint32_t owner;
	unsigned calls, open;
} machine;

static ssize_t read_file(struct nm_platform *platform, int directory, const char *path,
			 char *buffer, size_t size)
{
	char wanted[128];
	const char *text = NULL;

	(void)platform, (void)directory;
	machine.calls++;
	snprintf(wanted, sizeof(wanted), "sys/fs/cgroup%s/cgroup.subtree_control", machine.cgroup);
	if (strcmp(path, wanted) == 0)
		text = machine.controllers;
	snprintf(wanted, sizeof(wanted), "sys/fs/cgroup%s/cgroup.procs", machine.cgroup);
	if (strcmp(path, wanted) == 0)
		text = machine.processes;
	if (!text)
		return -ENOENT;
	if (strlen(text) >= size)
		return -EFBIG;
	return snprintf(buffer, size, "%s", text);
}

static int open_directory(struct nm_platform *platform, int directory, const char *path)
{
	(void)platform, (void)directory;
	machine.open++;
	return strcmp(path + strlen("sys/fs/cgroup"), machine.cgroup) == 0 ? 7 : -ENOENT;
}

static void close_directory(struct nm_platform *platform, int fd)
{
	(void)platform;
	assert_int_equal(fd, 7);
	machine.open--;
}

static int owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	(void)platform, (void)directory;
	*ret = (struct nm_owner){.uid = machine.owner};
	return 0;
}

static bool are_apart(const char *one, const char *other)
{
	static const struct nm_platform_ops ops = {.read_file = read_file,
						   .open_directory = open_directory,
						   .close = close_directory,
						   .owner = owner};

	machine.platform.ops = &ops;
	machine.calls = machine.open = 0;
	bool apart = nm_proc_domain(&machine.platform, 0, one) !=
		     nm_proc_domain(&machine.platform, 0, other);
	assert_int_equal(machine.open, 0);
	return apart;
}

/* The parents of unknown programs. */
TEST(a_parent_without_processes_is_no_tenant)
{
	static const struct layout layouts[] = {
		{"/newd", "/newd/a", "/newd/b/init.scope"},
		{"/system.slice/newd.service", "/system.slice/newd.service/a",
		 "/system.slice/newd.service/b"},
		{"/new.slice/new", "/new.slice/new/a/x", "/new.slice/new/b/x"},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(layouts); i++) {
		machine = (struct machine){
			.cgroup = layouts[i].name, .controllers = "cpu memory\n", .processes = ""};
		assert_true(are_apart(layouts[i].one, layouts[i].other));
		machine.processes = "77\n";
		assert_false(are_apart(layouts[i].one, layouts[i].other));
		machine.processes = NULL; /* not readable */
		assert_false(are_apart(layouts[i].one, layouts[i].other));
		machine.processes = "";
		machine.controllers = "\n";
		assert_false(are_apart(layouts[i].one, layouts[i].other));
		machine.controllers = "cpu\n";
		assert_true(are_apart(layouts[i].one, layouts[i].other));
		machine.owner = 1000; /* delegated: its owner could have any number of children */
		assert_false(are_apart(layouts[i].one, layouts[i].other));
	}
}

/* The cgroups that a tenant creates within its own are no other domains. */
/* SECURITY: quota */
TEST(a_tenant_cannot_become_many)
{
	static const struct layout layouts[] = {
		{"/docker/1f", "/docker/1f/init.scope", "/docker/1f/system.slice/a.service"},
		{"/kubepods/podA", "/kubepods/podA/1", "/kubepods/podA/2"},
		{"/lxc.payload.one", "/lxc.payload.one/init.scope", "/lxc.payload.one/x"},
		{"/machine.slice/libpod-1.scope", "/machine.slice/libpod-1.scope/a",
		 "/machine.slice/libpod-1.scope/b"},
		{"/newd/a", "/newd/a/x", "/newd/a/y"},
		{"/user.slice/user-7.slice", "/user.slice/user-7.slice/a",
		 "/user.slice/user-7.slice/b"},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(layouts); i++) {
		machine = (struct machine){
			.cgroup = layouts[i].name, .controllers = "cpu memory\n", .processes = ""};
		if (are_apart(layouts[i].one, layouts[i].other))
			fail_msg("%s: two domains", layouts[i].name);
	}
}

/* Most processes are in the cgroup of a unit, and nothing is read for them. */
TEST(units_without_children_cost_nothing)
{
	machine = (struct machine){.cgroup = "/x", .controllers = "cpu\n", .processes = ""};
	assert_true(are_apart("/system.slice/a.service", "/system.slice/b.service"));
	assert_true(are_apart("/docker/1f", "/user.slice/user-7.slice/session-1.scope"));
	assert_int_equal(machine.calls, 0);
}

/* SECURITY: quota */
TEST(containers_services_and_users_are_domains)
{
	static const char *const others[] = {
		"/system.slice/a.service",
		"/system.slice/b.service",
		"/system.slice/docker-1f.scope",
		"/system.slice/docker-2f.scope",
		"/system.slice/a/a.service", /* no slice: a separate domain */
		"/user.slice/user-7.slice/session-1.scope",
		"/user.slice/user-8.slice/session-1.scope",
		"/docker/1f",
		"/docker/2f",
		"/kubepods/burstable/podA/1f",
		"/kubepods/burstable/podB/1f",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podA.slice/"
		"cri-1.scope",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podB.slice/"
		"cri-2.scope",
		"/lxc.payload.one/init.scope",
		"/lxc.payload.two/init.scope",
		"/system.slice/slurmstepd.scope/job_1/step_0",
		"/system.slice/slurmstepd.scope/job_2/step_0",
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(others); i++)
		for (size_t k = 0; k < NM_ARRAY_SIZE(others); k++)
			assert_int_equal(same_domain(others[i], others[k]), i == k);
}

TEST(users_without_a_cgroup_are_domains)
{
	static const char *const unknown[] = {NULL, "", "/", "//", "x"};

	for (size_t i = 0; i < NM_ARRAY_SIZE(unknown); i++) {
		assert_true(nm_domain_of(1, unknown[i]) == nm_domain_of(1, NULL));
		assert_true(nm_domain_of(1, unknown[i]) != nm_domain_of(2, NULL));
	}
}

RUN_TESTS()
