/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "affinity/move.h"
#include "numa-migrd/file.h"
#include "platform/helper.h"
#include "report.h"
#include "runtime.h"

#define DEFAULT_DIRECTORY "/run/numa-migrd"

/* Several directories would be separated by colons (systemd.exec(5)); the unit has only one. */
const char *nm_runtime_path(void)
{
	const char *path = getenv("RUNTIME_DIRECTORY");
	return path ? path : DEFAULT_DIRECTORY;
}

static int open_runtime_directory(void)
{
	const char *path = nm_runtime_path();
	if (!getenv("RUNTIME_DIRECTORY") && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int nm_runtime_open(struct nm_runtime_state *state)
{
	nm_auto(nm_closep) int fd = open_runtime_directory();
	nm_auto(nm_closep) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return fd;
	if (proc < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* Another user with write access could make the daemon set any affinity of any thread. */
	if ((st.st_mode & 022) || (geteuid() != 0 && st.st_uid != geteuid()))
		return -EPERM;
	int r = nm_lock_take(fd, proc, &state->lock);
	if (r == 0)
		state->directory = nm_take_fd(&fd);
	return r;
}

void nm_runtime_close(struct nm_runtime_state *state, bool restored)
{
	if (state->directory < 0)
		return;
	if (restored)
		(void)unlinkat(state->directory, NM_LOCK_NAME, 0);
	close(state->lock);
	close(state->directory);
	state->directory = -1;
}

/* The contents of damaged lines are unknown; usually each is one affinity. */
static void report_damage(struct nm_runtime_state *state, struct nm_journal *journal,
			  const char *name, const struct nm_restoration *found)
{
	if (found->bad_lines == 0)
		return;
	nm_report(journal, NM_MESSAGE_RESTORE, LOG_ERR,
		  "/run/numa-migrd/%s damaged: %zu line%s from line %zu on; check affinities "
		  "(taskset -acp)",
		  name, found->bad_lines, nm_plural(found->bad_lines, "", "s"),
		  found->first_bad_line);
	state->record_was_damaged = true;
}

/* If root runs the daemon, there is no helper that would have restored the sysctl. */
static void restore_balancing(const struct nm_options *options)
{
	if (geteuid() != 0 || options->open_platform)
		return;
	struct nm_helper_context context = {
		.state_path = NM_HELPER_STATE_PATH,
		.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	};
	if (context.proc_fd < 0)
		return;
	(void)nm_helper_restore(&context);
	close(context.proc_fd);
}

/* A file that cannot be understood is renamed, so that the next start does not fail. */
static int set_aside(struct nm_runtime_state *state, struct nm_journal *journal, const char *name)
{
	char damaged[64];
	(void)snprintf(damaged, sizeof(damaged), "%s.damaged", name);
	if (renameat(state->directory, name, state->directory, damaged) < 0)
		return -errno;
	nm_report(journal, NM_MESSAGE_RESTORE, LOG_ERR,
		  "/run/numa-migrd/%s unreadable, kept as %s; check affinities (taskset -acp)",
		  name, damaged);
	state->record_was_damaged = true;
	return 1;
}

/* Returns 1 if something could not be restored. */
static int restore_file(struct nm_runtime_state *state, struct nm_journal *journal,
			const struct nm_restore_input *input, const char *name)
{
	struct nm_restoration found;
	int r = strcmp(name, NM_MOVES_NAME) == 0 ? nm_moves_restore(input, &found)
						 : nm_ledger_restore(input, &found);
	if (r == -EBADMSG || r == -EPERM)
		return set_aside(state, journal, name);
	if (r < 0)
		return r;
	if (r > 0 || found.failed > 0)
		nm_report(journal, NM_MESSAGE_RESTORE, found.failed ? LOG_WARNING : LOG_NOTICE,
			  "Recovered after unclean shutdown: %d affinit%s restored, %u failed", r,
			  nm_plural((unsigned)r, "y", "ies"), found.failed);
	report_damage(state, journal, name, &found);
	return found.failed > 0 || found.bad_lines > 0;
}

int nm_runtime_restore(struct nm_runtime_state *state, const struct nm_options *options,
		       struct nm_journal *journal, nm_move_event_fn on_event, void *context)
{
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_topology_freep) struct nm_topology *topology = NULL;
	struct nm_platform_options direct = {.root_path = "/"};
	const struct nm_topology_source cpus = {.xml_path = options->topology.xml_path};
	char error[256];

	restore_balancing(options);
	int r = nm_machine_open_platform(options, &direct, &platform);
	if (r < 0)
		return r;
	r = cpus.xml_path ? nm_topology_load(&cpus, error, sizeof(error), &topology)
			  : nm_topology_load_cpus(NULL, &topology);
	if (r < 0)
		return r;
	r = nm_proc_read_boot_id(platform, state->boot_id, sizeof(state->boot_id));
	if (r < 0)
		return r;
	const struct nm_restore_input input = {
		.platform = platform,
		.topology = topology,
		.directory = state->directory,
		.boot_id = state->boot_id,
		.on_event = on_event,
		.context = context,
	};
	r = restore_file(state, journal, &input, NM_MOVES_NAME);
	int of_ledger = r < 0 ? r : restore_file(state, journal, &input, NM_LEDGER_NAME);
	return of_ledger < 0 ? of_ledger : r > 0 || of_ledger > 0;
}

static void report_unread(struct nm_journal *journal, const char *name, int r, const char *effect)
{
	if (r < 0)
		nm_report(journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "%s in the runtime directory not fully read: %s; %s", name, strerror(-r),
			  effect);
}

/* Logged once. Until the list can be saved again, it exists only in this daemon. */
static void report_unsaved(struct nm_journal *journal, const char *name, int r, const char *effect,
			   bool *reported)
{
	if (r < 0 && !*reported)
		nm_report(journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "%s in the runtime directory not written: %s; %s", name, strerror(-r),
			  effect);
	*reported = r < 0;
}

void nm_runtime_load_unresponsive(struct nm_runtime_state *state, struct nm_journal *journal)
{
	int r = nm_unresponsive_list_load(state->unresponsive, state->directory, state->boot_id);
	report_unread(journal, NM_WORKER_MEMORY_NAME, r,
		      "processes that did not answer may be queried again");
}

void nm_runtime_load_released(struct nm_runtime_state *state, struct nm_platform *platform,
			      struct nm_journal *journal)
{
	int r = nm_released_list_load(state->released, platform, state->directory, state->boot_id);
	report_unread(journal, NM_RELEASED_NAME, r,
		      "earlier releases and external changes may be lost");
}

void nm_runtime_save(struct nm_runtime_state *state, struct nm_platform *platform,
		     struct nm_journal *journal)
{
	if (platform)
		report_unsaved(journal, NM_RELEASED_NAME,
			       nm_released_list_save(state->released, platform, state->directory,
						     state->boot_id),
			       "releases hold until a restart only", &state->unsaved_reported);
	if (state->unresponsive)
		report_unsaved(journal, NM_WORKER_MEMORY_NAME,
			       nm_unresponsive_list_save(state->unresponsive, state->directory,
							 state->boot_id),
			       "processes that do not answer may be queried again after a restart",
			       &state->unresponsive_reported);
}
