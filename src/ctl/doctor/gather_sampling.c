/* SPDX-License-Identifier: MIT */
/* Collects what the kernel permits, what the machine offers, and what really counts. */
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gather.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

/* Starts the program, for the service's configuration if the path is NULL, with its output in a
 * pipe. Returns its end for reading, or a negative errno.
 */
static int start_list(const char *program, const char *config_path, bool may_try, pid_t *ret)
{
	char *arguments[] = {(char *)program, "--list-events", "--json", NULL, NULL, NULL, NULL};
	size_t count = 3;
	posix_spawn_file_actions_t files;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	if (!may_try)
		arguments[count++] = "--no-trial";
	if (config_path) {
		arguments[count++] = "--config";
		arguments[count++] = (char *)config_path;
	}
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
	int error = posix_spawn(ret, program, &files, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	if (error)
		close(ends[0]);
	return error ? -error : ends[0];
}

static int read_list(const char *program, const char *config_path, bool may_try, json_t **ret)
{
	pid_t pid = 0;
	int status = 0;
	nm_auto(nm_closep) int fd = start_list(program, config_path, may_try, &pid);

	if (fd < 0)
		return fd;
	nm_auto(json_decrefp) json_t *list = json_loadfd(fd, 0, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!list || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return -EPROTO;
	*ret = NM_TAKE(list);
	return 0;
}

static void take_word(const json_t *object, const char *name, char *ret, size_t size)
{
	const char *word = json_string_value(json_object_get(object, name));

	(void)nm_escape(ret, size, word ? word : "", word ? strlen(word) : 0);
}

static bool is_true(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

static void take_tried(const json_t *trial, struct nm_facts *facts)
{
	struct nm_facts_tried *tried = &facts->tried;
	size_t index;
	const json_t *problem;

	facts->trial = NM_TRIAL_DONE;
	take_word(trial, "name", tried->name, sizeof(tried->name));
	take_word(trial, "memory", tried->memory, sizeof(tried->memory));
	tried->cycles = is_true(trial, "cycles");
	tried->accesses = is_true(trial, "accesses");
	tried->instructions = is_true(trial, "instructions");
	tried->flops = is_true(trial, "flops");
	tried->dram = is_true(trial, "dram");
	json_array_foreach(json_object_get(trial, "problems"), index, problem)
	{
		const char *text = json_string_value(problem);
		if (text && facts->nr_problems < NM_FACTS_PROBLEMS)
			(void)nm_escape(facts->problems[facts->nr_problems++],
					sizeof(facts->problems[0]), text, strlen(text));
	}
}

static void take_list(const json_t *list, struct nm_facts *facts)
{
	take_word(list, "table", facts->table, sizeof(facts->table));
	char names[NM_WORD_SIZE] = "";
	size_t used = 0, index;
	const json_t *source;

	json_array_foreach(json_object_get(list, "sources"), index, source)
	{
		const char *name = json_string_value(source);
		if (name && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", name);
	}
	(void)nm_escape(facts->sources, sizeof(facts->sources), names, strlen(names));
	facts->has_counters = is_true(list, "counters");
	const json_t *trial = json_object_get(list, "trial");
	int error = (int)json_integer_value(json_object_get(trial, "errno"));
	if (!trial)
		return;
	if (!error) {
		take_tried(trial, facts);
		return;
	}
	facts->trial = NM_TRIAL_REFUSED;
	facts->trial_error = -error;
	take_word(trial, "text", facts->trial_text, sizeof(facts->trial_text));
}

static void gather_events(const struct nm_doctor_options *options, struct nm_facts *facts)
{
	nm_auto(json_decrefp) json_t *list = NULL;
	bool runs = facts->daemon_pid || facts->running_source[0];

	if (!options->program)
		return;
	bool usual = !options->config_path && strcmp(options->root_path, "/") == 0;
	facts->events_error =
		read_list(options->program, usual ? NULL : facts->config_path, !runs, &list);
	if (facts->events_error == 0)
		take_list(list, facts);
	if (runs)
		facts->trial = NM_TRIAL_DAEMON_RUNS;
}

/* The names of the device by ACPI and by device tree (drivers/perf/arm_spe_pmu.c). */
static int take_spe_device(void *context, const char *name)
{
	bool *found = context;

	*found |= strstr(name, "arm,spe-v1") || strstr(name, "spe-pmu");
	return 0;
}

static void gather_spe(struct nm_platform *platform, struct nm_facts *facts)
{
	(void)platform->ops->list_directory(platform, NM_ROOT, "sys/bus/platform/devices",
					    take_spe_device, &facts->spe_device);
	facts->spe_driver =
		nm_gather_name(platform, "sys/bus/platform/drivers", "arm_spe").value == 1;
}

static void copy_text(const char *text, char *ret, size_t size)
{
	if (text)
		(void)nm_escape(ret, size, text, strlen(text));
}

void nm_gather_sampling(struct nm_platform *platform, const struct nm_doctor_options *options,
			struct nm_facts *facts)
{
	facts->paranoid = nm_gather_number(platform, "proc/sys/kernel/perf_event_paranoid");
	facts->balancing = nm_gather_number(platform, "proc/sys/kernel/numa_balancing");
	gather_spe(platform, facts);
	facts->threads_measured = options->threads_measured;
	facts->threads_undersampled = options->threads_undersampled;
	copy_text(options->running_source, facts->running_source, sizeof(facts->running_source));
	copy_text(options->trial_state, facts->trial_state, sizeof(facts->trial_state));
	copy_text(options->trial_result, facts->trial_result, sizeof(facts->trial_result));
	gather_events(options, facts);
}
