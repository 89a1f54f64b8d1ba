/* SPDX-License-Identifier: MIT */
/* The default exclusions: by place and program, and not by a name alone. */
#define SET_UP begin
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "task_table_words.h"

static int begin(void **state)
{
	fake_asked.late = 0;
	fake_asked.program = 0;
	return set_up(state);
}

/* ---- words ---- */

NAMES(exclusion, {"host-init", NM_EXCLUSION_HOST_INIT}, {"user-manager", NM_EXCLUSION_USER_MANAGER},
      {"container-init", NM_EXCLUSION_CONTAINER_INIT}, {"before-exec", NM_EXCLUSION_BEFORE_EXEC})

static const char *explain(uint32_t pid)
{
	static char text[NM_EXPLANATION_BYTES];
	const struct nm_process *process = nm_tasks_process(tasks, pid);
	nm_tasks_explain(tasks, process, nm_tasks_refusal(tasks, process), text);
	return text;
}

/* excluded 100 container-init, and so explained */
WORD(excluded)
{
	const struct nm_process *process = nm_tasks_process(tasks, U(0));
	const enum nm_exclusion expected =
		(enum nm_exclusion)script_value(step, "exclusion", step->word[1]);
	const char *text = explain(U(0));
	assert_int_equal(process->eligibility, NM_ELIGIBILITY_DEFAULT);
	if (process->exclusion != expected || !strstr(text, "excluded by default: ") ||
	    !strstr(text, nm_exclusion_row(process->exclusion)->text))
		script_fail(step, "found %s: %s", script_show("exclusion", process->exclusion),
			    text);
}

TEXT(explanation, explain(U(0)))
QUANTITY(eligibility, nm_tasks_process(tasks, U(0))->eligibility)
NAMES(eligibility, {"self", NM_ELIGIBILITY_SELF})

/* program /usr/bin/tini: all processes run it, as their mappings show; or EPERM: not known */
WORD(program)
{
	fake_asked.program = step->word[0][0] == 'E'
				     ? (int)script_value(step, "program", step->word[0])
				     : (int)nm_excluded_program_in(step_rest(step));
}

/* first java /usr/bin/tini: process 100 is PID 1 of a container, with this name and program */
WORD(first)
{
	struct fake_thread *thread = fake_get(fake, 100);
	(void)snprintf(thread->comm, sizeof(thread->comm), "%s", step->word[0]);
	thread->ns_pid = 1;
	fake_asked.program = (int)nm_excluded_program_in(strchr(step_rest(step), ' ') + 1);
}

KNOB(late, fake_asked.late)
KNOB(asked, fake_asked.tickets)
KNOB(flags, fake_get(fake, U(0))->flags)
NAMES(flags, {"before-exec", NM_PROC_BEFORE_EXEC})

WORD(put_in)
{
	struct fake_thread *thread = fake_get(fake, U(0));
	(void)snprintf(thread->cgroup, sizeof(thread->cgroup), "%s", step->word[1]);
}

#define ONLY(command) "targets include = ( { command = \"" command "\" } )"

/* ---- PID 1 ---- */

SCRIPT(pid_1_of_the_host_is_never_managed,
       "alone 1 0.9 12; excluded 1 host-init; " ONLY("systemd") "; alone 1 0.9",
       "excluded 1 host-init; unmanaged 1")

/* ---- containers ---- */

#define REAPER(path)                                                                               \
	"first java " path                                                                         \
	"; exec 100; drain; run 0.5 4; excluded 100 container-init; unmanaged 100"

/* With any name. */
SCRIPT(reapers_that_start_a_container_are_left_alone, REAPER("/usr/bin/tini"), REAPER("/pause"),
       REAPER("/sbin/docker-init"), REAPER("/run/podman-init"), REAPER("/usr/lib/systemd/systemd"),
       REAPER("/usr/bin/dumb-init (deleted)"))

/* Its name is no reason: every user can set it. */
/* SECURITY: posing-manager */
SCRIPT(a_first_process_that_computes_is_managed,
       "first tini /usr/lib/jvm/bin/java; run 0.5 4; managed 100",
       "first python3 /usr/bin/python3.11; run 0.5 12; managed 100")

SCRIPT(a_first_process_waits_until_its_program_is_known,
       "first postgres /usr/lib/postgresql/bin/postgres; set late = 2; run 0.5; unmanaged 100",
       "explanation 100 ~ until its program is known; run 0.5 5; managed 100")

/* A container is not left unmanaged because nobody answers. */
SCRIPT(without_an_answer_the_name_decides,
       "first postgres /usr/bin/tini; program EPERM; run 0.5 4; managed 100; name 100 tini",
       "run 0.5 12; excluded 100 container-init; name 100 postgres; program ETIMEDOUT; run 0.5 12",
       "managed 100")

