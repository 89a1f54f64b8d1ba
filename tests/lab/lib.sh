# shellcheck shell=bash
# Helpers of the scenarios, inside the guest. A scenario's standard output holds results only: TAP
# without numbers, "name value unit" lines and "# …" remarks.
set -u

readonly CONF=/etc/numa-migrd.conf PACKAGE=/lab/numa-migrd.deb
mark=''    # a time: entries() sees what came later
absent='' # an effect did not show in the first of two attempts

ok() { echo "ok - $*"; }
# A failure after an absent effect may be its consequence; it counts in the second attempt.
not_ok() { if [[ $absent ]]; then echo "absent - $*"; else echo "not ok - $*"; fi; }
skip() { echo "ok - $1 # SKIP $2"; } # DESCRIPTION WHY
note() { echo "# $*"; }
figure() { echo "$1 $2 $3"; } # NAME VALUE UNIT
full() { [[ ${LAB_FULL:-0} == 1 ]]; }
sanitized() { [[ -e /lab/sanitized ]]; }

check() { # DESCRIPTION COMMAND…
	local description=$1
	shift
	if "$@" >&2; then ok "$description"; else not_ok "$description"; fi
}

# As check(), of how much memory the daemon takes: with sanitizers it keeps what it has freed, and its shadow.
check_memory() { # DESCRIPTION COMMAND…
	if sanitized; then
		skip "$1" "the sanitizers take more"
	else
		check "$@"
	fi
}

check_equal() { # DESCRIPTION WANTED FOUND
	if [[ $2 == "$3" ]]; then
		ok "$1"
	else
		not_ok "$1"
		printf '# wanted:\n%s\n# found:\n%s\n' "$2" "$3" | sed '/^#/!s/^/#   /'
	fi
}

# As check(), for what a decision of the guest's kernel or a busy host can spoil: that programs were slower, that
# a thread needed us to get to its memory. If it does not show, the whole scenario is tried once more.
effect() { # DESCRIPTION COMMAND…
	local description=$1
	shift
	if "$@" >&2; then
		ok "$description"
		return
	fi
	[[ ${LAB_ATTEMPT:-2} == 2 ]] || absent=1
	not_ok "$description"
}

fails() { ! "$@"; }

# Waits until a command succeeds. The limit is of a host that has nothing else to do; where the builds run beside
# it, all takes several times as long, and what is asserted is that it becomes true.
# Ninety seconds more are also enough for a second try of the daemon's, after the minute in which it asks no helper.
readonly PATIENCE_S=90

# An emulated CPU takes 0.1 s to start a process, so that repeated queries should start few.
exec {never}<> <(:)
look_away() { read -rt 1 -u "$never" || true; }

wait_for() { # SECONDS COMMAND…
	local end=$((SECONDS + $1 + PATIENCE_S))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		look_away
	done
}

# Repeats the condition for a limited time, without waiting between attempts.
look_for() { # SECONDS COMMAND…
	local end=$((SECONDS + $1))
	shift
	while ((SECONDS < end)); do
		"$@"
		look_away
	done
}

# Starts a guest program in the background, sets `started` to its id, and waits for the lines with which
# its threads report that their memory is in place and they have started.
start() { # LINES COMMAND…
	local lines=$1 output
	shift
	output=$(mktemp)
	"$@" >"$output" &
	started=$!
	wait_for 60 has_lines "$lines" "$output" || note "not ready in $((60 + PATIENCE_S)) s: $*"
	rm "$output"
}

has_lines() { (($(wc -l <"$2") >= $1)); }

# Files that the package left, including its runtime directory and state.
leftovers() {
	find / -xdev \( -path /lab -o -path /var/lab -o -path /proc -o -path /sys \) -prune \
		-o -name '*numa-migr*' -print -o -name '*numamigr*' -print 2>/dev/null
	find /run -name '*numa-migr*' -print
}

# ---- the daemon ----

# Removes restrictions of our units that sanitizers do not work with: ptrace(2) on themselves, and memory limits. Applies
# to all units whose names begin so (systemd.unit(5)): nothing of ours is found after a purge.
allow_sanitizers() {
	mkdir -p /run/systemd/system/numa-.service.d
	printf '[Service]\nMemoryMax=infinity\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n' \
		>/run/systemd/system/numa-.service.d/sanitized.conf
	systemctl daemon-reload
}

