// SPDX-License-Identifier: GPL-2.0
/*
 * A perf PMU for the emulated machine of the lab, modelled by the QEMU plugin and found in the
 * memory shared with it. Event 0 samples L1 misses with address, physical address, latency and data
 * source. The others count instructions, floating-point operations and lines from DRAM. Like IBS
 * it counts per CPU only, and each event once at a time.
 *
 * The CPU's ring and counters are read by a timer while the CPU is busy and at each switch of
 * threads, so that a sample belongs to the thread that ran.
 */
#define pr_fmt(fmt) "numalab: " fmt

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/sysfs.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#include "numalab.h"

#define ATTACH_MS 10
#define ATTACH_TRIES 3000
#define DRAIN_NS (4 * NSEC_PER_MSEC)
#define DRAIN_MAX 1024 /* records at once: about 5 ms of an emulated CPU with interrupts off */
#define UNSUPPORTED_SAMPLES                                                                        \
	(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR |                   \
	 PERF_SAMPLE_STACK_USER | PERF_SAMPLE_BRANCH_STACK)

enum event_kind { MISSES, INSTRUCTIONS, FLOPS, LINES, EVENTS };

/* Touched by its own CPU only, with interrupts off. */
struct numalab_cpu {
	struct numalab_ring *ring;
	struct perf_event *events[EVENTS]; /* added to this CPU, or NULL */
	u64 dropped;			   /* of the ring's, already reported to perf */
	struct hrtimer timer;
};

static DEFINE_PER_CPU(struct numalab_cpu, numalab_cpus);
static struct numalab_shared *shared;
static struct tracepoint *sched_switch;

/* Not exported to modules. */
static int (*overflow)(struct perf_event *event, struct perf_sample_data *data,
		       struct pt_regs *regs);
static void (*log_lost_samples)(struct perf_event *event, u64 lost);

static bool is_running(const struct perf_event *event)
{
	return event && !(event->hw.state & PERF_HES_STOPPED);
}

/* Reports one period of the event. Only the last of a batch counts as the batch's interrupt, as
 * with PEBS: the others go out directly. */
static void output(struct perf_event *event, struct perf_sample_data *data, u64 ip, bool last)
{
	struct pt_regs regs = {
		.ip = ip, .flags = X86_EFLAGS_IF, .cs = ip >> 63 ? __KERNEL_CS : __USER_CS};

	if (!last)
		event->overflow_handler(event, data, &regs);
	else if (overflow(event, data, &regs))
		event->pmu->stop(event, 0);
}

/* ---- samples ---- */

static u64 data_source(const struct numalab_record *record, u32 distance)
{
	union perf_mem_data_src source = {0};

	source.mem_op = record->store ? PERF_MEM_OP_STORE : PERF_MEM_OP_LOAD;
	source.mem_snoop = PERF_MEM_SNOOP_NONE;
	source.mem_lock = PERF_MEM_LOCK_NA;
	source.mem_dtlb = PERF_MEM_TLB_NA;
	source.mem_lvl = PERF_MEM_LVL_HIT;
	if (record->level == NUMALAB_LLC) {
		source.mem_lvl |= PERF_MEM_LVL_L3;
		source.mem_lvl_num = PERF_MEM_LVLNUM_L3;
		return source.val;
	}
	source.mem_lvl_num = PERF_MEM_LVLNUM_RAM;
	source.mem_remote = distance > LOCAL_DISTANCE;
	if (distance == LOCAL_DISTANCE)
		source.mem_lvl |= PERF_MEM_LVL_LOC_RAM;
	else
		source.mem_lvl |= distance < 30 ? PERF_MEM_LVL_REM_RAM1 : PERF_MEM_LVL_REM_RAM2;
	return source.val;
}

static bool is_excluded(const struct perf_event *event, const struct numalab_record *record)
{
	bool kernel = record->ip >> 63;

	return kernel ? event->attr.exclude_kernel : event->attr.exclude_user;
}

