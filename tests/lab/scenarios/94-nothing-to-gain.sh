# shellcheck shell=bash
# Perfect placement, and a process whose threads are uneven by nature: no move, and no loss.
# boot: instrumented
# limit: 120
# limit-full: 300
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

span=20
full && span=90

begin_pmu
for node in 0 1 3; do
	grind -n "settled$node" -s $node $node 2 16 &
done
grind -n uneven -u -s 2 2 2 16 &
sleep 4
start=$(reading)
sleep 10
without=$(stall_per_line "$start" "$(reading)")
settings_pmu imar2 '' 'settled*' uneven
systemctl start numa-migrd
sleep 5
start=$(reading)
sleep $span
with=$(stall_per_line "$start" "$(reading)")
check_equal "no migration" 0 "$(count_entries KIND=migrate)"
check_equal "no swap" 0 "$(count_entries KIND=swap)"
loss=$(awk "BEGIN { printf \"%.2f\", $without ? 100 * ($with / $without - 1) : 0 }")
figure imar2_settled_loss_percent "$loss" %
check "the stalls rise by less than 1 %" awk "BEGIN { exit !($loss < 1) }"
systemctl stop numa-migrd
stop_programs