# Every scenario begins here: the package installed, the shipped settings, the daemon not running, the
# kernel's balancing as it was at boot.
begin() {
	if ! dpkg -s numa-migrd >/dev/null 2>&1; then
		dpkg -i "$PACKAGE" >&2 || not_ok "the package installs"
		cp "$CONF" /var/lab/shipped.conf
	fi
	! sanitized || allow_sanitizers
	systemctl stop numa-migrd
	systemctl reset-failed numa-migrd 2>/dev/null
	cp /var/lab/shipped.conf "$CONF"
	without_parameters
	balancing 1
	mark_journal
}

# ---- parameters of the policies ----

readonly PARAMETERS=/etc/numa-migrd.parameters UNIT_WITH_PARAMETERS=/run/systemd/system/numa-migrd.service.d/lab.conf

# The daemon reads these from now on. The first call takes effect with the next start of the daemon, others also with a reload.
parameters() { # TEXT…
	echo "$*" >"$PARAMETERS"
	[[ ! -e $UNIT_WITH_PARAMETERS ]] || return 0
	mkdir -p "${UNIT_WITH_PARAMETERS%/*}"
	printf '[Service]\nExecStart=\nExecStart=/usr/sbin/numa-migrd --parameters %s\n' "$PARAMETERS" >"$UNIT_WITH_PARAMETERS"
	systemctl daemon-reload
}

without_parameters() {
	[[ -e $UNIT_WITH_PARAMETERS ]] || return 0
	rm -r "${UNIT_WITH_PARAMETERS%/*}"
	systemctl daemon-reload
}

balancing() {
	[[ ! -e /proc/sys/kernel/numa_balancing ]] || echo "$1" >/proc/sys/kernel/numa_balancing
}

# The cap on the daemon's own cost is lifted where it must see: an emulated CPU, shared four ways, shows
# fifty times what a real one would.
readonly UNCAPPED='overhead_percent = 100.0;'
# A parameter: such a CPU is never quite idle.
readonly LAX_FREE='free_max = 0.7;'

# LBMA with these parameters on the processes with these command names, whose accesses are seen by page faults: of
# programs that cause them all the time (lab_fault in guest/lab.h), so that neither hardware nor the kernel's balancing
# is needed, which would move threads itself.
settings_faults() { # PARAMETERS COMMAND…
	local command include=()
	parameters "$1"
	shift
	for command; do
		include+=("{ command = \"$command\"; }")
	done
	cat >"$CONF" <<-SETTINGS
		targets: { include = ( $(IFS=,; echo "${include[*]}") ); };
		sampling: { $UNCAPPED };
		threads: { policy = "lbma"; };
	SETTINGS
}

daemon_pid() { systemctl show -P MainPID numa-migrd; }
is_active() { systemctl --quiet is-active numa-migrd; }

# ---- its journal ----

mark_journal() { mark=@$(date +%s.%6N); }

ours() { journalctl -q --since="$mark" SYSLOG_IDENTIFIER=numa-migrd "$@"; }

count_entries() { # [FIELD=VALUE…]
	journalctl --sync
	ours -o json "$@" | wc -l
}

has_entry() { [[ $(ours -o cat -n 1 "$@") ]]; }

field() { # NAME [FIELD=VALUE…]: that field of the entries
	ours -o cat --output-fields="$1" "${@:2}"
}

# ---- threads ----

# Starts no processes: each takes 0.1 s here, and there are hundreds of queries.
threads_of() { # PID…
	local pid task
	for pid; do
		for task in /proc/"$pid"/task/*; do
			[[ ! -e $task ]] || echo "${task##*/}"
		done
	done
}

# Read at once: bash reads lines with seeks, and the positions of lines change while the thread runs.
mask_of() { # TID
	local lines line
	mapfile -t lines <"/proc/$1/status"
	for line in "${lines[@]}"; do
		[[ $line != Cpus_allowed_list:* ]] || echo "${line##*[[:space:]]}"
	done
}

