# shellcheck shell=bash
# Hostile processes: thousands of threads and mappings (20,000 and 100,000 with --full), threads that set their own
# affinities without end, frozen, stopped and uninterruptible ones, one in its own namespaces, numbers that are reused
# within a second, cgroups that appear and disappear. The daemon keeps running within bounds, and every affinity is as
# its owner set it in the end.
# SECURITY: container, reuse, stuck, many-mappings, many-threads
# boot: trouble
# when: full
# limit: 800
. "$LAB/lib.sh"

readonly GROUP=/sys/fs/cgroup/lab-vanishing MOST_MB=128
threads=3000 mappings=30000
readonly ANSWER_S=180 # numa-migrctl gives up after 10 s, which a busy host can need
full && threads=20000 mappings=100000

rss_kb() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"; }
answers() { timeout $ANSWER_S bash -c 'until numa-migrctl status; do sleep 1; done'; }

has_said() { [[ $(journalctl -q -o cat _SYSTEMD_UNIT="$1.service") == *"$2"* ]]; }

# ---- hostile programs ----

start_misplaced() { start_unit "$1" membound -f -n hostile -s 0 2 1 48; } # UNIT

# To itself its process is 1, which heeds no other signal, and its user is root.
start_boxed() {
	start_unit boxed -p KillSignal=SIGKILL \
		unshare --user --map-root-user --pid --fork --mount-proc "$(command -v membound)" -f -n hostile -s 0 2 1 48
	wait_for 10 has_child "$started"
	started=$(child_of "$started")
}

child_of() { tr -d ' ' <"/proc/$1/task/$1/children"; }
has_child() { [[ $(child_of "$1") ]]; }

# One id a line.
and_children() { # PID
	echo "$1"
	cat /proc/"$1"/task/*/children | xargs -n 1
}

is_asleep() { grep -q '^State:.D' /proc/"$(unit_pid asleep)"/task/*/status; }

still_ones() {
	effect "one is moved and then frozen" get_moved start_misplaced still
	systemctl freeze still
	effect "one is moved and then stopped" get_moved start_misplaced stopped
	kill -STOP "$(unit_pid stopped)"
	effect "one is moved and then sleeps uninterruptibly" get_moved start_unit asleep hostile asleep 48
	kill -USR1 "$(unit_pid asleep)"
	check "it does" wait_for 10 is_asleep
	effect "one in user and process namespaces of its own is moved" get_moved start_boxed
	boxed=$started
	kill -STOP "$boxed"
}

large_ones() {
	echo 300000 >/proc/sys/vm/max_map_count
	start_unit fickle hostile masks 4
	start_unit mapped hostile mappings $mappings
	start_unit many hostile threads "$threads"
	check "$mappings mappings" wait_for 200 has_said mapped "$mappings mappings"
	check "$threads threads" wait_for 300 has_said many "$threads threads"
	sleep 10
	check "it answers" answers
	figure lab_hostile_rss "$(rss_kb)" kB
	check_memory "it needs at most $MOST_MB MB" [ "$(rss_kb)" -le $((MOST_MB * 1024)) ]
	systemctl kill -s KILL many mapped
}

# Usually empty when the daemon reads it.
vanish() {
	local i
	for ((i = 0; i < 40; i++)); do
		mkdir $GROUP && setfattr -n user.numa-migrd -v observe $GROUP
		(echo 0 >$GROUP/cgroup.procs && exec true)
		rmdir $GROUP
	done 2>/dev/null
}

# Numbers go round several times.
numbers_come_again() {
	local before
	before=$(cat /proc/sys/kernel/pid_max)
	echo 1500 >/proc/sys/kernel/pid_max
	vanish &
	note "$(churn 10) short-lived processes and threads among 1,200 numbers"
	wait $!
	echo "$before" >/proc/sys/kernel/pid_max
	check "it answers" answers
}

begin
trap 'echo "$most" >/proc/sys/vm/max_map_count; rmdir $GROUP 2>/dev/null' EXIT
most=$(cat /proc/sys/vm/max_map_count)
balancing 0
settings_faults "$LAX_FREE" hostile 'x)*'
sed -i 's/^targets: {/& min_cpu_percent = 0; min_rss_mb = 1;/' "$CONF"
systemctl start numa-migrd
pid=$(daemon_pid)
still_ones
large_ones
numbers_come_again
check_equal "it is the same process" "$pid" "$(daemon_pid)"
check_equal "no error" '' "$(field MESSAGE PRIORITY=0 PRIORITY=1 PRIORITY=2 PRIORITY=3)"
systemctl stop numa-migrd
check_equal "it stops in good order" success "$(systemctl show -P Result numa-migrd)"
check_equal "the frozen one has its mask" 0-7 "$(mask_of "$(unit_pid still)")"
check_equal "the stopped one has its mask" 0-7 "$(mask_of "$(unit_pid stopped)")"
mapfile -t sleepers < <(and_children "$(unit_pid asleep)")
check_equal "the sleeping one has its mask, and so has its child" 0-7 \
	"$(masks_of "${sleepers[@]}" | cut -d' ' -f2 | sort -u)"
check_equal "the one in namespaces has its mask" 0-7 "$(masks_of "$boxed" | cut -d' ' -f2 | sort -u)"
check_equal "fickle ones have a mask of their own" '' \
	"$(masks_of "$(unit_pid fickle)" | cut -d' ' -f2 | grep -vx -e 0-7 -e 0-1)"
systemctl thaw still
kill -CONT "$(unit_pid stopped)"
systemctl stop still stopped asleep boxed fickle
systemctl reset-failed many mapped 2>/dev/null
