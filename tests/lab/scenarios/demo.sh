# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The demo in the emulated machine, in modelled time. Act 1: four unbound programs without and with the service in its
# default configuration. Act 2: policy "imar2" with page exclusivity on samples of the modelled PMU.
# boot: paced
# when: asked
# limit: 300
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"
# shellcheck source=tests/lab/demo-lib.sh
. "$LAB/demo-lib.sh"

# A second of this machine has 10 % of the cycles of a usual server, so that the work of the service in a second weighs
# ten times as much: its limit is ten times the default of 1 %.
readonly OVERHEAD='overhead_percent = 10.0;'

readonly SAID=/var/lab/said # what the service has logged since its start

say() { echo "# $*"; }

# Without a process for each look: an emulated CPU takes long to start one.
has_said() { [[ $(<$SAID) == *"$1"* ]]; } # TEXT

# Starts the service, and prints what it logs until stop_service.
start_service() {
	mark_journal
	: >$SAID
	journalctl -q -f --since="$mark" -o cat -t numa-migrd > >(tee -a $SAID | without_bound_pages | sed -u 's/^/#   /') &
	follower=$!
	start_beside
}

stop_service() {
	signal_programs STOP
	systemctl stop numa-migrd
	journalctl --sync
	kill "$follower"
	wait "$follower"
}

# ---- act 1 ----

# Sets demo_seconds and local.
timed_run() {
	local before
	before=$(readings)
	demo_run 2 16 40
	local=$(local_permille "$before" "$(readings)")
}

shipped_policy() {
	local without without_local
	say
	say "ACT 1: the shipped policy, \"auto\". Four processes of two threads each (perf bench numa mem), bound to nothing, on a"
	say "machine of four NUMA nodes with two CPUs each. Their memory was first touched on node 0. kernel.numa_balancing is 0."
	say "without numa-migrd …"
	timed_run
	without=$demo_seconds without_local=$local
	say "they took $without s; $((local / 10)) % of the accesses to memory were local"
	say "with numa-migrd; the journal:"
	echo "sampling: { $OVERHEAD };" >"$CONF"
	start_service
	timed_run
	stop_service
	demo_table "$without" "$demo_seconds" | sed 's/^/# /'
	printf '# %-32s %8d %%   %13d %%\n' 'accesses to local memory' $((without_local / 10)) $((local / 10))
	figure demo_without_s "$without" s_modelled
	figure demo_with_s "$demo_seconds" s_modelled
	check "homes were given" has_entry KIND=home
}

# ---- act 2 ----

# In the background. Threads of different users do not change places.
as_user() { # NUMBER COMMAND…
	setpriv --reuid=$((2000 + $1)) --regid=$((2000 + $1)) --clear-groups "${@:2}" &
}

# A thread two hops away from memory that is bound: only the thread can move. A thread that is bound, two hops away from
# its memory: only the pages can move. A thread that turns to other memory as soon as it is moved, which makes the move
# wrong.
start_programs() {
	as_user 1 numactl -m 0 grind -n tenant -r -s 2 0 1 4
	as_user 2 grind -n pinned -r -s 1 3 1 4
	pinned=$!
	as_user 3 numactl -m 0,2 grind -n phases -r -s 3 -a 0 2 1 4
	wait_for_programs 3
	find_programs
}

# The thread of "pinned" stays bound.
release_unpinned() {
	local leader
	for leader in "${leaders[@]}"; do
		((leader == pinned)) || kill -USR1 "$leader"
	done
}

has_everything() { has_said ' rolled back: ' && has_said ' of pinned[' && has_said ' improved: '; }

# Requests for pages whose owner has bound them are not shown: none of them is moved.
without_bound_pages() { sed -u -E '/[0-9]+ pages?.*(tenant|phases)|(tenant|phases).*[0-9]+ pages?/d'; }

local_now() {
	local before
	before=$(readings)
	sleep 1
	echo "$(($(local_permille "$before" "$(readings)") / 10)) %"
}

show() { numa-migrctl "$@" 2>&1 | sed 's/^/#   /'; } # COMMAND…

# Tickets and number drawn, which are fields of its entry.
show_lottery() {
	journalctl -q --since="$mark" -t numa-migrd -n 1 -o verbose \
		--output-fields=POLICY,DECISION,PERFORMANCE,TICKETS,TICKETS_PARTS,DRAW,SEED,NODE_FROM,NODE_TO KIND=migrate |
		sed -n 's/^    \([A-Z].*\)/#   \1/p' | sort
}

papers_policies() {
	say
	say "ACT 2: policy \"imar2\" and page exclusivity, on samples of the modelled PMU. The memory of \"tenant\" is bound, and its"
	say "thread two hops away; the thread of \"pinned\" is bound, and its memory two hops away; \"phases\" turns to other memory"
	say "as soon as it is moved, which makes the move wrong. The settings:"
	cat >"$CONF" <<-SETTINGS
		targets: { min_rss_mb = 1; };
		sampling: { source = "pmu"; pmu = "numalab/period=997/"; $OVERHEAD };
		threads: { policy = "imar2"; };
		pages: { policy = "exclusivity"; };
	SETTINGS
	sed 's/^/#   /' "$CONF"
	start_programs
	say "without numa-migrd $(local_now) of the accesses to memory are local"
	start_service
	release_unpinned
	sleep 2
	say "numa-migrctl threads, with 3DyRM's metrics; the modelled PMU has latencies (LAT), no operations and intensities:"
	show threads
	wait_for 40 has_everything
	say "now $(local_now) of the accesses to memory are local"
	say "the fields of the last lottery:"
	show_lottery
	say "numa-migrctl threads:"
	show threads
	stop_service
	stop_programs
	check "a lottery was drawn" has_entry POLICY=imar2 KIND=migrate
	check "a move improved its process" has_entry VERDICT=improved
	check "a move was rolled back" has_entry VERDICT=rolled-back
	check "pages followed their threads" has_entry KIND=pages COMM=pinned
}

begin
load_pmu
balancing 0
renice -n -5 -p $$ >/dev/null # its commands do not wait behind the programs
shipped_policy
papers_policies