static void output_record(struct perf_event *event, const struct numalab_record *record, bool last)
{
	struct perf_sample_data data;

	perf_sample_data_init(&data, record->address, event->hw.last_period);
	data.weight.full = record->latency;
	data.data_src.val = data_source(record, node_distance(numa_node_id(), record->node));
	data.phys_addr = record->physical;
	data.sample_flags |= PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR;
	output(event, &data, record->ip, last);
}

static void report_losses(struct numalab_cpu *cpu, u64 skipped)
{
	u64 dropped = READ_ONCE(cpu->ring->counts.dropped);
	u64 lost = dropped - cpu->dropped + skipped;

	cpu->dropped = dropped;
	if (lost && is_sampling_event(cpu->events[MISSES]))
		log_lost_samples(cpu->events[MISSES], lost);
}

/* Empties the ring; what is recorded meanwhile waits for the next time. */
static void drain_ring(struct numalab_cpu *cpu)
{
	struct perf_event *event = cpu->events[MISSES];
	const struct numalab_record *sample = NULL;
	struct numalab_ring *ring = cpu->ring;
	u64 head, end, at;

	head = READ_ONCE(ring->head);
	end = min(head, ring->tail + DRAIN_MAX);
	for (at = ring->tail; at != end; at++) {
		const struct numalab_record *record = &ring->records[at % NUMALAB_RING];

		if (is_excluded(event, record))
			continue;
		local64_add(ring->period, &event->count);
		if (sample)
			output_record(event, sample, false);
		sample = record;
	}
	report_losses(cpu, head - end);
	if (sample)
		output_record(event, sample, true);
	WRITE_ONCE(ring->tail, head);
}

/* ---- counts ---- */

static u64 counter(const struct numalab_ring *ring, enum event_kind kind)
{
	const struct numalab_counts *counts = &ring->counts;

	switch (kind) {
	case INSTRUCTIONS:
		return READ_ONCE(counts->instructions);
	case FLOPS:
		return READ_ONCE(counts->flops);
	case LINES:
		return READ_ONCE(counts->local) + READ_ONCE(counts->remote);
	default:
		return READ_ONCE(counts->l1_misses);
	}
}

static void count(struct perf_event *event)
{
	u64 now = counter(this_cpu_ptr(&numalab_cpus)->ring, event->attr.config);
	u64 passed = now - local64_xchg(&event->hw.prev_count, now);

	local64_add(passed, &event->count);
	local64_sub(passed, &event->hw.period_left);
}

static void drain_counter(struct perf_event *event)
{
	struct hw_perf_event *hw = &event->hw;
	struct perf_sample_data data;

	count(event);
	if (!is_sampling_event(event))
		return;
	while (is_running(event) && local64_read(&hw->period_left) <= 0) {
		bool last = local64_add_return(hw->sample_period, &hw->period_left) > 0;

		hw->last_period = hw->sample_period;
		perf_sample_data_init(&data, 0, hw->last_period);
		output(event, &data, 0, last);
	}
}

/* A counting event of misses has no records. */
static void drain(struct numalab_cpu *cpu)
{
	int kind;

	for (kind = 0; kind < EVENTS; kind++) {
		struct perf_event *event = cpu->events[kind];

		if (!is_running(event))
			continue;
		if (kind == MISSES && is_sampling_event(event))
			drain_ring(cpu);
		else
			drain_counter(event);
	}
}

static bool is_any_running(const struct numalab_cpu *cpu)
{
	int kind;

	for (kind = 0; kind < EVENTS; kind++)
		if (is_running(cpu->events[kind]))
			return true;
	return false;
}

/* ---- when ---- */

static void start_timer(struct numalab_cpu *cpu)
{
	if (!hrtimer_active(&cpu->timer))
		hrtimer_start(&cpu->timer, ns_to_ktime(DRAIN_NS), HRTIMER_MODE_REL_PINNED_HARD);
}

/* An idle CPU is left asleep. */
static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct numalab_cpu *cpu = container_of(timer, struct numalab_cpu, timer);

	drain(cpu);
	if (!is_any_running(cpu) || is_idle_task(current))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(DRAIN_NS));
	return HRTIMER_RESTART;
}

