/* SPDX-License-Identifier: MIT */
/*
 * Words of script.h for ticks and commands of an administrator, one by one, with simulated time.
 * Process 100 runs away from its memory, and 101 near it. Commands are quantities: "pause = 0"
 * performs it, and checks its result. Include after cmocka.h.
 */
#ifndef NM_TEST_TICKS_WORDS_H
#define NM_TEST_TICKS_WORDS_H

#include "dump_fixture.h"
#include "fake_mover.h"
#include "ticks_fixture.h"

static struct world *world;
static struct nm_daemon *service;
static int kept_stderr = -1; /* while messages go to the log of the world */

static inline void unmute(void)
{
	if (kept_stderr >= 0)
		world_unmute(kept_stderr);
	kept_stderr = -1;
}

#define SCRIPT_FAILING() unmute()
#include "../support/script.h"

static struct nm_platform_ops changed_ops;
static const struct nm_platform_ops *kept_ops; /* NULL: not changed */
static char answer[512];		       /* of the last reload */

static inline void open_daemon(void)
{
	service = service_open(world);
}

static inline void close_daemon(void)
{
	service_close(service);
	service = NULL;
}

static inline int open_ticks(void **state)
{
	(void)state;
	world = world_new();
	fake_mover = (struct fake_mover){0};
	kept_ops = NULL;
	world_worker(world, 100, 1);
	world_worker(world, 101, 0);
	fake_sleep(world->fake, 60000);
	kept_stderr = world_mute(world);
	open_daemon();
	return 0;
}

static inline int close_ticks(void **state)
{
	(void)state;
	if (!world) /* a test that closes it has failed */
		return 0;
	close_daemon();
	unmute();
	const struct fake_thread *trace = fake_trace(world->fake);
	unsigned open_fds = fake_open_fds(world->fake), open_events = world->perf.open_count;
	world_free(world);
	world = NULL;
	assert_null(trace);
	assert_int_equal(open_fds, 0);
	assert_int_equal(open_events, 0);
	return 0;
}

static inline void change_ops(struct nm_platform_ops ops)
{
	kept_ops = world->platform.ops;
	changed_ops = ops;
	world->platform.ops = &changed_ops;
}

ACTION(restore_calls, world->platform.ops = kept_ops)

/* ---- ticks ---- */

WORD(tick)
{
	for (unsigned i = 0; i < U(0); i++)
		assert_int_equal(nm_tick(service), 0);
}

static inline bool tick_until_moved(uint32_t tid)
{
	for (unsigned i = 0; i < 30 && !world_moved(world, tid); i++)
		assert_int_equal(nm_tick(service), 0);
	return world_moved(world, tid);
}

/* Whether it is on the node of its memory after 30 ticks at most. */
QUANTITY(moves, tick_until_moved(U(0)))
QUANTITY(moved, world_moved(world, U(0)))
QUANTITY(narrow, fake_trace(world->fake) != NULL)
KNOB(processor, fake_get(world->fake, U(0))->processor)
QUANTITY(affinity, fake_get(world->fake, U(0))->mask)
ACTION(pin, fake_pin(world->fake, U(0), fake_cpus(U(1), U(2))))
ACTION(clone, fake_clone(world->fake, U(0), U(1)))

WORD(restart)
{
	close_daemon();
	open_daemon();
}

/* ---- commands ---- */

static inline int reload(char *error, size_t size)
{
	return nm_command_reload(service, error, size);
}

QUANTITY(pause, nm_command_pause(service))
QUANTITY(resume, nm_command_resume(service))
QUANTITY(dry_run, nm_command_set_dry_run(service, U(0)))
QUANTITY(release, nm_command_release(service, U(0)))
QUANTITY(manage, nm_command_manage(service, U(0)))
QUANTITY(raise_control, nm_command_raise_control(service, U(0), U(1)))
QUANTITY(reload, (answer[0] = '\0', reload(answer, sizeof(answer))))
KNOB(started_dry, service->options.dry_run)
KNOB(configured_dry, service->config->general.dry_run)
KNOB(balancing, service->machine.balancing)
KNOB(policy, service->config->threads.policy)
NAMES(policy, {"auto", NM_POLICY_AUTO})
KNOB(inject, service->config->sampling.inject)
NAMES(inject, {"none", NM_INJECT_NONE})

/* Writes settings, in which "|" stands for ";". */
WORD(write)
{
	char text[512];
	snprintf(text, sizeof(text), WORLD_SETTINGS "%s\n", step_rest(step));
	for (char *at = text; (at = strchr(at, '|')); at++)
		*at = ';';
	world_configure(world, text);
}

/* To the last reload. */
TEXT(answer, answer)

/* The topology cannot be read when everything is opened again. */
ACTION(break_topology, service->options.topology.xml_path = "/nonexistent.xml")

WORD(mend_topology)
{
	service->options.topology.xml_path = world->xml;
	assert_int_equal(nm_pipeline_open(service), 0);
}

/* ---- what is shown ---- */

TEXT(log, world_logged(world))

static inline const char *status(const char *name)
{
	show_document(nm_command_dump(service), "status");
	return shown_text(0, name);
}

TEXT(status, status(step->word[0]))

static inline double status_number(const char *name)
{
	(void)status(name);
	return shown_number(0, name);
}

static inline size_t rows_of(const char *section)
{
	show_document(nm_command_dump(service), section);
	return shown.rows;
}

QUANTITY(number, status_number(step->word[0]))
QUANTITY(rows, rows_of(step->word[0]))
QUANTITY(events, world->perf.open_count)
QUANTITY(has_source, service->pipeline.source != NULL)
QUANTITY(wakeup_s, nm_loop_wakeup_s(service))
QUANTITY(movers, fake_mover.alive)
QUANTITY(movers_configured, fake_mover.configured)

#endif
