/* SPDX-License-Identifier: MIT */
/* Parses workload files: libconfig text with users, programs and phases. Errors contain place and
 * reason. */
#include <libconfig.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "sim.h"

#define USERS_MAX 1000
#define PROGRAMS_MAX 1000
#define PHASES_MAX 1000
#define PARTS_SLACK 1e-6

struct reader {
	const char *name;
	char *error;
	size_t error_size;
};

/* A number in a structure: its offset and its bounds. */
struct number {
	const char *name;
	size_t offset;
	double least, most;
	bool whole; /* an unsigned; otherwise a double */
};

static const struct number phase_numbers[] = {
	{"giga", offsetof(struct nm_sim_phase, giga), 1e-3, 1e9, false},
	{"cpi", offsetof(struct nm_sim_phase, cpi), 0.05, 100, false},
	{"flops", offsetof(struct nm_sim_phase, flops), 0, 1, false},
	{"vector", offsetof(struct nm_sim_phase, vector), 1, 64, false},
	{"misses_per_kilo", offsetof(struct nm_sim_phase, misses_per_kilo), 0, 1000, false},
	{"overlap", offsetof(struct nm_sim_phase, overlap), 1, 64, false},
	{"neighbours", offsetof(struct nm_sim_phase, neighbour_part), 0, 1, false},
	{"shared", offsetof(struct nm_sim_phase, shared_part), 0, 1, false},
	{"idle_s", offsetof(struct nm_sim_phase, idle_s), 0, 1e6, false},
	{"barrier_giga", offsetof(struct nm_sim_phase, period_giga), 0, 1e9, false},
	{"threads", offsetof(struct nm_sim_phase, threads), 0, 1000000, true},
	{"touched", offsetof(struct nm_sim_phase, touched), 0, 1, false},
};
static const struct number program_numbers[] = {
	{"threads", offsetof(struct nm_sim_program, threads), 1, 1000000, true},
	{"footprint_mb", offsetof(struct nm_sim_program, footprint_mb), 1, 1e7, false},
	{"page_kb", offsetof(struct nm_sim_program, page_kb), 4, 2048, true},
};
static const struct number threads_of_user[] = {{"threads", 0, 1, 1000000, true}};
static const struct number user_numbers[] = {
	{"start_s", offsetof(struct nm_sim_user, start_s), 0, 1e6, false},
	{"spread_s", offsetof(struct nm_sim_user, spread_s), 0, 1e6, false},
	{"idle_s", offsetof(struct nm_sim_user, idle_s), 0, 1e6, false},
	{"node", offsetof(struct nm_sim_user, node), 0, 254, true},
};

static int wrong(const struct reader *reader, const config_setting_t *setting, const char *reason)
{
	char name[64] = "";
	const char *raw = setting ? config_setting_name(setting) : NULL;
	if (raw)
		(void)nm_escape(name, sizeof(name), raw, strlen(raw));
	char line[16] = "";
	if (setting)
		(void)snprintf(line, sizeof(line), ":%u", config_setting_source_line(setting));
	(void)snprintf(reader->error, reader->error_size, "%s%s: %s%s%s", reader->name, line, name,
		       raw ? ": " : "", reason);
	return -EINVAL;
}

static int out_of_memory(const struct reader *reader)
{
	(void)snprintf(reader->error, reader->error_size, "%s: out of memory", reader->name);
	return -ENOMEM;
}

static double number_in(const config_setting_t *value)
{
	return config_setting_type(value) == CONFIG_TYPE_FLOAT
		       ? config_setting_get_float(value)
		       : (double)config_setting_get_int64(value);
}

static int take_number(const struct reader *reader, const struct number *number,
		       const config_setting_t *value, void *object)
{
	char reason[96];
	(void)snprintf(reason, sizeof(reason), "a %snumber from %.15g to %.15g is allowed",
		       number->whole ? "whole " : "", number->least, number->most);
	if (!config_setting_is_number(value))
		return wrong(reader, value, reason);
	double given = number_in(value);
	if (!(given >= number->least && given <= number->most) ||
	    (number->whole && given != floor(given)))
		return wrong(reader, value, reason);
	if (number->whole)
		*(unsigned *)(void *)((char *)object + number->offset) = (unsigned)given;
	else
		*(double *)(void *)((char *)object + number->offset) = given;
	return 0;
}

