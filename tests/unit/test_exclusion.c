/* SPDX-License-Identifier: MIT */
/* The default exclusions: by place and program, and not by a name alone. */
#define SET_UP begin
#define TEAR_DOWN end
#include "../support/test.h"

#include "task_table_fixture.h"

#define BEFORE_EXEC NM_PROC_BEFORE_EXEC

static char explanation[NM_EXPLANATION_BYTES];

static int begin(void **state)
{
	fake_asked.hangs = false;
	fake_asked.late = 0;
	fake_asked.program = 0;
	return set_up(state);
}

static int end(void **state)
{
	fake_asked.hangs = false;
	fake_asked.late = 0;
	fake_asked.program = 0;
	return tear_down(state);
}

static void configure(const char *text)
{
	struct nm_config_errors errors = {0};
	struct nm_config *changed = NULL;
	assert_int_equal(nm_config_parse("test", text, strlen(text), &errors, &changed), 0);
	nm_tasks_configure(tasks, topology, changed);
	nm_config_free(config);
	config = changed;
}

static void include_command(const char *command)
{
	char text[128];
	(void)snprintf(text, sizeof(text), "targets: { include = ( { command = \"%s\"; } ); };",
		       command);
	configure(text);
}

static void name(uint32_t pid, const char *comm)
{
	(void)snprintf(fake_get(fake, pid)->comm, sizeof(fake_get(fake, pid)->comm), "%s", comm);
}

static void put_in(uint32_t pid, const char *cgroup)
{
	struct fake_thread *thread = fake_get(fake, pid);
	(void)snprintf(thread->cgroup, sizeof(thread->cgroup), "%s", cgroup);
}

/* All processes run this program, as their mappings show. */
static void run_program(const char *path)
{
	fake_asked.program = (int)nm_excluded_program_in(path);
}

static void run_all_for(unsigned seconds)
{
	while (seconds-- > 0)
		run_all(0.5);
}

/* Process 100 is PID 1 of a container, with this name and program. */
static void make_first(const char *comm, const char *path)
{
	name(100, comm);
	fake_get(fake, 100)->ns_pid = 1;
	run_program(path);
}

static void assert_default(uint32_t pid, enum nm_exclusion exclusion)
{
	const struct nm_process *process = nm_tasks_process(tasks, pid);
	assert_non_null(process);
	assert_int_equal(process->eligibility, NM_ELIGIBILITY_DEFAULT);
	assert_int_equal(process->exclusion, exclusion);
	nm_tasks_explain(tasks, process, nm_tasks_refusal(tasks, process), explanation);
	assert_non_null(strstr(explanation, "excluded by default: "));
	assert_non_null(strstr(explanation, nm_exclusion_row(exclusion)->text));
}

/* ---- PID 1 ---- */

TEST(pid_1_of_the_host_is_never_managed)
{
	for (unsigned i = 0; i < 12; i++)
		run_one(1, 1, 0.9);
	assert_default(1, NM_EXCLUSION_HOST_INIT);
	include_command("systemd");
	run_one(1, 1, 0.9);
	assert_default(1, NM_EXCLUSION_HOST_INIT);
	assert_managed(1, false);
}

/* ---- containers ---- */

TEST(reapers_that_start_a_container_are_left_alone)
{
	static const char *const paths[] = {"/usr/bin/tini",
					    "/pause",
					    "/sbin/docker-init",
					    "/run/podman-init",
					    "/usr/lib/systemd/systemd",
					    "/usr/bin/dumb-init (deleted)"};
	for (unsigned i = 0; i < NM_ARRAY_SIZE(paths); i++) {
		make_first("java", paths[i]); /* with any name */
		fake_exec(fake, 100);
		drain();
		run_all_for(4);
		assert_default(100, NM_EXCLUSION_CONTAINER_INIT);
		assert_managed(100, false);
	}
}

/* Its name is no reason: every user can set it. */
/* SECURITY: posing-manager */
TEST(a_first_process_that_computes_is_managed)
{
	make_first("tini", "/usr/lib/jvm/bin/java");
	run_all_for(4);
	assert_managed(100, true);
	make_first("python3", "/usr/bin/python3.11");
	run_all_for(12);
	assert_managed(100, true);
}

TEST(a_first_process_waits_until_its_program_is_known)
{
	make_first("postgres", "/usr/lib/postgresql/bin/postgres");
	fake_asked.late = 2;
	run_all(0.5);
	assert_managed(100, false);
	const struct nm_process *process = nm_tasks_process(tasks, 100);
	nm_tasks_explain(tasks, process, process->eligibility, explanation);
	assert_non_null(strstr(explanation, "until its program is known"));
	run_all_for(5);
	assert_managed(100, true);
}

/* A container is not left unmanaged because nobody answers. */
TEST(without_an_answer_the_name_decides)
{
	make_first("postgres", "/usr/bin/tini");
	fake_asked.program = -EPERM;
	run_all_for(4);
	assert_managed(100, true);
	name(100, "tini");
	run_all_for(12);
	assert_default(100, NM_EXCLUSION_CONTAINER_INIT);
	name(100, "postgres");
	fake_asked.program = -ETIMEDOUT;
	run_all_for(12);
	assert_managed(100, true);
}

TEST(the_same_program_elsewhere_is_managed)
{
	name(100, "pause");
	run_program("/home/user/pause");
	run_all_for(4);
	assert_managed(100, true);
}

/* busybox is init, or any other program. */
TEST(a_file_of_several_programs_is_told_by_its_command)
{
	make_first("awk", "/bin/busybox");
	run_all_for(4);
	assert_managed(100, true);
	make_first("init", "/bin/busybox");
	run_all_for(12);
	assert_default(100, NM_EXCLUSION_CONTAINER_INIT);
}

