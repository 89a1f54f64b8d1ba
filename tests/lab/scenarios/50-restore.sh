# shellcheck shell=bash
# However the daemon ends, every affinity is the owner's: of moved threads, of threads and children created by them, also
# while the daemon was deaf or dead, and of a moved thread that called exec.
# boot: trouble
# limit: 700
. "$LAB/lib.sh"

readonly DROP_IN=/run/systemd/system/numa-migrd.service.d/no-restore.conf

# Two processes whose working thread has its memory on node 2: one that will bear a thread and a child,
# one that will execute a program from the thread that is not the leader.
start_families() {
	settings_faults "$LAX_FREE" family
	start 1 family 2 64 0
	bearer=$started
	start 1 family 2 64 0
	executor=$started
	mark_journal
	systemctl start numa-migrd
}

stop_families() {
	systemctl stop numa-migrd
	everyone | xargs kill -9
	wait 2>/dev/null
}

# The two and their children, one id a line.
everyone() {
	cat /proc/"$bearer"/task/*/children /proc/"$executor"/task/*/children | xargs -n 1
	printf '%s\n' "$bearer" "$executor"
}

everyones_masks() {
	local pids
	mapfile -t pids < <(everyone)
	masks_of "${pids[@]}"
}

all_masks() { everyones_masks | cut -d' ' -f2 | sort -u; }

both_moved() { moved "$bearer" && moved "$executor"; }

have_born() { [[ $(threads_of "$bearer" | wc -l) == 3 && $(cat /proc/"$bearer"/task/*/children) ]]; }
have_executed() { grep -q after-exec "/proc/$executor/cmdline"; }

bear_and_execute() {
	kill -USR1 "$bearer"
	kill -USR2 "$executor"
	wait_for 10 have_born && wait_for 10 have_executed
}

# After a crash the daemon must restore the affinities, and move nothing while they are examined.
move_no_more() { echo 'threads: { policy = "none"; };' >"$CONF"; }

masks_are() { [[ $(all_masks) == "$1" ]]; }

# If it has not been moved, another one is started in its place.
unless_moved_anew() { # VARIABLE
	local -n pid=$1
	moved "$pid" && return
	kill -9 "$pid"
	start 1 family 2 64 0
	pid=$started
}

# Waits until both have been moved. The kernel may move one to its memory first: then there is nothing to do. Nothing
# holds them afterwards, so that a later look may find one elsewhere.
round() { # NAME
	local attempt both=no
	start_families
	for attempt in 1 2 3 4 5 6 7 8; do
		wait_for 20 moved_or_home "$bearer" "$executor" && both_moved && both=yes && break
		note "$1: attempt $attempt: not both"
		((attempt == 8)) && break
		unless_moved_anew bearer
		unless_moved_anew executor
	done
	effect "$1: both are moved" [ "$both" = yes ]
}

restored() { # NAME
	check "$1: every affinity is the original one" wait_for 15 masks_are 0-7
	masks_are 0-7 || everyones_masks | sed 's/^/#   /'
	stop_families
}

after_stop() {
	round stop
	check "stop: a thread, a child and an exec" bear_and_execute
	systemctl stop numa-migrd
	restored stop
}

after_kill() {
	local pid
	round kill
	pid=$(daemon_pid)
	kill -STOP "$pid"
	narrow_as_in_a_move "$bearer" "$executor"
	check "kill: a thread, a child and an exec, unseen by the daemon" bear_and_execute
	move_no_more
	kill -9 "$pid"
	restored kill
}

# Without ExecStopPost= and with a pause before the restart, only the next start can restore the affinities.
after_death() {
	mkdir -p "${DROP_IN%/*}"
	printf '[Service]\nExecStopPost=\nRestartSec=40\n' >"$DROP_IN"
	systemctl daemon-reload
	round death
	move_no_more
	kill -9 "$(daemon_pid)"
	narrow_as_in_a_move "$bearer" "$executor"
	check "death: a thread, a child and an exec while it is dead" bear_and_execute
	check "death: their affinities are still narrowed" fails masks_are 0-7
	check "death: it is started again" wait_for 90 is_active
	restored death
	rm "$DROP_IN"
	rmdir --ignore-fail-on-non-empty "${DROP_IN%/*}"
	systemctl daemon-reload
}

start_confined() {
	start_unit narrow -p AllowedCPUs=0-5 family 2 64 0
	bearer=$started executor=$started
}

after_widening() {
	settings_faults "$LAX_FREE" family
	systemctl start numa-migrd
	effect "widening: moved inside the cpuset" get_moved start_confined
	systemctl stop numa-migrd
	check "widening: the affinity of the cpuset is restored" masks_are 0-5
	systemctl set-property --runtime narrow.service AllowedCPUs=0-7
	check "widening: the threads follow the cpuset" wait_for 5 masks_are 0-7
	systemctl stop narrow
}

begin
balancing 0
after_stop
after_kill
after_death
after_widening
