/* SPDX-License-Identifier: MIT */
/*
 * How long root waits for the answer to a pause that restores the affinities of 1,000 threads while
 * a user floods the service with calls from eight connections. Needs root and dbus-daemon.
 */
#define FAKE_THREADS 1010
#define FAKE_CGROUP_BYTES 96
#include "../support/machine.h"
#include "../unit/fake_platform.h"
#include "../unit/fixture.h"
#include "bench.h"

#define print_message(...) fprintf(stderr, __VA_ARGS__)
#define skip() exit(0)
#include "../support/flood_bus.h"
#include "../unit/bus_fixture.h"
#include "numa-migrd/lease.h"
#include "numa-migrd/ledger.h"

#define BOOT "bench"
#define THREADS 1000
#define CPUS 8
#define ITEMS 60
#define PAUSES 5
#define FLOOD_S 2

static struct nm_topology *topology;
static struct fake *fake;
static int directory;
static struct nm_actuator *actuator;

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static double wall_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- the service, with leases as of a daemon ---- */

static void lease_all(void)
{
	struct nm_ledger *ledger;
	must(nm_ledger_open(directory, BOOT, &ledger), "ledger");
	for (uint32_t tid = 100; tid < 100 + THREADS; tid++) {
		const struct fake_thread *thread = fake_get(fake, tid);
		const struct nm_ledger_entry entry = {
			.tid = tid,
			.pid = thread->pid,
			.start_ticks = thread->start_ticks,
			.given_ticks = thread->start_ticks,
			.uid = thread->uid,
			.unrestricted = true,
			.original = topology->possible,
			.target = topology->nodes[1].cpus,
		};
		must(nm_ledger_give(ledger, &entry), "ledger");
		must(fake_set_mask(fake, tid, fake_from_bitmap(entry.target)), "affinity");
	}
	nm_ledger_free(ledger);
	must(nm_actuator_new(&fake->platform, topology, directory, BOOT, NULL, NULL, &actuator),
	     "actuator");
}

static int pause_all(void *context)
{
	(void)context;
	unsigned failed = nm_actuator_return_all(actuator);
	bool trace = fake_trace(fake) != NULL;
	nm_actuator_free(actuator);
	lease_all();
	return failed || trace ? -EIO : 0;
}

static void give_status(void *context, const struct nm_show *show)
{
	(void)context;
	for (size_t i = 0; i < ITEMS; i++)
		nm_show_u64(show, "item", i);
}

static void give_facts(void *context, struct nm_control_facts *ret)
{
	(void)context;
	*ret = (struct nm_control_facts){0};
}

static void ignore_request(void *context, const char *method, uid_t uid)
{
	(void)context, (void)method, (void)uid;
}

static void ignore_bus(void *context, int error)
{
	(void)context, (void)error;
}

static void serve(int ready)
{
	const struct nm_control_ops ops = {
		.status = give_status,
		.pause = pause_all,
		.facts = give_facts,
		.asked = ignore_request,
		.bus_changed = ignore_bus,
	};
	struct nm_control *control = NULL;
	sd_event *event = NULL;
	lease_all();
	int r = sd_event_new(&event);
	if (r >= 0)
		r = nm_control_new(event, &ops, &control);
	if (write(ready, &r, sizeof(r)) != sizeof(r) || r < 0)
		_exit(1);
	(void)sd_event_loop(event);
	_exit(0);
}

/* ---- root ---- */

static double pause_ms(void)
{
	sd_bus *bus = NULL;
	double before_ms = wall_ms();
	must(sd_bus_open_system(&bus), "bus");
	must(sd_bus_call_method(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Pause", NULL, NULL,
				""),
	     "pause");
	double took_ms = wall_ms() - before_ms;
	sd_bus_flush_close_unref(bus);
	return took_ms;
}

static double longest_pause_ms(void)
{
	double longest_ms = 0;
	for (unsigned i = 0; i < PAUSES; i++) {
		double took_ms = pause_ms();
		longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
	}
	return longest_ms;
}

int main(void)
{
	char root[FIXTURE_PATH];
	pid_t flooders[FLOOD_CONNECTIONS];
	void *state = NULL;
	if (geteuid() != 0) {
		fprintf(stderr, "# needs root: skipped\n");
		return 0;
	}
	topology = machine_topology(2, CPUS);
	must(topology ? 0 : -ENOMEM, "topology");
	fake = fake_new(CPUS);
	for (uint32_t tid = 100; tid < 100 + THREADS; tid++)
		(void)fake_process(fake, tid, 1);
	fixture_make(root, sizeof(root));
	directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(setup(&state, open_policy, serve), "bus");
	if (!state) {
		fprintf(stderr, "# needs dbus-daemon: skipped\n");
		return 0;
	}
	bench_print("pause_ms", longest_pause_ms(), "ms");
	flood_begin(flooders);
	sleep(FLOOD_S);
	bench_print("pause_ms_under_flood", longest_pause_ms(), "ms");
	flood_end(flooders);
	(void)teardown(&state);
	close(directory);
	fixture_remove(root);
	nm_topology_free(topology);
	nm_platform_free(&fake->platform);
	return 0;
}
