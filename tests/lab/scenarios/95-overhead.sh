# shellcheck shell=bash
# The cost of sampling: the same programs without the daemon, and with sampling and policy "none".
# boot: instrumented
# when: full
# limit: 240
# limit-full: 300
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

# A short span measures to a few percent only.
span=10 limit=5
full && span=60 limit=2

# The programs have the even CPUs for themselves: what they lose there is the cost of being watched, the
# rest is the daemon's own.
readonly WATCHED=2

# Sets per_line, accesses and lines_s of a span.
measure() {
	local before after
	before=$(readings $WATCHED)
	sleep $span
	after=$(readings $WATCHED)
	per_line=$(stall_per_line "$before" "$after")
	accesses=$(accesses_per_line "$before" "$after")
	lines_s=$(((${after##* } - ${before##* }) / span))
}

begin_pmu
for node in 0 1 2 3; do
	taskset -c $((2 * node)) grind -n "load$node" $node 1 16 &
done
wait_for_programs 4
measure
old_per_line=$per_line old_accesses=$accesses old_lines_s=$lines_s
settings_pmu none '' 'load*'
start_beside
sleep 5
measure
note "$(numa-migrctl status --json | tr -s ' \n' ' ')"
figure imar2_sampling_stall_percent "$(increase "$per_line" "$old_per_line")" %
figure imar2_sampling_accesses_percent "$(increase "$accesses" "$old_accesses")" %
figure imar2_sampling_speed_percent "$(increase "$lines_s" "$old_lines_s")" %_emulated
effect "the programs' stalls rise by less than $limit %" \
	less "$per_line" "$(awk "BEGIN { print (1 + $limit / 100) * $old_per_line }")"
check_equal "nothing is moved" 0 "$(count_entries KIND=migrate)"
systemctl stop numa-migrd
stop_programs
