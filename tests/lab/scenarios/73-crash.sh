# shellcheck shell=bash
# Killed at any moment, alternately right after it has moved threads and as soon as it runs: each time every affinity
# is restored, kernel.numa_balancing is as it was, and nothing is left in /run.
# SECURITY: killed
# boot: trouble
# limit: 300
# limit-full: 1500
. "$LAB/lib.sh"

readonly DROP_IN=/run/systemd/system/numa-migrd.service.d/no-restart.conf
RANDOM=20261122

kills=4
full && kills=50

ended() { [[ $(systemctl show -P ActiveState numa-migrd) == failed ]]; }
balancing_is() { [[ $(cat /proc/sys/kernel/numa_balancing) == "$1" ]]; }
all_masks() { masks_of "$worker" | cut -d' ' -f2 | sort -u; }
pause_up_to() { sleep "$(awk -v r=$RANDOM -v most="$1" 'BEGIN { print most * r / 32768 }')"; } # SECONDS

# By page faults of the program's own, or by hinting faults and so with a sysctl that must be restored. Sets `kind`, the
# program's option.
settings() { # ROUND
	settings_faults "$LAX_FREE" crashing
	kind=-f
	(($1 % 4 < 2)) || {
		echo 'parameters: { sampling: { inject = "numa_balancing"; }; };' >>"$CONF"
		kind=-H
	}
}

complain() {
	wrong=$((wrong + 1))
	note "kill $1: $2"
}

a_kill() { # ROUND
	settings "$1"
	start 2 membound $kind -n crashing -s 0 2 2 32
	worker=$started
	systemctl start numa-migrd || complain "$1" "it does not start"
	if (($1 % 2)); then wait_for 12 moved_or_home "$worker"; fi
	pause_up_to $((2 - $1 % 2))
	if moved "$worker"; then moves=$((moves + 1)); fi
	kill -9 "$(daemon_pid)"
	wait_for 30 ended || complain "$1" "its unit does not end"
	[[ $(all_masks) == 0-7 ]] || complain "$1" "affinities are left: $(masks_of "$worker" | paste -sd,)"
	wait_for 5 balancing_is 0 || complain "$1" "kernel.numa_balancing is left"
	[[ ! -e /run/numa-migrd/moves ]] || complain "$1" "a record is left"
	systemctl reset-failed numa-migrd
	kill "$worker"
}

begin
balancing 0
mkdir -p "${DROP_IN%/*}"
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=no\n' >"$DROP_IN"
systemctl daemon-reload
wrong=0 moves=0
for ((round = 0; round < kills; round++)); do
	a_kill $round
done
rm "$DROP_IN"
rmdir --ignore-fail-on-non-empty "${DROP_IN%/*}"
systemctl daemon-reload
figure lab_crash_kills $kills kills
figure lab_crash_kills_after_moves $moves kills
check_equal "after each of $kills kills the machine was as before" 0 $wrong
effect "some came after threads were moved" [ $moves -gt 0 ]
