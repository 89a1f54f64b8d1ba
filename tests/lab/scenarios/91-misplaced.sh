# shellcheck shell=bash
# Four processes of two threads, each started two hops from its memory and then free to move. Prints the remaining
# stalls: without balancing, with the kernel's balancing (--full), with IMAR², and bound by hand.
# boot: instrumented
# when: full
# limit: 400
# limit-full: 2400
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

readonly FILE=/var/lab/readings
# Seconds: of what stays as it is, and of what has to settle.
before=6 span=32
full && before=30 span=180

programs() { # [near]
	local node
	for node in 0 1 2 3; do
		if [[ ${1:-} == near ]]; then
			numactl -N $node -m $node grind -n "user$node" $node 2 16 &
		else
			grind -n "user$node" -s $(((node + 2) % 4)) $node 2 16 &
		fi
	done
	wait_for_programs 8
	release_programs
}

# Sets per_line (over the whole span), settled_per_line (over its last quarter) and settle.
run_for() { # SECONDS SINCE
	local first middle last
	watch_readings "$1" $FILE
	first=$(head -n 1 $FILE)
	middle=$(tail -n $(($1 / 4 + 1)) $FILE | head -n 1)
	last=$(tail -n 1 $FILE)
	per_line=$(stall_per_line "${first% *}" "${last% *}")
	settled_per_line=$(stall_per_line "${middle% *}" "${last% *}")
	settle=$(settle_s $FILE "$2")
	note "$per_line stall cycles a line, $settled_per_line at the end, $(local_permille "${middle% *}" "${last% *}") ‰ local at the end"
	stop_programs
}

# NAME POLICY [PARAMETERS]: the same with the daemon
with_daemon() {
	programs
	adjusted=${3-}
	settings_pmu "$2" '' 'user*'
	mark_journal
	start_beside
	run_for $span "$(uptime_s)"
	note "$1: $(moves)"
	figure "$1_stall_ratio" "$(ratio "$per_line" "$none")" of_none
	figure "$1_of_oracle" "$(of_oracle "$none" "$per_line" "$oracle")" share
	figure "$1_settled_of_oracle" "$(of_oracle "$none" "$settled_per_line" "$oracle")" share
	figure "$1_settle_s" "$settle" s
	systemctl stop numa-migrd
}

begin_pmu
programs
run_for $before 0
none=$per_line
programs near
run_for $before 0
oracle=$per_line
figure imar2_oracle_stall_ratio "$(ratio "$oracle" "$none")" of_none
# Threads that are let go do not all stay: the kernel's own balancing of load takes some home.
effect "the model: an oracle saves at least 33 % of the stalls" awk "BEGIN { exit !($oracle <= 0.67 * $none) }"
with_daemon imar2 imar2 ''
effect "IMAR² finds the placement" [ "$settle" != inf ]
effect "and wins at least half of what an oracle does, once settled" \
	awk "BEGIN { exit !($(of_oracle "$none" "$settled_per_line" "$oracle") >= 0.5) }"
if full; then
	with_daemon imar2_n1 imar2 'n = 1;'
	with_daemon lbma lbma ''
	balancing 1
	programs
	run_for $span "$(uptime_s)"
	figure automatic_of_oracle "$(of_oracle "$none" "$per_line" "$oracle")" share
	figure automatic_settled_of_oracle "$(of_oracle "$none" "$settled_per_line" "$oracle")" share
fi
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
