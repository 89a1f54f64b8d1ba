# shellcheck shell=bash
# An ordinary user's processes hold their own mmap_lock for a minute, one and then a hundred: intervals keep their
# beat, a stop takes seconds and restores every other program's CPU affinity, and a restart and --restore work while
# the lock is still held.
# boot: trouble
# when: full
# limit: 900
. "$LAB/lib.sh"

readonly HELD_S=60 STOP_S=25 NOBODY=65534
readonly RECORD=/run/numa-migrd/moves

value_of() { numa-migrctl status --json | awk -F':' -v name="$1" '{ gsub(/[ ",]/, "") } $1 == name { print $2 }'; } # NAME

# Sets `holder` to its id and `held` to those of the processes.
hold() { # COUNT
	local output
	output=$(mktemp)
	setpriv --reuid=$NOBODY --regid=$NOBODY --clear-groups "$(command -v holder)" "$1" >"$output" &
	holder=$!
	check "$1: they begin" wait_for 60 has_lines "$1" "$output"
	mapfile -t held <"$output"
	rm "$output"
}

is_held() { ! timeout -s KILL 3 cat "/proc/$1/numa_maps" >/dev/null; } # PID
none_in_sleep() { ! grep -qs '^State:.D' "/proc/${held[0]}/status"; }

all_held() {
	local pid
	for pid in "${held[@]}"; do
		[[ $(head -n 3 "/proc/$pid/status") == *'State:'*D* ]] || return 1
	done
}

answers() { timeout 15 numa-migrctl status >/dev/null; }

# Over the whole time, regardless of the answers: how often there was none.
unanswered_for() { # SECONDS
	local end=$((SECONDS + $1))
	unanswered=0
	while ((SECONDS < end)); do
		answers || unanswered=$((unanswered + 1))
		sleep 2
	done
}

# Asleep in the kernel each time that it is looked at.
is_stuck() {
	for _ in 1 2 3 4 5; do
		[[ $(head -n 3 "/proc/$(daemon_pid)/status") == *'State:'*D* ]] || return 1
		sleep 0.3
	done
}

stops() { timeout $STOP_S systemctl stop numa-migrd; }
# While it touches its memory and sets its own affinity it must not be moved: that affinity belongs to its owner.
start_misplaced() {
	systemctl stop numa-migrd
	start 1 membound -f -n lent -s 0 2 1 64
	systemctl start numa-migrd
}

all_masks() { masks_of "$lent" | cut -d' ' -f2 | sort -u; }

# Changes that the daemon did not make in time must not outlive the scenario.
release() {
	kill "$holder"
	wait "$holder" 2>/dev/null
}

while_held() { # COUNT
	local before
	effect "$1: another program is moved" get_moved start_misplaced
	lent=$started
	before=$(value_of intervals)
	hold "$1"
	check "$1: every one sleeps uninterruptibly" wait_for 20 all_held
	check "$1: the lock is held: its numa_maps cannot be read" is_held "${held[0]}"
	unanswered_for $HELD_S
	check_equal "$1: it answers for a minute" 0 $unanswered
	check "$1: it is not asleep in the kernel" fails is_stuck
	check "$1: intervals have gone on" [ "$(value_of intervals)" -ge $((before + HELD_S / 2)) ]
	figure "loop_jitter_ms_held_lock_$1" "$(value_of interval_late_max_ms)" ms
	check "$1: a worker was asked about it, and given up" [ "$(value_of workers_given_up)" -ge 1 ]
	check_equal "$1: of one user's, one is stuck" 1 "$(value_of workers_stuck)"
	check "$1: the lock is held still" is_held "${held[0]}"
	check "$1: a stop takes seconds" stops
	check_equal "$1: it was in good order" "inactive success" \
		"$(systemctl show -P ActiveState numa-migrd) $(systemctl show -P Result numa-migrd)"
	check_equal "$1: the other program has its affinity" 0-7 "$(all_masks)"
	check "$1: no record is left" fails test -e $RECORD
	check "$1: --restore works" timeout 20 numa-migrd --restore
	check "$1: it starts" timeout 30 systemctl start numa-migrd
	check "$1: it answers" answers
	release
	check "$1: the processes have ended" wait_for 20 none_in_sleep
	kill "$lent"
}

begin
modprobe fuse
balancing 0
settings_faults "$LAX_FREE" lent holder
sed -i 's/^targets: {/& min_cpu_percent = 0; min_rss_mb = 1;/' "$CONF"
while_held 1
while_held 100
systemctl stop numa-migrd
