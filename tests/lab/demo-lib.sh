# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The demonstration itself, for the emulated machine (scenarios/demo.sh) and for a real one (scripts/demo):
# programs whose memory is on one node each while their threads start on another, watched without and
# with the daemon.
# Expects membound in PATH and a folder for scratch files in demo_dir.

: "${demo_dir:?}"
declare -A demo_node_of_cpu=() demo_node_of_tid=()
demo_pids=() demo_nodes=()

# Up to four nodes that have both CPUs and memory; at least two are needed.
demo_find_nodes() {
	local path node cpu
	for path in /sys/devices/system/node/node[0-9]*; do
		node=${path##*node}
		for cpu in "$path"/cpu[0-9]*; do
			[[ -e $cpu ]] && demo_node_of_cpu[${cpu##*cpu}]=$node
		done
		[[ -s $path/cpulist && $(<"$path/cpulist") && $(demo_node_mb "$node") -gt 256 ]] || continue
		((${#demo_nodes[@]} == 4)) || demo_nodes+=("$node")
	done
	((${#demo_nodes[@]} >= 2))
}

demo_node_mb() {
	awk '$3 == "MemFree:" { print int($4 / 1024) }' "/sys/devices/system/node/node$1/meminfo"
}

# Whether the kernel can be made to show each program's accesses again and again. Only our own programs
# are managed, so write-protecting their pages disturbs nobody. Where this is not told, the daemon finds out.
demo_can_inject() {
	local config
	config=/boot/config-$(uname -r)
	[[ ! -r $config ]] || grep -q '^CONFIG_MEM_SOFT_DIRTY=y' "$config"
}

# One process per node, named demo0, demo1, …; their threads start a node further. As with
# "numactl --membind", the kernel's own balancing does not look at their memory, unless it must be our eyes.
demo_start() { # THREADS-PER-PROGRAM MB-PER-THREAD
	local i node start tid count=${#demo_nodes[@]} hinted=()
	demo_can_inject || hinted=(-H)
	for ((i = 0; i < count; i++)); do
		node=${demo_nodes[i]} start=${demo_nodes[(i + 1) % count]}
		membound "${hinted[@]}" -n "demo$node" -s "$start" "$node" "$1" "$2" >"$demo_dir/tids$node" &
		demo_pids+=($!)
	done
	for node in "${demo_nodes[@]}"; do
		for ((i = 0; i < 120; i++)); do
			(($(wc -l <"$demo_dir/tids$node") == $1)) && break
			sleep 0.25
		done
		while read -r tid; do
			demo_node_of_tid[$tid]=$node
		done <"$demo_dir/tids$node"
	done
	((${#demo_node_of_tid[@]} == $1 * count))
}

demo_stop() {
	((${#demo_pids[@]})) || return 0
	kill "${demo_pids[@]}" 2>/dev/null || true
	wait "${demo_pids[@]}" 2>/dev/null || true
	demo_pids=()
}

# How many of the threads are, now, on the node of their memory (field 39 of stat is the CPU).
demo_at_home() {
	local tid line fields home=0
	for tid in "${!demo_node_of_tid[@]}"; do
		read -r line <"/proc/$tid/stat" 2>/dev/null || continue
		read -ra fields <<<"${line##*) }"
		[[ ${demo_node_of_cpu[${fields[36]}]:-} == "${demo_node_of_tid[$tid]}" ]] && home=$((home + 1))
	done
	echo "$home"
}

# Percent of the threads at home, averaged over so many looks, two a second.
demo_share() { # LOOKS
	local looks=$1 sum=0 i
	for ((i = 0; i < looks; i++)); do
		sum=$((sum + $(demo_at_home)))
		sleep 0.5
	done
	echo $((100 * sum / (looks * ${#demo_node_of_tid[@]})))
}

# Seconds until all threads were at home in three looks in a row, or "more than LIMIT".
demo_converge() { # LIMIT
	local started=${EPOCHREALTIME/[.,]/} in_a_row=0 seconds
	while :; do
		seconds=$(((${EPOCHREALTIME/[.,]/} - started) / 100000))
		((seconds < 10 * $1)) || break
		if (($(demo_at_home) == ${#demo_node_of_tid[@]})); then
			in_a_row=$((in_a_row + 1))
		else
			in_a_row=0
		fi
		((in_a_row < 3)) || break
		sleep 0.5
	done
	if ((in_a_row == 3)); then echo "$((seconds / 10)).$((seconds % 10)) s"; else echo "more than $1 s"; fi
}

# By the lottery: each program's memory is bound to its node, so that threads alone are moved, one by one, and each
# move is to be seen.
demo_settings() { # FILE OVERHEAD-PERCENT
	local inject=none risk=false
	! demo_can_inject || { inject=soft_dirty && risk=true; }
	cat >"$1" <<-SETTINGS
		targets: { include = ( { command = "demo*"; } ); min_rss_mb = 1; };
		sampling: { inject = "$inject"; accept_soft_dirty_risk = $risk; overhead_percent = $2; };
		threads: { policy = "lbma"; };
	SETTINGS
}

demo_table() { # BEFORE AFTER CONVERGED MOVES IMPROVED NEUTRAL
	local threads=${#demo_node_of_tid[@]} nodes=${#demo_nodes[@]}
	cat <<-TABLE

		$threads threads of $nodes programs, each program's memory on a node of its own
		                                            before   with numa-migrd
		threads on the node of their memory         $(printf '%4d %%   %4d %%' "$1" "$2")
		all of them were there after                     -   $3
		moves (improved, neutral by now)                 -   $4 ($5, $6)

	TABLE
}