/* Returns 1 if the value was taken, 0 if it is none of these numbers. */
static int try_numbers(const struct reader *reader, const struct number *numbers, size_t count,
		       const config_setting_t *value, void *object)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(numbers[i].name, config_setting_name(value)) != 0)
			continue;
		int r = take_number(reader, &numbers[i], value, object);
		return r < 0 ? r : 1;
	}
	return 0;
}

static bool has_name(const config_setting_t *value, const char *name)
{
	return strcmp(config_setting_name(value), name) == 0;
}

/* Returns the index of the word. */
static int take_word(const struct reader *reader, const config_setting_t *value,
		     const char *const *words, const char *allowed, int *ret)
{
	const char *given = config_setting_get_string(value);
	for (int i = 0; given && words[i]; i++)
		if (strcmp(given, words[i]) == 0) {
			*ret = i;
			return 0;
		}
	return wrong(reader, value, allowed);
}

/*
 * Reports an unknown setting with the known ones: the numbers, and the other names before the NULL.
 */
static int unknown(const struct reader *reader, const config_setting_t *value, const char *of,
		   const struct number *numbers, size_t count, const char *const *others)
{
	char reason[320];
	(void)snprintf(reason, sizeof(reason), "no setting of a %s; there are", of);
	for (size_t i = 0; i < count || *others; i++) {
		size_t used = strlen(reason);
		(void)snprintf(reason + used, sizeof(reason) - used, " %s",
			       i < count ? numbers[i].name : *others++);
	}
	return wrong(reader, value, reason);
}

static int need_list(const struct reader *reader, const config_setting_t *value, int most)
{
	if (!config_setting_is_list(value) || config_setting_length(value) == 0)
		return wrong(reader, value, "a list ( … ) with one entry at least is needed");
	return config_setting_length(value) > most ? wrong(reader, value, "too many entries") : 0;
}

/* ---- phases ---- */

static int read_phase(const struct reader *reader, const config_setting_t *group,
		      struct nm_sim_phase *ret)
{
	if (!config_setting_is_group(group))
		return wrong(reader, group, "a phase is a group { … }");
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *value = config_setting_get_elem(group, (unsigned)i);
		int r = try_numbers(reader, phase_numbers, NM_ARRAY_SIZE(phase_numbers), value,
				    ret);
		if (r == 0)
			r = unknown(reader, value, "phase", phase_numbers,
				    NM_ARRAY_SIZE(phase_numbers), (const char *const[]){NULL});
		if (r < 0)
			return r;
	}
	ret->private_part = 1 - ret->neighbour_part - ret->shared_part;
	if (ret->private_part < -PARTS_SLACK)
		return wrong(reader, group, "neighbours and shared are more than 1 together");
	ret->private_part = fmax(ret->private_part, 0);
	return 0;
}

static int read_phases(const struct reader *reader, const config_setting_t *list,
		       struct nm_sim_program *program)
{
	int r = need_list(reader, list, PHASES_MAX);
	if (r < 0)
		return r;
	size_t count = (size_t)config_setting_length(list);
	nm_autofree struct nm_sim_phase *phases = calloc(count, sizeof(*phases));
	if (!phases)
		return out_of_memory(reader);
	for (size_t i = 0; i < count && r == 0; i++) {
		phases[i] = program->phases[0]; /* settings that are missing are those of the base
						 * program */
		r = read_phase(reader, config_setting_get_elem(list, (unsigned)i), &phases[i]);
	}
	if (r < 0)
		return r;
	free(program->phases);
	program->phases = NM_TAKE(phases);
	program->nr_phases = count;
	return 0;
}

/* ---- programs ---- */

static int take_name(const struct reader *reader, const config_setting_t *value,
		     char ret[NM_SIM_NAME_BYTES])
{
	const char *given = config_setting_get_string(value);
	if (!given || !given[0] || strlen(given) >= NM_SIM_NAME_BYTES)
		return wrong(reader, value, "a name of 1 to 31 bytes is allowed");
	(void)nm_escape(ret, NM_SIM_NAME_BYTES, given, strlen(given));
	return 0;
}

