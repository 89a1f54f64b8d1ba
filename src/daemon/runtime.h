/* SPDX-License-Identifier: MIT */
/* The runtime directory with what outlives a restart, --restore, and the confinement by Landlock.
 */
#ifndef NM_DAEMON_RUNTIME_H
#define NM_DAEMON_RUNTIME_H

#include "affinity/move.h"
#include "options.h"

struct nm_journal;
struct nm_released_list;
struct nm_unresponsive_list;

/* The runtime directory, and what outlives a restart there. */
struct nm_runtime_state {
	int directory;
	int lock; /* descriptor, if the directory is open */
	struct nm_released_list *released;
	struct nm_unresponsive_list *unresponsive; /* NULL: not supported by this kind of machine */
	bool unsaved_reported, unresponsive_reported; /* failures to save these lists were logged */
	unsigned unrestored;	 /* CPU affinities that the last stop or pause could not restore */
	bool record_was_damaged; /* of affinities, at the start; some of it is unknown */
	char boot_id[64];
};

/* Returns RUNTIME_DIRECTORY or /run/numa-migrd. */
const char *nm_runtime_path(void);
/* Opens that directory and locks it. Returns -EBUSY while another daemon
 * holds it. */
int nm_runtime_open(struct nm_runtime_state *state);
/* Closes it. If all affinities were restored, only the lists of released and unresponsive processes
 * remain in it. */
void nm_runtime_close(struct nm_runtime_state *state, bool restored);
/* Restores the affinities of moves that a crash interrupted. Returns 0; 1 if something could not be
 * restored, or is no longer known; or a negative errno. */
int nm_runtime_restore(struct nm_runtime_state *state, const struct nm_options *options,
		       struct nm_journal *journal, nm_move_event_fn on_event, void *context);
/* Loads the list of processes that do not answer workers, before the pipeline is opened. Errors are
 * logged, as by the following ones. */
void nm_runtime_load_unresponsive(struct nm_runtime_state *state, struct nm_journal *journal);
/* Loads the list of released processes and threads. It needs the platform. */
void nm_runtime_load_released(struct nm_runtime_state *state, struct nm_platform *platform,
			      struct nm_journal *journal);
/* Saves both lists if they have changed; the latter only while the platform is open. */
void nm_runtime_save(struct nm_runtime_state *state, struct nm_platform *platform,
		     struct nm_journal *journal);

/* ---- confine.c ---- */

/*
 * Confines this process, and the threads that it creates from now on, with Landlock (landlock(7))
 * to the files that it needs; /proc/PID/root, cwd and exe of other processes are not among them.
 * Called after the configuration was read and the runtime directory was opened. Returns 0;
 * -EOPNOTSUPP if the kernel does not support it; or another negative errno.
 */
int nm_confine(const struct nm_options *options, const struct nm_config *config,
	       int runtime_directory);

#endif
