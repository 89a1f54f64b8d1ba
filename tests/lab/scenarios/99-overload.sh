# shellcheck shell=bash
# An overloaded machine: programs with more threads than CPUs, started on two of the nodes; their memory is where the
# first thread touched all of it, or, with --full, also where each thread touched its own. Prints the remaining stalls,
# the number of busy CPUs, and the nodes of threads: with the kernel alone, without balancing between nodes, and with
# policy balance by exclusivity, with --full by every rule.
# boot: instrumented
# when: full
# limit: 600
# limit-full: 7200
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

readonly THREADS=12 CPUSETS=/var/lab/cpusets
memories=(leader) rules=(exclusivity)
settle_s=8 span=5
if full; then
	memories=(leader each)
	rules=(first_fit total_min remote_min local_max most_benefit cost_effective exclusivity_base
		exclusivity most_benefit_plus)
	settle_s=15 span=10
fi

programs() { # leader|each
	local i each=()
	[[ $1 == leader ]] || each=(-e 4)
	for i in 0 1 2; do
		grind -n "crowd$i" -s $((i % 2)) "${each[@]}" $((i + 1)) $((THREADS / 3)) 4 &
	done
	wait_for_programs $THREADS
	release_programs
}

# ---- the kernel's own balance ----

# As the papers' kernels it leaves balance between nodes to others: each node's CPUs are a domain of their
# own, while threads may run on all.
still_kernel() {
	local node
	mkdir -p $CPUSETS
	mount -t cgroup -o cpuset cpuset $CPUSETS 2>/dev/null || return 1
	for node in 0 1 2 3; do
		mkdir $CPUSETS/node$node
		cat /sys/devices/system/node/node$node/cpulist >$CPUSETS/node$node/cpuset.cpus
	done
	echo 0 >$CPUSETS/cpuset.sched_load_balance
}

restore_kernel() {
	echo 1 >$CPUSETS/cpuset.sched_load_balance
	rmdir $CPUSETS/node*
	umount $CPUSETS
}

# ---- what comes of it ----

# "TID node" of the threads at work (two CPUs a node).
places() {
	local pid files=()
	find_programs
	for pid in "${leaders[@]}"; do
		files+=(/proc/"$pid"/task/*/stat)
	done
	awk '{ split(FILENAME, part, "/"); sub(/.*\) /, "") }
		part[3] != part[5] { print part[5], int($37 / 2) }' "${files[@]}" | sort
}

# How many are on the fullest node, and on the emptiest.
spread() {
	places | awk '{ n[$2]++ } END { most = 0; least = 1000
		for (k = 0; k < 4; k++) { most = n[k] > most ? n[k] : most; least = n[k] < least ? n[k] : least }
		print most + 0, least + 0 }'
}

# Moves between nodes by any program, as far as snapshots some seconds apart show them.
count_changes() { # SECONDS
	local end=$((SECONDS + $1)) before now
	changes=0
	before=$(places)
	while ((SECONDS < end)); do
		sleep 1
		now=$(places)
		changes=$((changes + $(join <(echo "$before") <(echo "$now") | awk '$2 != $3' | wc -l)))
		before=$now
	done
}

# "busy all" of all CPUs together since boot, in ticks.
cpu_times() { awk '/^cpu / { busy = $2 + $3 + $4; print busy, busy + $5 + $6; exit }' /proc/stat; }

# CPUs at work in the mean between the two.
cpus_at_work() { # TIMES TIMES
	echo "$1 $2" | awk -v cpus="$(nproc)" '{ printf "%.2f\n", cpus * ($3 - $1) / ($4 - $2) }'
}

# Sets per_line, at_work and fullest. The emulated CPUs share fewer real ones, so that their throughput shows nothing: in
# the model a line takes its stalls, on all busy CPUs at once.
measure() { # NAME
	local before after times
	count_changes $settle_s
	before=$(readings)
	times=$(cpu_times)
	sleep $span
	at_work=$(cpus_at_work "$times" "$(cpu_times)")
	after=$(readings)
	per_line=$(stall_per_line "$before" "$after")
	fullest=$(spread)
	figure "$1_stall_per_line" "$per_line" cycles
	figure "$1_cpus_at_work" "$at_work" cpus
	figure "$1_local_permille" "$(local_permille "$before" "$after")" permille
	figure "$1_node_changes" "$changes" moves
	figure "$1_fullest_and_emptiest" "${fullest/ /:}" threads
	[[ ! ${alone:-} ]] || figure "$1_stall_ratio" "$(ratio "$per_line" "$alone")" of_kernel
	[[ ! ${alone:-} ]] || figure "$1_finish_ratio" \
		"$(awk "BEGIN { printf \"%.3f\", ($per_line / $at_work) / ($alone / $alone_at_work) }")" of_kernel_modelled
	stop_programs
}

run_with() { # RULE MEMORY NAME [PARAMETERS]
	programs "$2"
	adjusted=${4-}
	settings_pmu balance "selection = \"$1\";" 'crowd*'
	mark_journal
	start_beside
	measure "overload_$2_$3"
	note "$3: $(moves); $(numa-migrctl status --json | tr -s ' \n' ' ')"
}

# Wherever their pages are: the papers' rules.
with_rule() { # RULE MEMORY
	run_with "$1" "$2" "$1" 'balance_min_gain = -1e12; warmup_s = 1.0;'
	effect "$1, memory from $2: threads left the overloaded nodes" has_entry POLICY=balance RESULT=applied
	effect "$1, memory from $2: by that rule" has_entry SELECTION="$1"
	effect "$1, memory from $2: fewer are on the fullest node" less "${fullest% *}" "${crowded% *}"
	note "$(field MESSAGE POLICY=balance RESULT=applied | head -n 1)"
	note "$(field MESSAGE POLICY=balance VERDICT=improved | head -n 1)"
	systemctl stop numa-migrd
}

# MEMORY: with the kernel not balancing between nodes, without balancing, and with the service
with_us() {
	local rule
	if ! still_kernel; then
		skip "memory from $1: the rules" "this kernel's balance between nodes cannot be turned off"
		return
	fi
	programs "$1"
	measure "overload_$1_nobody"
	crowded=$fullest
	for rule in "${rules[@]}"; do
		with_rule "$rule" "$1"
	done
	if full; then
		run_with exclusivity "$1" shipped ''
		systemctl stop numa-migrd
	fi
	restore_kernel
}

begin_pmu
for memory in "${memories[@]}"; do
	alone='' alone_at_work=''
	programs "$memory"
	measure "overload_${memory}_kernel"
	alone=$per_line alone_at_work=$at_work
	with_us "$memory"
done
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
