# shellcheck shell=bash
# User A has 200 busy threads, forks without end, changes attributes of cgroups, holds locks of memory maps, and has
# pinned processes 1,900 levels deep in cgroups. User B's programs are moved and get homes all the same. After a stop
# and after a kill each affinity is its owner's: B's are restored, and those that A has set are unchanged.
# SECURITY: slow-restore, many-groups, forks
# boot: trouble
# when: full
# limit: 600
. "$LAB/lib.sh"

readonly A=65534 B=games OUTPUT=/run/lab-tenants RECORD=/run/numa-migrd/moves
readonly THREADS=200 LEVELS=1900 PINNED=100 LOCKS=3 GROUPS_OF_A=50

# ---- user A ----

# Its output is in $OUTPUT/UNIT.
as_a() { # UNIT COMMAND…
	systemd-run --quiet --unit="$1" --slice=user-$A.slice -p User=$A -p Delegate=yes -p TasksMax=infinity \
		-p KillMode=mixed -p "StandardOutput=file:$OUTPUT/$1" "$(command -v "$2")" "${@:3}"
}

# Each unit runs, and the first of the processes that hold locks still waits in mmap(2).
is_at_work() {
	local unit
	for unit in hog forks attributes locks deep; do
		systemctl --quiet is-active $unit || return 1
	done
	[[ $(head -n 3 "/proc/${locked[0]}/status") == *'State:'*D* ]]
}

# The deep cgroups come first: with all CPUs busy they would take minutes.
begin_a() {
	mkdir -p $OUTPUT
	as_a deep groups deep $LEVELS $PINNED
	check "A has $PINNED processes $LEVELS levels deep in cgroups" wait_for 60 has_lines $PINNED $OUTPUT/deep
	mapfile -t pinned <$OUTPUT/deep
	as_a locks holder $LOCKS
	check "A holds locks of memory maps" wait_for 60 has_lines $LOCKS $OUTPUT/locks
	mapfile -t locked <$OUTPUT/locks
	as_a attributes groups attributes $GROUPS_OF_A
	check "A changes attributes of cgroups" wait_for 30 has_lines 1 $OUTPUT/attributes
	as_a hog crowd $THREADS 500 250
	as_a forks churn 100000
}

end_a() {
	systemctl stop hog forks attributes locks deep
	systemctl reset-failed hog forks attributes locks deep
	rm -r $OUTPUT
} 2>/dev/null

masks_of_pinned() { masks_of "${pinned[@]}" | cut -d' ' -f2 | sort | uniq -c | xargs; }
masks_of_others() { masks_of "$(unit_pid hog)" "${locked[@]}" | cut -d' ' -f2 | sort -u; }

# ---- user B ----

# The program sets its own affinity when it begins, which would count as its owner's: the daemon starts after that.
start_b() {
	systemctl stop numa-migrd
	rm -f $OUTPUT/busy
	start_unit busy -p User=$B -p StandardOutput=file:$OUTPUT/busy membound -f -n busy -s 0 2 2 48
	wait_for 60 has_lines 2 $OUTPUT/busy
	systemctl start numa-migrd
}

# Beside 200 busy threads the scheduler takes them away again, so one move by the service counts.
# shellcheck disable=SC2154 # by start_unit
has_been_moved() { has_entry KIND=migrate "PID=$started"; }

get_b_moved() {
	local attempt
	for attempt in 1 2 3; do
		start_b
		wait_for 60 has_been_moved && return
		note "attempt $attempt: not moved" >&2
	done
	return 1
}

start_b_at_home() {
	start_unit home -p User=$B sharers -n home all 2 4
}

has_home() { has_entry KIND=home "PID=$started"; }

masks_of_b() { masks_of "$started" | cut -d' ' -f2 | sort -u; }
has_moved() { numa-migrctl status --json | grep -q '"threads_moved": *[1-9]'; }
b_is_restored() { [[ $(masks_of_b) == 0-7 ]]; }

# ---- both ----

settings() { # POLICY
	cat >"$CONF" <<-SETTINGS
		targets: { min_cpu_percent = 0; min_rss_mb = 1; include = ( { command = "busy"; }, { command = "home"; },
			{ command = "crowd"; }, { command = "holder"; }, { command = "churn"; }, { command = "x)*"; } ); };
		sampling: { $UNCAPPED };
		threads: { policy = "$1"; };
	SETTINGS
	parameters "$LAX_FREE"
}

affinities_are_their_owners() { # AFTER
	check "$1: B's affinities are restored" wait_for 30 b_is_restored
	check_equal "$1: A's too" 0-7 "$(masks_of_others)"
	check_equal "$1: those that A has set are unchanged" "$PINNED 4-5" "$(masks_of_pinned)"
	check "$1: A is still at work" is_at_work
}

stop() { # AFTER
	local before=$SECONDS
	systemctl stop numa-migrd
	figure "tenants_stop_$1_s" $((SECONDS - before)) s
	check_equal "$1: the daemon stops successfully" "inactive success" \
		"$(systemctl show -P ActiveState numa-migrd) $(systemctl show -P Result numa-migrd)"
	affinities_are_their_owners "$1"
	check "$1: no record is left" fails test -e $RECORD
}

after_home() {
	settings auto
	systemctl start numa-migrd
	start_b_at_home
	effect "home: B's program gets one" wait_for 60 has_home
	effect "home: a thread is moved" wait_for 30 has_moved
	note "$(field REASON KIND=home "PID=$started" | head -n 1): $(masks_of_b | paste -sd,)"
	stop home
	systemctl stop home
}

after_move() {
	settings lbma
	effect "move: B's program is moved" get_b_moved
	check "move: root's query is answered" timeout 60 numa-migrctl status
	stop move
}

# The daemon that starts after the kill is to restore affinities, and move none while they are compared.
after_kill() {
	effect "kill: another program of B's is moved" get_b_moved
	settings none
	killed=$(daemon_pid)
	kill -9 "$killed"
	check "kill: the daemon is started again" wait_for 60 is_another
	affinities_are_their_owners kill
	systemctl stop numa-migrd
	check "kill: --restore succeeds" timeout 120 numa-migrd --restore
	check "kill: no record is left" fails test -e $RECORD
}

is_another() {
	local pid
	pid=$(daemon_pid)
	((pid && pid != killed)) && is_active
}

begin
modprobe fuse
balancing 0
begin_a
trap end_a EXIT
after_home
after_move
after_kill
systemctl stop busy
