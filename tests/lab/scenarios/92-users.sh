# shellcheck shell=bash
# Four users with different programs and idle gaps, as in the paper's experiment, each begun where the
# kernel put it: LBMA, every variant of IMAR², the kernel's balancing and an oracle beside each other.
# boot: instrumented
# when: full
# limit: 300
# limit-full: 1500
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

span=8
full && span=60

as_user() { # NUMBER COMMAND…
	local id=$((2000 + $1))
	setpriv --reuid=$id --regid=$id --clear-groups "${@:2}" &
}

# The memory of user n is on node n; the oracle binds the threads to it.
programs() { # [near]
	local node bound=()
	local kinds=('' '-r' '-g 300:200' '-r -g 100:100')
	for node in 0 1 2 3; do
		[[ ${1:-} == near ]] && bound=(numactl -N "$node" -m "$node")
		# shellcheck disable=SC2086 # a kind is several words
		as_user $node "${bound[@]}" grind -n "user$node" ${kinds[node]} $node 2 16
	done
	wait_for_programs 8
}

# NAME: a span of it; sets per_line
run_for() {
	local before after
	before=$(readings)
	sleep $span
	after=$(readings)
	per_line=$(stall_per_line "$before" "$after")
	stop_programs
	figure "users_$1_stall_per_line" "$per_line" cycles
	figure "users_$1_local_permille" "$(local_permille "$before" "$after")" permille
	[[ ! ${none:-} ]] || figure "users_$1_stall_ratio" "$(ratio "$per_line" "$none")" of_none
}

# The policies of the paper swap threads of different users even if only one of them gains.
with_daemon() { # NAME POLICY [TEXT]
	programs
	settings_pmu "$2" "${3-}" 'user*'
	mark_journal
	start_beside
	full || sleep 12 # most of a short span would pass with warming up
	run_for "$1"
	note "$1: $(moves)"
	systemctl stop numa-migrd
}

begin_pmu
programs
run_for none
none=$per_line
programs near
run_for oracle
with_daemon imar2 imar2
effect "IMAR² leaves fewer stalls than no policy" less "$per_line" "$none"
if full; then
	with_daemon lbma lbma
	for performance in latency operations instructions product_instructions product; do
		with_daemon "imar2_$performance" imar2-paper \
			"performance = \"$performance\";"
	done
	with_daemon imar2_paper imar2-paper
	balancing 1
	programs
	run_for automatic
fi