static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);

	drain(cpu);
	if (is_any_running(cpu) && !is_idle_task(next))
		start_timer(cpu);
}

/* ---- the PMU ---- */

static struct pmu numalab_pmu;

static int numalab_event_init(struct perf_event *event)
{
	if (event->attr.type != numalab_pmu.type)
		return -ENOENT;
	if (event->cpu < 0 || event->attr.config >= EVENTS || event->attr.freq ||
	    event->attr.precise_ip > 2)
		return -EINVAL;
	if (event->attr.sample_type & UNSUPPORTED_SAMPLES)
		return -EOPNOTSUPP;
	if (!per_cpu(numalab_cpus, event->cpu).ring)
		return -ENODEV;
	return 0;
}

static void numalab_start(struct perf_event *event, int flags)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);
	struct numalab_ring *ring = cpu->ring;
	struct hw_perf_event *hw = &event->hw;

	hw->state = 0;
	hw->last_period = hw->sample_period;
	local64_set(&hw->prev_count, counter(ring, event->attr.config));
	if (local64_read(&hw->period_left) <= 0)
		local64_set(&hw->period_left, hw->sample_period);
	if (event->attr.config == MISSES && is_sampling_event(event)) {
		ring->tail = READ_ONCE(ring->head);
		cpu->dropped = READ_ONCE(ring->counts.dropped);
		WRITE_ONCE(ring->period, min_t(u64, hw->sample_period, U32_MAX));
	}
	start_timer(cpu);
}

/* Also called while the counters are drained, and so from the timer, which then ends. */
static void numalab_stop(struct perf_event *event, int flags)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);

	if (event->attr.config == MISSES)
		WRITE_ONCE(cpu->ring->period, 0);
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int numalab_add(struct perf_event *event, int flags)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);

	struct perf_event **place = &cpu->events[event->attr.config];

	if (*place)
		return -EBUSY;
	*place = event;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		numalab_start(event, PERF_EF_RELOAD);
	perf_event_update_userpage(event);
	return 0;
}

/* Never within the timer, whose CPU this is; so the timer does not outlive its CPU's going offline.
 */
static void numalab_del(struct perf_event *event, int flags)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);

	drain(cpu);
	numalab_stop(event, PERF_EF_UPDATE);
	cpu->events[event->attr.config] = NULL;
	if (!is_any_running(cpu))
		hrtimer_cancel(&cpu->timer);
	perf_event_update_userpage(event);
}

/* Without samples, as it must not run inside the output of one; those of misses are counted by
 * drain_ring(). */
static void numalab_read(struct perf_event *event)
{
	if (is_running(event) && (event->attr.config != MISSES || !is_sampling_event(event)))
		count(event);
}

PMU_FORMAT_ATTR(event, "config:0-7");

static struct attribute *format_attributes[] = {&format_attr_event.attr, NULL};
static const struct attribute_group format_group = {.name = "format", .attrs = format_attributes};

/* The periods give 50 to 400 samples a second on a CPU that waits for memory most of the time. They
 * are short, because the emulated machine runs at 250 MHz. */
PMU_EVENT_ATTR_STRING(instructions, event_instructions, "event=0x01,period=100003");
PMU_EVENT_ATTR_STRING(flops, event_flops, "event=0x02,period=20011");
/* clang-format off */
PMU_EVENT_ATTR_STRING(cache-misses, event_cache_misses, "event=0x03,period=10007");
/* clang-format on */

static struct attribute *event_attributes[] = {
	&event_instructions.attr.attr, &event_flops.attr.attr, &event_cache_misses.attr.attr, NULL};
static const struct attribute_group event_group = {.name = "events", .attrs = event_attributes};

/* "CPU node accesses l1_misses local remote stall_cycles dropped", a line per CPU. */
static ssize_t counters_show(struct device *device, struct device_attribute *attribute, char *page)
{
	int cpu, at = 0;

	for_each_possible_cpu(cpu) {
		struct numalab_ring *ring = per_cpu(numalab_cpus, cpu).ring;
		struct numalab_counts counts;

		if (!ring)
			continue;
		counts = ring->counts;
		at += sysfs_emit_at(page, at, "%d %d %llu %llu %llu %llu %llu %llu\n", cpu,
				    cpu_to_node(cpu), counts.accesses, counts.l1_misses,
				    counts.local, counts.remote, counts.stall_cycles,
				    counts.dropped);
	}
	return at;
}
static DEVICE_ATTR_RO(counters);

