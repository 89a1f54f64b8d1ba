/* SPDX-License-Identifier: MIT */
/*
 * Overhead control as a closed loop: programs fault ten times as often as may be sampled, and the
 * rings hold what the period lets through. The cost settles below the cap, decisions continue, and
 * when the load ends every fault is sampled as before.
 */
#include "../support/test.h"

#include "ordeal_fixture.h"

#define CAP 0.01      /* sampling.overhead_percent, its default */
#define CAUSED_NS 600 /* estimated cost of a sample for the sampled thread */
#define DRAIN_NS 150  /* cost of reading a sample from the ring */
#define PIECE 2000    /* records drained at a time, as when a ring fills */
#define SETTLED 12    /* two intervals until the load, and ten */
#define MISPLACED 15  /* the memory of a thread is now on the other node */
#define CALM 30
#define END 60

static double share[END + 1]; /* cost of sampling in each interval */
static uint64_t period[END + 1];
static unsigned moved_before, moved_in_storm;

/* Ten times the number that the cap allows. */
static unsigned faults_in_a_second(void)
{
	if (ordeal.interval < 3 || ordeal.interval >= CALM)
		return 0;
	return (unsigned)(10 * CAP * 1e9 / (CAUSED_NS + DRAIN_NS));
}

static void fault_piece(const struct fake_thread *thread, unsigned node, unsigned count)
{
	struct fake_perf *perf = &ordeal.world->perf;
	int cpu = thread->processor;
	struct record_ring ring = fake_ring(perf, cpu);
	uint64_t id = fake_id(perf, NM_EVENT_FAULT_MIN, cpu);
	for (unsigned i = 0; i < count; i++)
		record_fault(&ring, id, thread->pid, thread->tid, gate.now_ns,
			     0x7f0000000000 + (thread->tid % 8 * 4096ULL + i % 64) * 4096,
			     machine_address(node, (thread->tid * 64ULL + i % 64) * 4096));
	fake_publish(perf, cpu, &ring);
	/* Each read of the CPU clock advances it by this. */
	gate.cpu_step_ns = (uint64_t)count * DRAIN_NS;
	nm_drain(ordeal.daemon);
	gate.cpu_step_ns = 0;
}

static unsigned fault_of(unsigned i, unsigned faults)
{
	const struct fake_thread *thread =
		fake_get(ordeal.world->fake, ordeal.world->workers[i].tid);
	uint64_t each =
		perf_get(&ordeal.world->perf, NM_EVENT_FAULT_MIN, thread->processor)->period;
	unsigned samples = (unsigned)(faults / each);
	for (unsigned left = samples; left > 0; left -= left < PIECE ? left : PIECE)
		fault_piece(thread, ordeal.world->workers[i].memory_node,
			    left < PIECE ? left : PIECE);
	return samples;
}

static void storm(void)
{
	unsigned samples = WORKERS * 2 * ORDEAL_SAMPLES; /* the samples of the fixture */
	for (unsigned i = 0; i < WORKERS; i++)
		samples += fault_of(i, faults_in_a_second() / WORKERS);
	share[ordeal.interval] = samples * (CAUSED_NS + DRAIN_NS) / 1e9;
	period[ordeal.interval] = nm_source_status(ordeal.daemon->pipeline.source)->fault_period;
	if (ordeal.interval == CALM)
		moved_in_storm = ordeal.moved - moved_before;
	if (ordeal.interval != MISPLACED)
		return;
	moved_before = ordeal.moved;
	for (unsigned i = 0; i < WORKERS; i++)
		ordeal_worker_is_now_at(i, !ordeal.world->workers[i].memory_node);
}

/* SECURITY: managed */
TEST(the_cost_settles_at_the_cap)
{
	double sum = 0;
	ordeal.short_life = END;
	ordeal.in_each = storm;
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	for (unsigned i = SETTLED; i < CALM; i++)
		sum += share[i];
	double mean = sum / (CALM - SETTLED);
	print_message("at first %.4f of a CPU, settled at %.4f, most %.4f; period %" PRIu64 "\n",
		      share[3], mean, share[SETTLED], period[CALM - 1]);
	assert_true(share[3] > 9 * CAP);
	for (unsigned i = SETTLED; i < CALM; i++)
		assert_true(share[i] <= CAP * 1.1);
	assert_true(mean > CAP / 4); /* it is not off */
	assert_true(reported_has(&ordeal.messages, "Sampling reduced: cost N % of one CPU, "
						   "its limit is N"));
}

TEST(decisions_continue)
{
	assert_true(moved_in_storm > 0);
}

TEST(the_full_rate_returns)
{
	assert_true(period[CALM - 1] > 1);
	assert_int_equal(period[END], 1);
	assert_true(reported_has(&ordeal.messages, "Sampling at full rate again"));
}

static void fork_piece(void)
{
	struct fake_perf *perf = &ordeal.world->perf;
	struct record_ring ring = fake_ring(perf, 0);
	for (uint32_t i = 0; i < PIECE; i++) {
		const uint32_t ids[4] = {50000 + i, 9000, 50000 + i, 9000};
		record_fork_exit(&ring, i % 2 == 0, ids, gate.now_ns);
	}
	fake_publish(perf, 0, &ring);
	gate.cpu_step_ns = (uint64_t)PIECE * DRAIN_NS;
	nm_drain(ordeal.daemon);
	gate.cpu_step_ns = 0;
}

static uint64_t longest_period;

/* Reading the records costs ten times the cap. */
static void fork_storm(void)
{
	for (unsigned i = 0; i < 10 * CAP * 1e9 / DRAIN_NS / PIECE; i++)
		fork_piece();
	uint64_t now = nm_source_status(ordeal.daemon->pipeline.source)->fault_period;
	if (longest_period < now)
		longest_period = now;
}

/* Forks are recorded at any period, so sampling less would not reduce their cost. */
/* SECURITY: forks */
TEST(forks_do_not_reduce_sampling)
{
	ordeal_anew();
	ordeal.short_life = SETTLED;
	ordeal.in_each = fork_storm;
	assert_int_equal(ordeal_live(), EXIT_SUCCESS);
	assert_int_equal(longest_period, 1);
}

int main(void)
{
	umask(022);
	ordeal_set_out();
	ordeal_anew();
	int failed = RUN_REGISTERED(NULL, NULL);
	ordeal_end();
	return failed;
}