# "TID mask" of every thread of these processes.
masks_of() { # PID…
	local tid
	for tid in $(threads_of "$@"); do
		echo "$tid $(mask_of "$tid")"
	done
}

node_of() { # TID: the node it last ran on (two CPUs a node)
	local stat='' fields
	IFS= read -r -d '' stat <"/proc/$1/stat"
	[[ $stat ]] || return
	read -ra fields <<<"${stat##*) }"
	echo $((fields[36] / 2))
}

# Every thread that has used the CPU for a second or more (not the leader that waits) is on the node.
workers_on() { # NODE PID…
	local node=$1 pid tid
	shift
	for pid; do
		[[ -d /proc/$pid/task ]] || return 1
		for tid in $(threads_of "$pid"); do
			((tid == pid)) || [[ $(node_of "$tid") == "$node" ]] || return 1
		done
	done
}

workers_masked() { # CPUS PID…: compares their affinities with CPUS
	local mask=$1 pid tid
	shift
	for pid; do
		[[ -d /proc/$pid/task ]] || return 1
		for tid in $(threads_of "$pid"); do
			((tid == pid)) || [[ $(mask_of "$tid") == "$mask" ]] || return 1
		done
	done
}

# Whether its threads run on node 2, and the service has moved one of them.
moved() { # PID
	workers_on 2 "$1" && { has_entry RESULT=applied "PID=$1" || has_entry RESULT=applied "PID_2=$1" ||
		has_entry RESULT=asked "PID=$1"; }
}

declare -A at_home=() # in how many looks one after the other, by process
readonly HOME_LOOKS=8

# Each of them has been moved, or has been at its memory for some seconds without that: the kernel has moved it there,
# and there is nothing to do.
moved_or_home() { # PID…
	local pid all=0
	for pid; do
		! moved "$pid" || continue
		if workers_on 2 "$pid"; then at_home[$pid]=$((${at_home[$pid]:-0} + 1)); else at_home[$pid]=0; fi
		((at_home[$pid] >= HOME_LOOKS)) || all=1
	done
	return "$all"
}

# A COMMAND that starts a misplaced program and sets `started` to its id, until the service has moved its
# threads to node 2, where their memory is. If the kernel takes them there, the next one is started.
get_moved() { # COMMAND…
	local attempt
	for attempt in 1 2 3; do
		"$@"
		wait_for 40 moved_or_home "$started" && moved "$started" && return
		note "attempt $attempt: not moved: $*" >&2
	done
	return 1
}

# Narrows the affinity of the last thread of each to node 2 and writes it to the service's record, as a service has left it
# that was killed within a move. The service must not run, or be stopped.
narrow_as_in_a_move() { # PID…
	local record=/run/numa-migrd/moves pid tid stat now
	[[ -e $record ]] || install -o numa-migrd -g numa-migrd -m 600 /dev/null $record
	read -r now _ </proc/uptime
	{
		printf '%-511s\n' "numa-migrd-moves 1 $(cat /proc/sys/kernel/random/boot_id)"
		for pid; do
			tid=$(threads_of "$pid" | sort -n | tail -n 1)
			read -ra stat <<<"$(sed 's/.*) //' "/proc/$pid/task/$tid/stat")"
			printf '%-511s\n' "give $tid $pid ${stat[19]} ${now/./} 1 ${stat[3]} $(stat -c %u "/proc/$pid") 0 0 0 1 0-7 4-5 ."
			taskset -p -c 4-5 "$tid" >/dev/null
		done
	} >$record
}

unit_pid() { systemctl show -P MainPID "$1"; }

# Runs as a unit of its own, without a limit on threads, in place of the last one; its output is in its journal.
start_unit() { # UNIT [-p PROPERTY…] COMMAND…
	local unit=$1 properties=()
	shift
	while [[ $1 == -p ]]; do
		properties+=(-p "$2")
		shift 2
	done
	systemctl stop "$unit" 2>/dev/null
	systemctl reset-failed "$unit" 2>/dev/null
	systemd-run --quiet --unit="$unit" -p TasksMax=infinity "${properties[@]}" "$(command -v "$1")" "${@:2}"
	started=$(unit_pid "$unit")
}
