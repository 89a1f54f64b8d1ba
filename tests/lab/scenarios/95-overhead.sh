# shellcheck shell=bash
# What seeing costs: the same programs without the daemon, and with sampling on and policy "none".
# boot: instrumented
# limit: 120
# limit-full: 300
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

span=15
full && span=60

# Sets per_line, accesses and lines_s of a span.
measure() {
	local before after
	before=$(reading)
	sleep $span
	after=$(reading)
	per_line=$(stall_per_line "$before" "$after")
	accesses=$(accesses_per_line "$before" "$after")
	lines_s=$(((${after##* } - ${before##* }) / span))
}

percent() { awk "BEGIN { printf \"%.2f\", $2 ? 100 * ($1 / $2 - 1) : 0 }"; } # NOW BEFORE

begin_pmu
for node in 0 1 2 3; do
	grind -n "load$node" -s $node $node 1 16 &
done
sleep 4
measure
old_per_line=$per_line old_accesses=$accesses old_lines_s=$lines_s
settings_pmu none '' 'load*'
systemctl start numa-migrd
sleep 5
measure
note "$(numa-migrctl status | tr -s ' \n' ' ;')"
figure imar2_sampling_stall_percent "$(percent "$per_line" "$old_per_line")" %
figure imar2_sampling_accesses_percent "$(percent "$accesses" "$old_accesses")" %
figure imar2_sampling_speed_percent "$(percent "$lines_s" "$old_lines_s")" %_emulated
check "the programs' stalls rise by less than 2 %" awk "BEGIN { exit !($per_line < 1.02 * $old_per_line) }"
check_equal "nothing is moved" 0 "$(count_entries KIND=migrate)"
systemctl stop numa-migrd
stop_programs
