# shellcheck shell=bash
# The machine changes while the daemon runs: the kernel refuses events, CPUs and memory disappear and return, a cpuset
# shrinks, the clock is set, another program profiles, journald and the bus are restarted, and /run is full. The daemon
# continues each time, and restores every affinity in the end.
# SECURITY: full-disk, read-only
# boot: trouble
# when: full
# limit: 480
. "$LAB/lib.sh"

readonly CPUS=/sys/devices/system/cpu MEMORY=/sys/devices/system/node/node3 FILL=/run/lab-fill
readonly RUN=/run/numa-migrd DISK=/var/lab/run.img

intervals() { numa-migrctl --json status | sed -n 's/.*"intervals": *\([0-9]*\).*/\1/p' | head -n 1; }
more_intervals() { (($(intervals) > counted)); }

# It is the same process, and has had a further interval.
goes_on() { # AFTER WHAT
	counted=$(intervals)
	check "$1: it continues" wait_for 10 more_intervals
	check_equal "$1: it is the same process" "$pid" "$(daemon_pid)"
}

start_worker() {
	start_unit changing membound -f -n changing -s 0 2 1 48
	worker=$started
}

# ---- what changes ----

# Events that are open stay; others are the helper's to open.
events_refused() {
	echo 3 >/proc/sys/kernel/perf_event_paranoid
	check "a reload while events are refused" systemctl reload numa-migrd
	goes_on "events are refused"
}

cpus_go() {
	local cpu
	for cpu in 4 5; do echo 0 >$CPUS/cpu$cpu/online; done
	check_equal "two CPUs are gone" 0-3,6-7 "$(cat $CPUS/online)"
	goes_on "a node without CPUs"
	check "no thread is held on CPUs that are not there" fails workers_masked 4-5 "$worker"
	for cpu in 4 5; do echo 1 >$CPUS/cpu$cpu/online; done
	effect "they are back, and a thread goes there" get_moved start_worker
	goes_on "CPUs are back"
}

# One block of the last node that can be had: others hold what cannot be moved.
memory_block() {
	local block
	for block in $(printf '%s\n' $MEMORY/memory*/state | sort -rV | head -n 4); do
		timeout 20 tee "$block" <<<offline >/dev/null 2>&1 && echo "$block" && return
	done
	return 1
}

memory_goes() {
	local block
	if ! block=$(memory_block); then
		skip "a block of memory goes and comes back" "this kernel does not give one away"
		return
	fi
	goes_on "a block of memory is gone"
	check "it comes back" tee "$block" <<<online
	goes_on "it is back"
}

cpuset_shrinks() {
	effect "a thread is moved in its cpuset" get_moved start_worker
	systemctl set-property --runtime changing.service AllowedCPUs=0-3
	check "the cpuset shrinks: its threads stay inside" wait_for 5 workers_masked 0-3 "$worker"
	goes_on "a smaller cpuset"
	systemctl set-property --runtime changing.service AllowedCPUs=0-7
	goes_on "a wider cpuset"
}

clock_is_set() {
	local before
	before=$(intervals)
	date -s "@$(($(date +%s) + 7200))" >/dev/null
	sleep 3
	check "two hours at once are no two hours of intervals" [ $(($(intervals) - before)) -lt 3600 ]
	goes_on "the clock two hours ahead"
	date -s "@$(($(date +%s) - 7200))" >/dev/null
	goes_on "the clock back again"
}

# There is no limit on software events; unit tests cover the counters of the hardware.
another_profiler_runs() {
	perf record -q -a -F 99 -e cpu-clock,page-faults -o /dev/null -- sleep 4 >/dev/null
	goes_on "another profiler"
}

services_restart() {
	mark_journal
	systemctl restart systemd-journald
	systemctl reload numa-migrd
	check "journald restarted: entries arrive" wait_for 10 has_entry KIND=reload
	check "a trial begins" numa-migrctl trial start
	systemctl restart dbus
	check "the bus restarted: it is there again" wait_for 30 numa-migrctl status
	goes_on "another bus"
	check "the trial continues" grep -q '^Trial: running' <<<"$(numa-migrctl trial)"
	check "and can be ended" grep -q '^Trial: over, ended early' <<<"$(numa-migrctl trial stop)"
}

run_is_full() {
	get_moved start_worker
	fallocate -l "$(df --output=avail -B1 /run | tail -n 1)" $FILL
	head -c 65536 /dev/zero >$FILL.rest 2>/dev/null
	check_equal "/run is full" 0 "$(df --output=avail -B1 /run | tail -n 1 | tr -d ' ')"
	sleep 3
	goes_on "/run is full"
	systemctl stop numa-migrd
	check "/run is full: its affinity is restored" workers_masked 0-7 "$worker"
	rm -f $FILL $FILL.rest
	check "there is room again: it starts" systemctl start numa-migrd
	pid=$(daemon_pid)
	goes_on "there is room again"
}

# A file system of its own for the runtime directory: other programs of this machine need their own.
mount_run() {
	local user
	user=$(id -u numa-migrd)
	mkdir -p $RUN
	truncate -s 16M $DISK
	mkfs.ext4 -q -F -E "root_owner=$user:$user" $DISK && mount -o loop,errors=remount-ro $DISK $RUN
}

# As the kernel makes it after an error of the medium.
becomes_readable_only() {
	echo lab >"/sys/fs/ext4/$(basename "$(findmnt -no SOURCE $RUN)")/trigger_fs_error"
}

# The kernel still accepts writes to files that were open before.
nothing_can_be_written() {
	systemctl stop numa-migrd
	mount_run
	check "a file system of its own: it starts" systemctl start numa-migrd
	pid=$(daemon_pid)
	effect "a thread is moved" get_moved start_worker
	becomes_readable_only
	check "nothing can be written any more" fails touch $RUN/anything
	goes_on "a read-only file system"
	systemctl stop numa-migrd
	check "a read-only file system: its affinity is restored" workers_masked 0-7 "$worker"
	mark_journal
	check "a read-only file system: it does not start" fails systemctl start numa-migrd
	check "a read-only file system: and logs the reason" wait_for 5 says_read_only
	umount $RUN
	rm -f $DISK
	check "it can be written again: it starts automatically" wait_for 30 is_active
	pid=$(daemon_pid)
}

says_read_only() { [[ $(field MESSAGE PRIORITY=3) == *"Runtime directory unusable: Read-only file system"* ]]; }

begin
trap 'umount $RUN 2>/dev/null; rm -f $FILL $FILL.rest $DISK' EXIT
balancing 0
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
echo 2 >/proc/sys/kernel/perf_event_paranoid
settings_faults "$LAX_FREE" changing
systemctl start numa-migrd
pid=$(daemon_pid)
start_worker
events_refused
cpus_go
memory_goes
cpuset_shrinks
clock_is_set
another_profiler_runs
services_restart
run_is_full
nothing_can_be_written
systemctl stop numa-migrd
check_equal "every mask is back" 0-7 "$(masks_of "$worker" | cut -d' ' -f2 | sort -u)"
systemctl stop changing
echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
