# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The demo in the emulated machine, in modelled time. Act 1: three unbound programs before and after the service starts in
# its default configuration. Act 2: policy "imar2" with page exclusivity on samples of the modelled PMU. With --minutes N
# act 2 alone, repeated until they have passed.
# boot: paced
# when: asked
# limit: 120
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

# The modelled PMU stands for the one of a server, which needs no setting. A second of this machine has 10 % of the cycles
# of a usual server, so that the work of the service in a second weighs ten times as much: its limit is ten times the
# default of 1 %.
readonly SAMPLING='sampling: { overhead_percent = 10.0; }; parameters: { sampling: { event = "numalab/period=997/"; }; };'

readonly SAID=/var/lab/said # what the service has logged since its start

say() { echo "# $*"; }

# Without a process for each look: an emulated CPU takes long to start one.
has_said() { [[ $(<$SAID) == *"$1"* ]]; } # TEXT

# Starts the service while the programs PID… are stopped, and prints what it logs until stop_service. Beside them the start
# would take 30 s here, during which nothing is measured.
start_service() { # PID…
	mark_journal
	: >$SAID
	journalctl -q -f --since="$mark" -o cat -t numa-migrd > >(tee -a $SAID | sed -u 's/^/#   /') &
	follower=$!
	kill -STOP "$@"
	systemctl start numa-migrd
	kill -CONT "$@"
}

stop_service() {
	systemctl stop numa-migrd
	journalctl --sync
	kill "$follower"
	wait "$follower"
}

show() { numa-migrctl "$@" 2>&1 | sed 's/^/#   /'; } # COMMAND…

# ---- act 1 ----

# Sets near, the percentage of local accesses of all CPUs, and speed, the millions of lines that the programs go through
# in a second.
measure() { # SECONDS
	local before after
	before=$(readings -t 1)
	sleep "$1"
	after=$(readings -t 1)
	read -r near speed < <(echo "$before $after" |
		awk '{ l = $8 - $2; r = $9 - $3; printf "%d %.2f\n", l + r ? 100 * l / (l + r) : 0, ($11 - $5) / ($12 - $6) / 1e6 }')
}

shipped_policy() {
	local near speed near_before speed_before name
	say
	say "ACT 1: the shipped policy, \"auto\". Three programs of two threads each, which read their memory in random order and"
	say "are bound to nothing, on a machine of four NUMA nodes with two CPUs each. Their memory was first touched on node 0."
	say "kernel.numa_balancing is 0. Six seconds without numa-migrd …"
	for name in east south west; do
		grind -n "$name" -r 0 2 8 &
	done
	wait_for_programs 6
	measure 4
	near_before=$near speed_before=$speed
	say "$near % of the accesses to memory are local. numa-migrd starts; its journal:"
	echo "$SAMPLING" >"$CONF"
	start_service "${leaders[@]}"
	sleep 5
	measure 3
	say "numa-migrctl processes, with the home and the local accesses (LOCAL) of each:"
	show processes
	signal_programs STOP
	stop_service
	stop_programs
	printf '#\n# %-32s %12s %16s\n' '' before 'with numa-migrd'
	printf '# %-32s %12s %16s\n' 'accesses to local memory' "$near_before %" "$near %" \
		'million reads per second' "$speed_before" "$speed"
	figure demo_before_local "$near_before" percent
	figure demo_with_local "$near" percent
	figure demo_before_reads "$speed_before" million_per_s
	figure demo_with_reads "$speed" million_per_s
	check "homes were given" has_entry KIND=home
	check "a home has a verdict" has_entry VERDICT=improved VERDICT=worse
}

# ---- act 2 ----

readonly ROUND_S=10 # for everything to show
effects=()          # of act 2, each with a text of the journal that shows it

# In the background. Threads of different users do not change places.
as_user() { # NUMBER COMMAND…
	setpriv --reuid=$((2000 + $1)) --regid=$((2000 + $1)) --clear-groups "${@:2}" &
}

# The four threads of "solver" wait for each other, and their memory is bound, so that only threads can move. Two are at
# their memory. Two begin on one node, because a swap of the two would be another candidate, each one hop away from its
# memory, because from two hops a node between would be another destination. The second turns to memory two hops away when
# it is moved, and to twice the work.
# The thread of "pinned" is bound, two hops away from its memory: only its pages can move.
start_programs() {
	as_user 1 lockstep -n solver 4 0:0 1:1 2:3 2:1:3
	solver=$!
	as_user 2 grind -n pinned -r -s 3 1 1 2
	wait_for_programs 5
	effects=(
		'a thread won the lottery and was moved' "Moved solver[$solver/"
		'a move improved its program' "improved: solver[$solver/"
		'a move was rolled back' "rolled back: solver[$solver/"
		'pages followed their thread' 'improved: pinned['
		'P was computed from counted events' '+instructions+flops+dram'
	)
}

has_everything() {
	local i
	for ((i = 1; i < ${#effects[@]}; i += 2)); do
		has_said "${effects[i]}" || return
	done
}

# Tickets and number drawn, which are fields of its entry.
show_lottery() {
	journalctl -q --since="$mark" -t numa-migrd -n 1 -o verbose \
		--output-fields=POLICY,DECISION,PERFORMANCE,TICKETS,TICKETS_PARTS,DRAW,SEED,NODE_FROM,NODE_TO KIND=migrate |
		sed -n 's/^    \([A-Z].*\)/#   \1/p' | sort
}

papers_policies() {
	local i end
	say
	say "ACT 2: policy \"imar2\" and page exclusivity, on samples and counts of the modelled PMU. \"solver\" has four threads"
	say "that wait for each other; its memory is bound. Two threads are one hop away from their memory. One of them turns to"
	say "more work, on memory two hops away, when it is moved, which makes the move wrong. The thread of"
	say "\"pinned\" is bound, and its memory two hops away. The settings:"
	cat >"$CONF" <<-SETTINGS
		$SAMPLING
		targets: { include = ( { command = "solver"; }, { command = "pinned"; } ); min_rss_mb = 1; };
		threads: { policy = "imar2"; };
		pages: { policy = "exclusivity"; };
	SETTINGS
	parameters 'n = 1; noise_gate = 0.0;'
	sed 's/^/#   /' "$CONF"
	say "and, with --parameters, those of the paper: $(<"$PARAMETERS")"
	start_programs
	start_service "${leaders[@]}"
	kill -USR1 "$solver"
	sleep 2
	say "numa-migrctl threads, with 3DyRM's metrics: latency (LAT), intensity (INT), and performance P = O * I / L (PERF)"
	show threads
	end=$((SECONDS + ROUND_S))
	until has_everything || ((SECONDS >= end)); do
		look_away
	done
	say "the fields of the last lottery:"
	show_lottery
	say "numa-migrctl threads:"
	show threads
	signal_programs STOP
	stop_service
	stop_programs
	for ((i = 0; i < ${#effects[@]}; i += 2)); do
		check "${effects[i]}" has_said "${effects[i + 1]}"
	done
}

begin
load_pmu
balancing 0
renice -n -5 -p $$ >/dev/null # its commands do not wait behind the programs
if ((LAB_MINUTES)); then
	end=$((SECONDS + LAB_MINUTES * 60))
	for ((round = 1; SECONDS < end; round++)); do
		note "round $round"
		papers_policies
	done
else
	shipped_policy
	papers_policies
fi