/* "CPU cycles late_ns queue_cycles", a line per CPU. */
static ssize_t times_show(struct device *device, struct device_attribute *attribute, char *page)
{
	int cpu, at = 0;

	for_each_possible_cpu(cpu) {
		struct numalab_ring *ring = per_cpu(numalab_cpus, cpu).ring;

		if (ring)
			at += sysfs_emit_at(page, at, "%d %llu %llu %llu\n", cpu,
					    ring->counts.cycles, ring->counts.late_ns,
					    ring->counts.queue_cycles);
	}
	return at;
}
static DEVICE_ATTR_RO(times);

static struct attribute *device_attributes[] = {&dev_attr_counters.attr, &dev_attr_times.attr,
						NULL};
static const struct attribute_group device_group = {.attrs = device_attributes};
static const struct attribute_group *numalab_groups[] = {&format_group, &event_group, &device_group,
							 NULL};

static struct pmu numalab_pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_invalid_context,
	.attr_groups = numalab_groups,
	.event_init = numalab_event_init,
	.add = numalab_add,
	.del = numalab_del,
	.start = numalab_start,
	.stop = numalab_stop,
	.read = numalab_read,
};

/* ---- finding out about each other ---- */

/*
 * Asks the plugin to instrument the code that the guest runs, which it does not do before: booting
 * would take twice as long. Waits until it does.
 */
static int attach_plugin(void)
{
	int tries;

	if (shared->magic != NUMALAB_MAGIC) {
		pr_err("no plugin\n");
		return -ENODEV;
	}
	WRITE_ONCE(shared->attached, 1);
	for (tries = 0; tries < ATTACH_TRIES; tries++) {
		if (READ_ONCE(shared->instrumented))
			return 0;
		msleep(ATTACH_MS);
	}
	pr_err("the plugin does not answer\n");
	return -ETIMEDOUT;
}

/* Reads there and waits for the plugin's answer, which is given before the read ends. */
static int probe_address(void *address)
{
	struct numalab_probe *probe = &shared->probe;

	WRITE_ONCE(probe->answered, 0);
	WRITE_ONCE(probe->address, (u64)address);
	(void)READ_ONCE(*(u8 *)address);
	WRITE_ONCE(probe->address, 0);
	return READ_ONCE(probe->answered) ? 0 : -ENXIO;
}

struct find_ring {
	u8 *anywhere;
	int error;
};

static void find_ring(void *argument)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);
	struct find_ring *find = argument;
	u32 vcpu;

	find->error = probe_address(find->anywhere);
	if (find->error)
		return;
	vcpu = READ_ONCE(shared->probe.vcpu);
	if (vcpu >= NUMALAB_MAX_CPUS) {
		find->error = -E2BIG;
		return;
	}
	cpu->ring = &shared->rings[vcpu];
	shared->node_of_vcpu[vcpu] = numa_node_id();
}

/* CPUs that are offline now have no ring, and so no events. */
static int find_rings(void)
{
	static u8 anywhere;
	struct find_ring find = {.anywhere = &anywhere};
	int cpu, error;

	for_each_online_cpu(cpu) {
		error = smp_call_function_single(cpu, find_ring, &find, 1);
		if (error || find.error)
			return error ? error : find.error;
	}
	return 0;
}

/* Finds the difference between the address that the plugin sees and ours, for a page of RAM. */
static int find_offset(unsigned long pfn, u64 *ret)
{
	int error = probe_address(__va(PFN_PHYS(pfn)));

	if (!error)
		*ret = PFN_PHYS(pfn) - READ_ONCE(shared->probe.physical);
	return error;
}