SCRIPT(the_same_program_elsewhere_is_managed,
       "name 100 pause; program /home/user/pause; run 0.5 4; managed 100")

/* busybox is init, or any other program. */
SCRIPT(a_file_of_several_programs_is_told_by_its_command,
       "first awk /bin/busybox; run 0.5 4; managed 100; first init /bin/busybox; run 0.5 12",
       "excluded 100 container-init")

SCRIPT(a_program_is_read_again_after_exec,
       "first tini /usr/bin/tini; run 0.5 4; excluded 100 container-init",
       "first postgres /usr/bin/postgres; exec 100; drain; run 0.5 4; managed 100")

/* A name that changes leaves the program known: nothing is managed and left alone in turns. */
SCRIPT(a_name_that_changes_does_not_suspend_management,
       "first python3 /usr/bin/python3.11; run 0.5 4",
       "each 15: name 100 python3; run 0.5; managed 100; name 100 worker; run 0.5; managed 100")

/* ---- managers of users ---- */

#define USER "/user.slice/user-1000.slice/user@1000.service/"

SCRIPT(the_service_manager_of_a_user_is_left_alone,
       "put_in 100 " USER "init.scope; program /usr/lib/systemd/systemd; run 0.5 4",
       "excluded 100 user-manager")

SCRIPT(what_a_user_runs_is_managed,
       "put_in 100 " USER "app.slice/job.service; put_in 200 " USER "init.scope; run 0.5 4",
       "managed 100 200")

/* ---- our own programs ---- */

SCRIPT(our_own_programs_are_never_managed,
       ONLY("numa-migrctl") "; name 100 numa-migrctl; program /usr/bin/numa-migrctl",
       "run 0.5 12; eligibility 100 = self")

/* A worker that begins has another name, as the program of the helper may. */
SCRIPT(processes_of_our_units_are_never_managed,
       "put_in 100 /system.slice/numa-migrd-worker@1.service",
       "put_in 200 /system.slice/numa-migrd-helper.service; run 0.5 4; eligibility 100 = self",
       "eligibility 200 = self")

/* SECURITY: posing-manager */
SCRIPT(a_program_with_our_name_is_managed,
       "name 100 numa-migrctl; program /home/user/solver; run 0.5 4; managed 100")

/* ---- before exec ---- */

/* systemd-executor, process 302, has executed something. */
SCRIPT(a_child_of_pid_1_is_left_alone_before_exec,
       "fork 1 300; fork 1 301; fork 1 302; set flags 300 = before-exec",
       "set flags 301 = before-exec; name 301 (kill); name 302 (postgres); run 0.5 4",
       "excluded 300 before-exec; excluded 301 before-exec; excluded 302 before-exec; exec 302",
       "drain; name 302 postgres; run 0.5 4; managed 302")

/* A daemon that was forked without exec and was adopted by PID 1 computes. */
SCRIPT(an_adopted_daemon_is_managed, "set flags 100 = before-exec; run 0.5 4; managed 100")

/* Process 301 has executed its program. */
SCRIPT(children_of_reapers_are_left_alone_before_exec,
       "first tini /usr/bin/tini; run 0.5 4; fork 100 300; set flags 300 = before-exec",
       "fork 100 301; name 301 tini; run 0.5 4; excluded 300 before-exec; managed 301")

/* The manager sleeps, so that nothing is known of it but its name. */
SCRIPT(children_of_sleeping_managers_are_left_alone_before_exec,
       "name 100 systemd; fork 100 300; set flags 300 = before-exec; fork 200 301",
       "set flags 301 = before-exec; name 300 (sd-pam); name 301 (sd-pam)",
       "each 4: alone 300 0.5; alone 301 0.5", "excluded 300 before-exec; managed 301")

/* Servers that fork one process per connection: none of them has called exec. */
SCRIPT(children_of_a_program_that_computes_are_managed,
       "first postgres /usr/bin/postgres; set late = 2; run 0.5; fork 100 300",
       "set flags 300 = before-exec; run 0.5; managed 300; run 0.5 4; managed 100 300")

/* ---- the configuration ---- */

SCRIPT(an_include_with_the_command_overrides,
       "first tini /usr/bin/tini; targets include = ( { cgroup = \"/\" } ); run 0.5 4",
       "excluded 100 container-init; " ONLY("*") "; run 0.5 4; excluded 100 container-init",
       ONLY("tin*") "; run 0.5 4", "managed 100")

/* SECURITY: posing-manager */
SCRIPT(what_computes_is_asked_once,
       "first postgres /usr/bin/postgres; keep before = asked; run 0.5 100; asked = before+1")

RUN_TESTS()
