# shellcheck shell=bash
# Threads at their memory on a machine that is 50 % idle: with the defaults none is moved.
# boot: main
# limit: 200
. "$LAB/lib.sh"

duration=20
full && duration=60

begin
# One on each node: another program that wakes up pushes it to its neighbour CPU at most.
for node in 0 1 2 3; do
	start 1 membound -H -s $node $node 1 64
	pids[node]=$started
done
echo "sampling: { $UNCAPPED };" >"$CONF"
systemctl start numa-migrd
sleep $((duration + 5)) # beside the warm-up
note "$(numa-migrctl status --json | tr -s ' \n' ' ')"
check_equal "no move in $duration s" 0 "$(count_entries KIND=migrate)"
check_equal "no swap" 0 "$(count_entries KIND=swap)"
for node in 0 1 2 3; do
	check "node $node keeps its thread" wait_for 5 workers_on $node "${pids[node]}"
done
kill "${pids[@]}"
