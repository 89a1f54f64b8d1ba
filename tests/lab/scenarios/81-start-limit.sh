# shellcheck shell=bash
# The daemon hangs until the watchdog ends it, and is killed, alternately and each time within a move, more
# often than systemd starts a unit by default. It is started again each time, and when it stops every affinity is its
# owner's, also those of threads and children that were created while it hung.
# SECURITY: killed
# boot: trouble
# when: full
# limit: 300
. "$LAB/lib.sh"

readonly DROP_IN=/run/systemd/system/numa-migrd.service.d/start-limit.conf RECORD=/run/numa-migrd/moves
readonly CRASHES=6 # DefaultStartLimitBurst= is five

# WatchdogSec= is long enough for an interval on a busy host.
start_soon() {
	mkdir -p "${DROP_IN%/*}"
	printf '[Service]\nRestartSec=100ms\nWatchdogSec=15\n' >"$DROP_IN"
	systemctl daemon-reload
}

remove_drop_in() {
	rm "$DROP_IN"
	rmdir --ignore-fail-on-non-empty "${DROP_IN%/*}"
	systemctl daemon-reload
} 2>/dev/null

start_program() {
	start 1 family 2 48 0
	programs+=("$started")
}

child_of() { cat /proc/"$1"/task/*/children | tr -d ' '; } # PID
has_child() { [[ $(child_of "$1") ]]; } # PID

has_ended() { [[ ! -e /proc/$pid ]]; }
runs_again() {
	local next
	next=$(daemon_pid)
	((next && next != pid)) && is_active
}

# The daemon hangs within a move while the program creates a thread and a child, until the watchdog or kill(1) ends it.
crash() { # watchdog | signal
	local child
	crashes=$((crashes + 1))
	get_moved start_program
	pid=$(daemon_pid)
	((pid)) || return
	kill -STOP "$pid"
	narrow_as_in_a_move "$started"
	kill -USR1 "$started"
	wait_for 10 has_child "$started"
	child=$(child_of "$started")
	programs+=("$child")
	if [[ $(mask_of "$child") == 4-5 ]]; then inherited=$((inherited + 1)); fi
	[[ $1 == watchdog ]] || kill -9 "$pid"
	check "crash $crashes: the daemon is ended by a $1" wait_for 60 has_ended
	check "crash $crashes: systemd starts it again" wait_for 60 runs_again
}

all_masks() { masks_of "${programs[@]}" | cut -d' ' -f2 | sort -u; }

begin
trap remove_drop_in EXIT
balancing 0
settings_faults "$LAX_FREE" family
programs=() crashes=0 inherited=0
taskset -c 4-5 sleep 100000 &
pinned=$!
start_soon
systemctl start numa-migrd
while ((crashes < CRASHES)); do
	if ((crashes % 2)); then crash signal; else crash watchdog; fi
done
systemctl stop numa-migrd
figure start_limit_inherited $inherited children
effect "it crashed while affinities were narrow, and children inherited them" [ $inherited -gt 0 ]
check_equal "every affinity is restored, also of new threads and children" 0-7 "$(all_masks)"
check_equal "one that its owner has set is unchanged" 4-5 "$(mask_of $pinned)"
check "no record is left" fails test -e $RECORD
kill "$pinned" "${programs[@]}"