static int read_program_setting(const struct reader *reader, const config_setting_t *value,
				struct nm_sim_program *program)
{
	static const char *const touches[] = {"own", "master", NULL};
	static const char *const others[] = {"like", "name", "touch", "phases", NULL};
	int touch = 0; /* set or unused, which not every compiler can detect */
	int r = try_numbers(reader, program_numbers, NM_ARRAY_SIZE(program_numbers), value,
			    program);
	if (r != 0)
		return r < 0 ? r : 0;
	if (has_name(value, "like"))
		return 0;
	if (has_name(value, "name"))
		return take_name(reader, value, program->name);
	if (has_name(value, "phases"))
		return read_phases(reader, value, program);
	if (!has_name(value, "touch"))
		return unknown(reader, value, "program", program_numbers,
			       NM_ARRAY_SIZE(program_numbers), others);
	r = take_word(reader, value, touches, "\"own\" or \"master\" is allowed", &touch);
	if (r == 0)
		program->touch = (enum nm_sim_touch)touch;
	return r;
}

static int unknown_program(const struct reader *reader, const config_setting_t *setting,
			   const char *given)
{
	char reason[320] = "a program is \"sp\" or { like = \"sp\"; … }; there are";
	char clean[64];
	if (given) {
		(void)nm_escape(clean, sizeof(clean), given, strlen(given));
		(void)snprintf(reason, sizeof(reason), "no such program: %s; there are", clean);
	}
	for (const char *const *name = nm_sim_programs(); *name; name++) {
		size_t used = strlen(reason);
		(void)snprintf(reason + used, sizeof(reason) - used, " %s", *name);
	}
	return wrong(reader, setting, reason);
}

static int take_bool(const struct reader *reader, const config_setting_t *value, bool *ret)
{
	if (config_setting_type(value) != CONFIG_TYPE_BOOL)
		return wrong(reader, value, "true or false is allowed");
	*ret = config_setting_get_bool(value) != 0;
	return 0;
}

static bool is_program(const char *name)
{
	for (const char *const *known = nm_sim_programs(); *known; known++)
		if (strcmp(name, *known) == 0)
			return true;
	return false;
}

static int check_program(const struct reader *reader, const config_setting_t *setting,
			 const struct nm_sim_program *program)
{
	if (program->page_kb != 4 && program->page_kb != 2048)
		return wrong(reader, setting, "page_kb is 4 or 2048");
	if (program->footprint_mb * 1024 / program->page_kb > 64e6)
		return wrong(reader, setting, "more than 64 million pages: take page_kb = 2048");
	return 0;
}

/* "sp", or { like = "sp"; threads = 10; … }. */
static int read_program(const struct reader *reader, const config_setting_t *setting,
			struct nm_sim_user *user, unsigned threads)
{
	const char *name = config_setting_get_string(setting);
	int number;
	if (config_setting_is_group(setting)) {
		if (!config_setting_lookup_string(setting, "like", &name))
			return wrong(reader, setting, "a program is \"like\" a built-in one");
		if (config_setting_lookup_int(setting, "threads", &number) && number > 0)
			threads = (unsigned)number;
	}
	if (!name || !is_program(name))
		return unknown_program(reader, setting, name);
	if (threads == 0)
		return wrong(reader, setting, "threads are missing, here or of the user");
	struct nm_sim_program *program = nm_sim_user_add(user, name, threads);
	if (!program)
		return out_of_memory(reader);
	int r = 0;
	for (int i = 0;
	     config_setting_is_group(setting) && r == 0 && i < config_setting_length(setting); i++)
		r = read_program_setting(reader, config_setting_get_elem(setting, (unsigned)i),
					 program);
	return r < 0 ? r : check_program(reader, setting, program);
}

/* ---- users ---- */

static int read_user_setting(const struct reader *reader, const config_setting_t *value,
			     struct nm_sim_user *user)
{
	static const char *const placements[] = {"system", "direct", "interleave", "oracle", NULL};
	static const char *const others[] = {"threads",	  "name",     "repeat",
					     "placement", "programs", NULL};
	int placement = 0; /* as above */
	int r = try_numbers(reader, user_numbers, NM_ARRAY_SIZE(user_numbers), value, user);
	if (r != 0)
		return r < 0 ? r : 0;
	if (has_name(value, "programs") || has_name(value, "threads"))
		return 0;
	if (has_name(value, "name"))
		return take_name(reader, value, user->name);
	if (has_name(value, "repeat"))
		return take_bool(reader, value, &user->for_ever);
	if (!has_name(value, "placement"))
		return unknown(reader, value, "user", user_numbers, NM_ARRAY_SIZE(user_numbers),
			       others);
	r = take_word(reader, value, placements,
		      "\"system\", \"direct\", \"interleave\" or \"oracle\" is allowed",
		      &placement);
	if (r == 0)
		user->placement = (enum nm_sim_placement)placement;
	return r;
}

