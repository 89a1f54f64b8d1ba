# shellcheck shell=bash
# Helpers of the scenarios in the instrumented machine, beside lib.sh: the modelled PMU and its counters.

readonly PMU=/sys/bus/event_source/devices/numalab
readonly KERNEL_TROUBLE='WARNING:|BUG:|Oops|lockup|rcu.*stall|Call Trace|blocked for more than'

load_pmu() {
	[[ -d $PMU ]] || insmod /lab/numalab.ko
}

# Sums over all CPUs since boot: "accesses local remote stall_cycles".
counters() {
	awk '{ a += $3; l += $5; r += $6; s += $7 } END { printf "%.0f %.0f %.0f %.0f\n", a, l, r, s }' \
		$PMU/counters
}

# What the kernel has complained about since boot.
kernel_trouble() { dmesg | grep -E "$KERNEL_TROUBLE"; }
