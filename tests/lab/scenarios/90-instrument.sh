# shellcheck shell=bash
# The instrument itself: perf reads the modelled PMU, each sample is right, none is lost, and starting,
# stopping, throttling, hotplug and unloading do no harm.
# boot: instrumented
# when: full
# limit: 240
# limit-full: 4500
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

readonly DATA=/var/lab/perf.data RATE=/proc/sys/kernel/perf_event_max_sample_rate

both_at_work() { [[ -s /var/lab/near.tid && -s /var/lab/far.tid ]]; }

# A thread on the CPUs of one node writing to memory of another.
thread() { # NAME CPU-NODE MEMORY-NODE
	numactl -N "$2" membound -n "$1" "$3" 1 32 >"/var/lab/$1.tid" &
}

record() { # SECONDS [OPTION…]
	perf record -q -B -N -a -e numalab// -c 997 -d -W --phys-data -m 512 -o $DATA "${@:2}" -- sleep "$1" >&2
}

events() { # TYPE: how many of them were recorded
	perf report -i $DATA --stats 2>/dev/null |
		awk -v type="$1" '$1 == type && !n { n = $3 } END { print n + 0 }'
}

# A thread's first samples that were served by DRAM, at addresses of its own.
samples() { # NAME
	perf script -i $DATA --comms "$1" -F comm,cpu,addr,weight,phys_addr,data_src 2>/dev/null |
		grep -E ' 7f[0-9a-f]{10} .*RAM' 2>/dev/null | head -n 2000 >"/var/lab/$1.samples"
}

# At least 95 % of the thread's samples match.
nearly_all() { # NAME PATTERN
	local counts
	counts=$(awk -v pattern="$2" '$0 ~ pattern { m++ } END { print m + 0, NR }' "/var/lab/$1.samples")
	awk '{ exit !($2 >= 500 && $1 >= 0.95 * $2) }' <<<"$counts" && return
	note "of $1 match, of all: $counts; such as: $(grep -v -E "$2" "/var/lab/$1.samples" | head -n 3)"
	return 1
}

check_samples() { # DESCRIPTION NAME PATTERN
	check "$1" nearly_all "$2" "$3"
}

counts() {
	perf stat -x, -a -e numalab// -- sleep 0.2 2>&1 >/dev/null |
		awk -F, '{ n = $1 } END { print n + 0, "counted" >"/dev/stderr"; exit !(n > 100) }'
}

# Two floating-point operations for each line that the program goes through, from memory, and some instructions. The
# kernel's own lines and instructions are counted as well, but it has no floating point.
counts_amounts() {
	perf stat -x, -a -e numalab/instructions/ -e numalab/flops/ -e numalab/cache-misses/ -- sleep 1 2>&1 >/dev/null |
		awk -F, '{ n[NR] = $1 } END { print n[1], n[2], n[3] >"/dev/stderr"
			exit !(n[3] > 1000 && n[2] > n[3] && n[2] < 2.2 * n[3] && n[1] > 4 * n[2]) }'
}

is_open() { lsmod | awk '$1 == "numalab" { users = $3 } END { exit !users }'; }

cpus_off_and_on() {
	local cpu
	for cpu in 7 5; do
		echo 0 >/sys/devices/system/cpu/cpu$cpu/online
		sleep 0.3
		echo 1 >/sys/devices/system/cpu/cpu$cpu/online
	done
}

check "the module loads" load_pmu
check_equal "its format" config:0-7 "$(cat "$PMU/format/event")"
thread near 0 0
near=$!
thread far 1 3
far=$!
wait_for 60 both_at_work
sleep 1

before=$(readings)
record 2 --synth=task
after=$(readings)
note "accesses, local, remote, stall cycles: $before, then $after"
note "$(events SAMPLE) samples"
check "thousands of samples" [ "$(events SAMPLE)" -gt 2000 ]
check_equal "none lost" '0 0' "$(events LOST) $(events LOST_SAMPLES)"
samples near
samples far
check_samples "the near thread's accesses are local" near 'Local RAM'
check_samples "the far thread's are remote" far 'Remote RAM'
check_samples "near: the latency of distance 10" near ' (200|0) +[0-9a-f]+$'
check_samples "far: the latency of distance 31" far ' (620|0) +[0-9a-f]+$'
check_samples "near: physical addresses on node 0" near \
	' [0-3]?[0-9a-f]?[0-9a-f]?[0-9a-f]?[0-9a-f]?[0-9a-f]?[0-9a-f]?[0-9a-f]$'
check_samples "far: physical addresses on node 3" far \
	' 1[4-7][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]$'

for _ in 1 2 3 4 5; do
	perf stat -a -e numalab// -- true 2>/dev/null
done
check "it counts after five starts and stops" counts

rate=$(cat $RATE)
echo 250 >$RATE
record 1 --synth=no
throttled=$(events THROTTLE)
echo "$rate" >$RATE
check "a low rate throttles ($throttled times)" [ "$throttled" -gt 0 ]
check "and it counts afterwards" counts

# An hour at the full rate, every L1 miss, or a few seconds; CPUs go and come meanwhile.
seconds=8
full && seconds=3600
perf record -q -B -N -a -e numalab// -c 1 -d -W --phys-data -m 512 --synth=no -o - \
	-- sleep $seconds >/dev/null &
recorder=$!
wait_for 60 is_open
check "unloading while it is open is refused" fails rmmod numalab
cpus_off_and_on
while kill -0 $recorder 2>/dev/null; do
	sleep 5
	full && cpus_off_and_on
done
check "it counts after $seconds s at the full rate, CPUs going and coming" counts

kill "$near" "$far"
lockstep 8 0:0 &
counted=$!
sleep 2
check "it counts instructions, floating-point operations and lines from DRAM" counts_amounts
kill "$counted"
check "it unloads" rmmod numalab
check "and loads again" load_pmu
thread near 0 0
check "it counts" counts
kill $!
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