static int read_user(const struct reader *reader, const config_setting_t *group,
		     struct nm_sim_workload *workload)
{
	if (!config_setting_is_group(group))
		return wrong(reader, group, "a user is a group { … }");
	struct nm_sim_user *user = nm_sim_workload_add(workload, "user");
	unsigned threads = 0;
	int r = 0;
	if (!user)
		return out_of_memory(reader);
	for (int i = 0; i < config_setting_length(group) && r == 0; i++)
		r = read_user_setting(reader, config_setting_get_elem(group, (unsigned)i), user);
	if (r < 0)
		return r;
	if (user->placement == NM_SIM_PLACE_DIRECT && user->node < 0)
		return wrong(reader, group, "placement = \"direct\" needs a node");
	const config_setting_t *value = config_setting_get_member(group, "threads");
	r = value ? take_number(reader, threads_of_user, value, &threads) : 0;
	if (r < 0)
		return r;
	const config_setting_t *programs = config_setting_get_member(group, "programs");
	if (!programs)
		return wrong(reader, group, "programs are missing");
	r = need_list(reader, programs, PROGRAMS_MAX);
	for (int i = 0; r == 0 && i < config_setting_length(programs); i++)
		r = read_program(reader, config_setting_get_elem(programs, (unsigned)i), user,
				 threads);
	return r;
}

/* ---- root ---- */

static int read_root(const struct reader *reader, const config_setting_t *root,
		     struct nm_sim_workload *workload)
{
	static const struct number limit = {"limit_s", offsetof(struct nm_sim_workload, limit_s), 1,
					    1e7, false};
	static const char *const others[] = {"users", "full_page_cache", NULL};
	const config_setting_t *users = config_setting_get_member(root, "users");
	int r = 0;
	for (int i = 0; i < config_setting_length(root) && r == 0; i++) {
		const config_setting_t *value = config_setting_get_elem(root, (unsigned)i);
		if (has_name(value, "users"))
			continue;
		if (has_name(value, "full_page_cache")) {
			r = take_bool(reader, value, &workload->full_page_cache);
			continue;
		}
		r = try_numbers(reader, &limit, 1, value, workload);
		r = r == 0 ? unknown(reader, value, "workload", &limit, 1, others) : r < 0 ? r : 0;
	}
	if (r == 0 && !users)
		return wrong(reader, NULL, "users are missing");
	if (r == 0)
		r = need_list(reader, users, USERS_MAX);
	for (int i = 0; r == 0 && i < config_setting_length(users); i++)
		r = read_user(reader, config_setting_get_elem(users, (unsigned)i), workload);
	for (size_t u = 0; r == 0 && u < workload->nr_users; u++)
		if (workload->users[u].for_ever && !(workload->limit_s > 0))
			r = wrong(reader, users, "repeat = true needs a limit_s");
	return r;
}

static int read_text(const struct reader *reader, const char *text, config_t *config,
		     struct nm_sim_workload *workload)
{
	if (strstr(text, "@include"))
		return wrong(reader, NULL, "@include is not allowed");
	if (!config_read_string(config, text)) {
		(void)snprintf(reader->error, reader->error_size, "%s:%d: %s", reader->name,
			       config_error_line(config), config_error_text(config));
		return -EINVAL;
	}
	return read_root(reader, config_root_setting(config), workload);
}

int nm_sim_workload_parse(const char *name, const char *text, size_t length, char *error,
			  size_t error_size, struct nm_sim_workload *ret)
{
	const struct reader reader = {.name = name, .error = error, .error_size = error_size};
	struct nm_sim_workload workload = {0};
	nm_autofree char *copy = strndup(text, length);
	config_t config;
	if (!copy)
		return out_of_memory(&reader);
	if (strlen(copy) != length)
		return wrong(&reader, NULL, "a NUL byte: no text");
	config_init(&config);
	int r = read_text(&reader, copy, &config, &workload);
	config_destroy(&config);
	if (r < 0) {
		nm_sim_workload_clear(&workload);
		return r;
	}
	*ret = workload;
	return 0;
}
