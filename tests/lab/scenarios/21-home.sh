# shellcheck shell=bash
# Policy "auto": unbound programs, as many threads as CPUs, each get a node of their own, their
# memory with them, with no source of samples but the page faults of the programs themselves; nothing is left
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

# Both workers of each program are on one node, its memory too, and each node has one program.
all_home() {
	local pid tid node nodes=()
	for pid in "${programs[@]}"; do
		node=$(memory_node "$pid")
		for tid in $(threads_of "$pid"); do
			((tid == pid)) || [[ $(node_of "$tid") == "$node" ]] || return 1
		done
		nodes+=("$node")
	done
	[[ $(printf '%s\n' "${nodes[@]}" | sort -u | wc -l) == 4 ]]
}

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
effect "four programs on a full machine have a node each, their memory with them" wait_for 60 all_home
figure home_s $((SECONDS - seen)) s
check "the journal has the home of each" test "$(count_entries KIND=home)" -ge 4
check "a verdict is given on one of them at least" wait_for 30 has_entry VERDICT=inconclusive + VERDICT=improved + VERDICT=neutral
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
# The kernel may have packed it, or started both workers on one node, so that all of its memory is there.
check_equal "a program on an idle machine is not packed" '' "$(field REASON KIND=home | grep -v -e 'runs there' -e 'memory on one node')"
systemctl stop numa-migrd
kill "${programs[@]}"