TEST(a_program_is_read_again_after_exec)
{
	make_first("tini", "/usr/bin/tini");
	run_all_for(4);
	assert_default(100, NM_EXCLUSION_CONTAINER_INIT);
	make_first("postgres", "/usr/bin/postgres");
	fake_exec(fake, 100);
	drain();
	run_all_for(4);
	assert_managed(100, true);
}

/* A name that changes leaves the program known: nothing is managed and left alone in turns. */
TEST(a_name_that_changes_does_not_suspend_management)
{
	make_first("python3", "/usr/bin/python3.11");
	run_all_for(4);
	for (unsigned i = 0; i < 30; i++) {
		name(100, i % 2 ? "worker" : "python3");
		run_all(0.5);
		assert_managed(100, true);
	}
}

/* ---- managers of users ---- */

TEST(the_service_manager_of_a_user_is_left_alone)
{
	put_in(100, "/user.slice/user-1000.slice/user@1000.service/init.scope");
	run_program("/usr/lib/systemd/systemd");
	run_all_for(4);
	assert_default(100, NM_EXCLUSION_USER_MANAGER);
}

TEST(what_a_user_runs_is_managed)
{
	put_in(100, "/user.slice/user-1000.slice/user@1000.service/app.slice/job.service");
	put_in(200, "/user.slice/user-1000.slice/user@1000.service/init.scope");
	run_all_for(4);
	assert_managed(100, true);
	assert_managed(200, true);
}

/* ---- our own programs ---- */

TEST(our_own_programs_are_never_managed)
{
	include_command("numa-migrctl");
	name(100, "numa-migrctl");
	run_program("/usr/bin/numa-migrctl");
	run_all_for(12);
	assert_int_equal(nm_tasks_process(tasks, 100)->eligibility, NM_ELIGIBILITY_SELF);
}

/* SECURITY: posing-manager */
TEST(a_program_with_our_name_is_managed)
{
	name(100, "numa-migrctl");
	run_program("/home/user/solver");
	run_all_for(4);
	assert_managed(100, true);
}

/* ---- before exec ---- */

TEST(a_child_of_pid_1_is_left_alone_before_exec)
{
	fake_fork(fake, 1, 300)->flags = BEFORE_EXEC;
	fake_fork(fake, 1, 301)->flags = BEFORE_EXEC;
	fake_fork(fake, 1, 302); /* systemd-executor has executed something */
	name(301, "(kill)");
	name(302, "(postgres)");
	run_all_for(4);
	for (uint32_t pid = 300; pid <= 302; pid++)
		assert_default(pid, NM_EXCLUSION_BEFORE_EXEC);
	fake_exec(fake, 302);
	drain();
	name(302, "postgres");
	run_all_for(4);
	assert_managed(302, true);
}

/* A daemon that was forked without exec and was adopted by PID 1 computes. */
TEST(an_adopted_daemon_is_managed)
{
	fake_get(fake, 100)->flags = BEFORE_EXEC;
	run_all_for(4);
	assert_managed(100, true);
}

TEST(children_of_reapers_are_left_alone_before_exec)
{
	make_first("tini", "/usr/bin/tini");
	run_all_for(4);
	fake_fork(fake, 100, 300)->flags = BEFORE_EXEC;
	fake_fork(fake, 100, 301); /* has executed its program */
	name(301, "tini");
	run_all_for(4);
	assert_default(300, NM_EXCLUSION_BEFORE_EXEC);
	assert_managed(301, true);
}

/* The manager sleeps, so that nothing is known of it but its name. */
TEST(children_of_sleeping_managers_are_left_alone_before_exec)
{
	name(100, "systemd");
	fake_fork(fake, 100, 300)->flags = BEFORE_EXEC;
	fake_fork(fake, 200, 301)->flags = BEFORE_EXEC;
	name(300, "(sd-pam)");
	name(301, "(sd-pam)");
	for (unsigned i = 0; i < 4; i++) {
		run_one(300, 300, 0.5);
		run_one(301, 301, 0.5);
	}
	assert_default(300, NM_EXCLUSION_BEFORE_EXEC);
	assert_managed(301, true);
}

/* Servers that fork one process per connection: none of them has called exec. */
TEST(children_of_a_program_that_computes_are_managed)
{
	make_first("postgres", "/usr/bin/postgres");
	fake_asked.late = 2;
	run_all(0.5);
	fake_fork(fake, 100, 300)->flags = BEFORE_EXEC;
	run_all(0.5);
	assert_managed(300, true);
	run_all_for(4);
	assert_managed(100, true);
	assert_managed(300, true);
}

/* ---- the configuration ---- */

TEST(an_include_with_the_command_overrides)
{
	make_first("tini", "/usr/bin/tini");
	configure("targets: { include = ( { cgroup = \"/\"; } ); };");
	run_all_for(4);
	assert_default(100, NM_EXCLUSION_CONTAINER_INIT);
	include_command("*");
	run_all_for(4);
	assert_default(100, NM_EXCLUSION_CONTAINER_INIT);
	include_command("tin*");
	run_all_for(4);
	assert_managed(100, true);
}

/* SECURITY: posing-manager */
TEST(what_computes_is_asked_once)
{
	make_first("postgres", "/usr/bin/postgres");
	uint64_t before = fake_asked.tickets;
	run_all_for(100);
	assert_int_equal(fake_asked.tickets - before, 1);
}

RUN_TESTS()
