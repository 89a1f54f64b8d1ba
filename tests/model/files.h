/* SPDX-License-Identifier: MIT */
/* Generates kernel files for the model. */
#ifndef NM_SIM_FILES_H
#define NM_SIM_FILES_H

#include "model.h"

/* Text written to a buffer; length also grows beyond its size. */
struct nm_sim_text {
	char *buffer;
	size_t size, length;
};

static inline uint64_t nm_sim_start_ticks(const struct nm_sim_process *process)
{
	return (uint64_t)((NM_SIM_BOOT_S + process->started_s) * NM_SIM_TICKS_PER_S);
}

/* Return -ENOENT if the file does not exist. */
int nm_sim_write_root(const struct nm_sim *sim, const char *path, struct nm_sim_text *text);
int nm_sim_write_thread(const struct nm_sim *sim, const struct nm_sim_task *task, const char *name,
			struct nm_sim_text *text);
/* Generates maps or numa_maps as an allocated text. Returns 0, -ENOENT or -ENOMEM. */
int nm_sim_write_memory(const struct nm_sim *sim, const struct nm_sim_process *process,
			const char *name, char **ret, size_t *ret_length);

#endif