/* A node's memory is taken to be in one piece on the plugin's side; its two ends must agree. */
static int find_region(int node)
{
	unsigned long first = node_start_pfn(node), end = node_end_pfn(node);
	struct numalab_region *region = &shared->regions[node];
	u64 low, high;
	int error;

	error = find_offset(first, &low);
	if (!error)
		error = find_offset(end - 1, &high);
	if (error)
		return error;
	if (low != high) {
		pr_err("the memory of node %d is not in one piece\n", node);
		return -EXDEV;
	}
	region->first = PFN_PHYS(first) - low;
	region->end = PFN_PHYS(end) - low;
	region->to_guest = low;
	return 0;
}

static int describe_machine(void)
{
	int node, other, error;

	for_each_node_state(node, N_MEMORY) {
		if (node >= NUMALAB_MAX_NODES)
			return -E2BIG;
		error = find_region(node);
		if (error)
			return error;
		for_each_node_state(other, N_MEMORY)
			if (other < NUMALAB_MAX_NODES)
				shared->distance[node][other] = node_distance(node, other);
		shared->nodes = max_t(u32, shared->nodes, node + 1);
	}
	return find_rings();
}

/* ---- coming and going ---- */

static void *address_of(const char *name)
{
	struct kprobe probe = {.symbol_name = name};
	void *address;

	if (register_kprobe(&probe) < 0)
		return NULL;
	address = probe.addr;
	unregister_kprobe(&probe);
	return address;
}

static void take_sched_switch(struct tracepoint *tracepoint, void *unused)
{
	if (strcmp(tracepoint->name, "sched_switch") == 0)
		sched_switch = tracepoint;
}

static int find_kernel_parts(void)
{
	overflow = address_of("perf_event_overflow");
	log_lost_samples = address_of("perf_log_lost_samples");
	for_each_kernel_tracepoint(take_sched_switch, NULL);
	return overflow && log_lost_samples && sched_switch ? 0 : -ENOENT;
}

static void prepare_timers(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hrtimer *timer = &per_cpu(numalab_cpus, cpu).timer;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
		hrtimer_setup(timer, on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
		hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		timer->function = on_timer;
#endif
	}
}

static int numalab_probe(struct pci_dev *device, const struct pci_device_id *id)
{
	int error = pcim_enable_device(device);

	if (error)
		return error;
	if (pci_resource_len(device, 2) < sizeof(*shared))
		return -ENODEV;
	shared = devm_memremap(&device->dev, pci_resource_start(device, 2), sizeof(*shared),
			       MEMREMAP_WB);
	if (IS_ERR(shared))
		return PTR_ERR(shared);
	error = find_kernel_parts();
	if (!error)
		error = attach_plugin();
	if (!error)
		error = describe_machine();
	if (error)
		return error;
	prepare_timers();
	error = tracepoint_probe_register(sched_switch, on_sched_switch, NULL);
	if (error)
		return error;
	error = perf_pmu_register(&numalab_pmu, "numalab", -1);
	if (error) {
		tracepoint_probe_unregister(sched_switch, on_sched_switch, NULL);
		tracepoint_synchronize_unregister();
		return error;
	}
	WRITE_ONCE(shared->ready, 1);
	return 0;
}

/* Not while an event is open: each holds the module. */
static void numalab_remove(struct pci_dev *device)
{
	perf_pmu_unregister(&numalab_pmu);
	tracepoint_probe_unregister(sched_switch, on_sched_switch, NULL);
	tracepoint_synchronize_unregister();
	WRITE_ONCE(shared->ready, 0);
}

static const struct pci_device_id numalab_ids[] = {{PCI_DEVICE(0x1af4, 0x1110)}, {0}};
MODULE_DEVICE_TABLE(pci, numalab_ids);

static struct pci_driver numalab_driver = {
	.name = "numalab",
	.id_table = numalab_ids,
	.probe = numalab_probe,
	.remove = numalab_remove,
	.driver.suppress_bind_attrs = true, /* so unloading is the only way to take it away */
};
module_pci_driver(numalab_driver);

MODULE_DESCRIPTION("Modelled memory samples of the emulated NUMA machine as a perf PMU");
MODULE_LICENSE("GPL");
