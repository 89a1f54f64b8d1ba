# shellcheck shell=bash
# Seconds until the threads of each of four processes share a node (perf bench numa mem).
# bound: each process's memory is bound to its own node; free: it is where first touched.
# boot: instrumented
# when: full
# limit: 300
# limit-full: 1500
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

limit_s=60

# Prints the seconds, or inf when the time ran out before they converged.
perf_converge() { # bound|free
	local nodes=()
	[[ $1 == bound ]] && nodes=(-M '0,0,1,1,2,2,3,3')
	perf bench numa mem -p 4 -t 2 -P 64 -s $limit_s -zZqm "${nodes[@]}" 2>&1 | tee /dev/stderr |
		awk -v limit=$limit_s '/latency to NUMA-converge/ { seconds = $1 }
			END { print seconds != "" && seconds < limit ? seconds : "inf" }'
}

converge() { # VARIANT WHO
	seconds=$(perf_converge "$1")
	figure "converge_$1_$2_s" "$seconds" s
}

with_daemon() { # VARIANT WHO
	systemctl start numa-migrd
	converge "$1" "$2"
	note "$2: $(count_entries KIND=migrate) migrations, $(count_entries KIND=swap) swaps"
	systemctl stop numa-migrd
}

settings() { # PARAMETERS [GROUPS]
	# shellcheck disable=SC2034 # for settings_pmu()
	adjusted=$1 groups=${2-}
	settings_pmu lbma '' 'perf*' 'process *' 'thread *'
}

# Threads and pages.
everything() { settings 'n = 1;' 'pages: { policy = "exclusivity"; };'; }

compare_with_others() {
	local variant
	for variant in bound free; do
		balancing 0
		converge "$variant" off
		balancing 1
		converge "$variant" automatic
		balancing 0
		command -v numad >/dev/null || continue
		numad -i 5
		converge "$variant" numad
		numad -i 0
	done
	balancing 0
	settings 'n = 64;'
	with_daemon free ours
	mark_journal
	everything
	with_daemon free everything
	mark_journal
	everything
	with_daemon bound everything
	balancing 1
	printf '%s\n' "sampling: { $UNCAPPED };" 'threads: { policy = "lbma"; };' >"$CONF"
	with_daemon free both
}

begin_pmu
settings ''
with_daemon bound ours
effect "bound: converged at the shipped n in less than $limit_s s" [ "$seconds" != inf ]
mark_journal
settings 'n = 1;'
with_daemon bound ours_n1
effect "bound: converged at the paper's n = 1 in less than $limit_s s" [ "$seconds" != inf ]
if full; then compare_with_others; fi
