# shellcheck shell=bash
# Policy "auto": unbound programs, as many threads as CPUs, each get a node of their own for their
# memory, and are moved there, with no source of samples but the page faults of the programs themselves; nothing is left
# when the service stops, and a program on an idle machine is left alone.
# boot: main
# limit: 240
. "$LAB/lib.sh"

settings_auto() { # NAME: manage programs of this command name
	cat >"$CONF" <<-SETTINGS
		targets: { include = ( { command = "$1"; } ); };
		sampling: { $UNCAPPED };
		threads: { policy = "auto"; };
	SETTINGS
}

# The node of most of a process's memory, of what numa_maps counts.
memory_node() { # PID
	awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^N[0-9]+=/) { split(substr($i, 2), a, "="); n[a[1]] += a[2] } }
		END { for (k in n) if (n[k] > n[best] || best == "") best = k; print best }' "/proc/$1/numa_maps"
}

# The memory of each program is on a node of its own.
all_apart() {
	local pid nodes=()
	for pid in "${programs[@]}"; do
		nodes+=("$(memory_node "$pid")")
	done
	[[ $(printf '%s\n' "${nodes[@]}" | sort -u | wc -l) == 4 ]]
}

# How often a worker is on the node of its memory, of twenty looks at all of them. Nothing holds it there: on a full
# machine the scheduler exchanges threads, and the service moves them back once an interval.
at_home_percent() {
	local pid tid node seen=0 home=0
	for _ in {1..20}; do
		for pid in "${programs[@]}"; do
			node=$(memory_node "$pid")
			for tid in $(threads_of "$pid"); do
				((tid == pid)) && continue
				seen=$((seen + 1))
				[[ $(node_of "$tid") != "$node" ]] || home=$((home + 1))
			done
		done
		sleep 1
	done
	echo $((100 * home / seen))
}

has_moved_threads() { numa-migrctl status --json | grep -q '"threads_moved": *[1-9]'; }

# A verdict on a home counts the pages that were brought along.
has_moved_pages() { field PAGES_MOVED POLICY=auto | grep -q '[1-9]'; }

begin
balancing 0
programs=()
for _ in 1 2 3 4; do
	sharers -n tenant all 2 4 &
	programs+=("$!")
done
sleep 2
before=$(masks_of "${programs[@]}" | sort)
settings_auto tenant
mark_journal
systemctl start numa-migrd
seen=$SECONDS
effect "four programs on a full machine have their memory on a node each" wait_for 60 all_apart
figure home_s $((SECONDS - seen)) s
check "threads are moved to it" wait_for 60 has_moved_threads
figure workers_at_home "$(at_home_percent)" percent
check "the journal has the home of each" test "$(count_entries KIND=home)" -ge 4
check "a verdict is given on one of them at least" wait_for 30 has_entry VERDICT=inconclusive + VERDICT=improved + VERDICT=neutral + VERDICT=unverified
effect "workers move pages under their unit's filter" wait_for 30 has_moved_pages
check_equal "and printed nothing" '' "$(journalctl -q -o cat --since="$mark" -t numa-migrd-worker)"
systemctl stop numa-migrd
check_equal "nothing is left when it stops" "$before" "$(masks_of "${programs[@]}" | sort)"
kill "${programs[@]}"
wait

sharers -n tenant all 2 4 &
programs=("$!")
mark_journal
systemctl start numa-migrd
sleep 10
journalctl --sync
# All of its memory is on one node, and nothing else would move it there: its threads may join it, or it them.
check "a program on an idle machine is placed once at most" test "$(count_entries KIND=home)" -le 1
systemctl stop numa-migrd
kill "${programs[@]}"
