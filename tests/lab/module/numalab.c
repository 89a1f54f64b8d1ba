// SPDX-License-Identifier: GPL-2.0
/*
 * A perf PMU for the emulated machine of the lab: memory samples with address, physical address,
 * latency and data source, modelled by the QEMU plugin and found in the memory shared with it. Like
 * IBS it counts per CPU only, one event at a time. It counts records; `period` L1 misses make one.
 *
 * The CPU's ring is emptied by a timer while the CPU is busy and at each switch of threads, so that
 * a sample belongs to the thread that ran.
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

#define DEFAULT_PERIOD 997 /* some 5,000 samples a second of a memory-bound CPU */
#define ATTACH_MS 10
#define ATTACH_TRIES 3000
#define DRAIN_NS (4 * NSEC_PER_MSEC)
#define DRAIN_MAX 1024 /* records at once: about 5 ms of an emulated CPU with interrupts off */
#define UNSUPPORTED_SAMPLES                                                                        \
	(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR |                   \
	 PERF_SAMPLE_STACK_USER | PERF_SAMPLE_BRANCH_STACK)

/* Touched by its own CPU only, with interrupts off. */
struct numalab_cpu {
	struct numalab_ring *ring;
	struct perf_event *event; /* added to this CPU, or NULL */
	bool running;
	u64 dropped; /* of the ring's, already reported to perf */
	struct hrtimer timer;
};

static DEFINE_PER_CPU(struct numalab_cpu, numalab_cpus);
static struct numalab_shared *shared;
static struct tracepoint *sched_switch;

/* Not exported to modules. */
static int (*overflow)(struct perf_event *event, struct perf_sample_data *data,
		       struct pt_regs *regs);
static void (*log_lost_samples)(struct perf_event *event, u64 lost);

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

/* Only the last of a batch counts as the batch's interrupt, as with PEBS: the others go out
 * directly. */
static int output(struct perf_event *event, const struct numalab_record *record, bool last)
{
	struct pt_regs regs = {.ip = record->ip, .flags = X86_EFLAGS_IF};
	struct perf_sample_data data;

	regs.cs = record->ip >> 63 ? __KERNEL_CS : __USER_CS;
	perf_sample_data_init(&data, record->address, event->hw.last_period);
	data.weight.full = record->latency;
	data.data_src.val = data_source(record, node_distance(numa_node_id(), record->node));
	data.phys_addr = record->physical;
	data.sample_flags |= PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR;
	if (last)
		return overflow(event, &data, &regs);
	event->overflow_handler(event, &data, &regs);
	return 0;
}

/* Counts the record; true: it is one to be sampled. */
static bool account(struct perf_event *event, const struct numalab_record *record)
{
	struct hw_perf_event *hw = &event->hw;

	if (is_excluded(event, record))
		return false;
	local64_inc(&event->count);
	if (!is_sampling_event(event) || local64_sub_return(1, &hw->period_left) > 0)
		return false;
	hw->last_period = hw->sample_period;
	local64_set(&hw->period_left, hw->sample_period);
	return true;
}

static void report_losses(struct numalab_cpu *cpu, u64 skipped)
{
	u64 dropped = READ_ONCE(cpu->ring->counts.dropped);
	u64 lost = dropped - cpu->dropped + skipped;

	cpu->dropped = dropped;
	if (lost && is_sampling_event(cpu->event))
		log_lost_samples(cpu->event, lost);
}

static void numalab_stop(struct perf_event *event, int flags);

/* Empties the ring; what is recorded meanwhile waits for the next time. */
static void drain(struct numalab_cpu *cpu)
{
	struct perf_event *event = cpu->event;
	const struct numalab_record *sample = NULL;
	struct numalab_ring *ring = cpu->ring;
	u64 head, end, at;

	if (!cpu->running)
		return;
	head = READ_ONCE(ring->head);
	end = min(head, ring->tail + DRAIN_MAX);
	for (at = ring->tail; at != end; at++) {
		const struct numalab_record *record = &ring->records[at % NUMALAB_RING];

		if (!account(event, record))
			continue;
		if (sample)
			output(event, sample, false);
		sample = record;
	}
	report_losses(cpu, head - end);
	if (sample && output(event, sample, true))
		numalab_stop(event, 0);
	WRITE_ONCE(ring->tail, head);
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
	if (!cpu->running || is_idle_task(current))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(DRAIN_NS));
	return HRTIMER_RESTART;
}

static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);

	if (!cpu->running)
		return;
	drain(cpu);
	if (cpu->running && !is_idle_task(next))
		start_timer(cpu);
}

/* ---- the PMU ---- */

static struct pmu numalab_pmu;

static int numalab_event_init(struct perf_event *event)
{
	if (event->attr.type != numalab_pmu.type)
		return -ENOENT;
	if (event->cpu < 0 || event->attr.config > U32_MAX || event->attr.precise_ip > 2)
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

	event->hw.state = 0;
	if (local64_read(&event->hw.period_left) <= 0 || flags & PERF_EF_RELOAD)
		local64_set(&event->hw.period_left, event->hw.sample_period);
	event->hw.last_period = event->hw.sample_period;
	ring->tail = READ_ONCE(ring->head);
	cpu->dropped = READ_ONCE(ring->counts.dropped);
	cpu->running = true;
	WRITE_ONCE(ring->period, event->attr.config ? event->attr.config : DEFAULT_PERIOD);
	start_timer(cpu);
}

/* Also called by drain(), and so from the timer, which then ends. */
static void numalab_stop(struct perf_event *event, int flags)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);

	WRITE_ONCE(cpu->ring->period, 0);
	cpu->running = false;
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int numalab_add(struct perf_event *event, int flags)
{
	struct numalab_cpu *cpu = this_cpu_ptr(&numalab_cpus);

	if (cpu->event)
		return -EBUSY;
	cpu->event = event;
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
	hrtimer_cancel(&cpu->timer);
	cpu->event = NULL;
	perf_event_update_userpage(event);
}

/* The count is kept up to date by drain(), which must not run inside the output of a sample. */
static void numalab_read(struct perf_event *event)
{
}

PMU_FORMAT_ATTR(period, "config:0-31");

static struct attribute *format_attributes[] = {&format_attr_period.attr, NULL};
static const struct attribute_group format_group = {.name = "format", .attrs = format_attributes};

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
static const struct attribute_group *numalab_groups[] = {&format_group, &device_group, NULL};

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
