# shellcheck shell=bash
# Well-placed threads on a half-idle machine: at the defaults none is moved.
# boot: main
# limit: 120
. "$LAB/lib.sh"

duration=30
full && duration=60

begin
for node in 0 1; do
	membound -H -s $node $node 2 32 >/dev/null &
	pids+=($!)
done
sleep 2
systemctl start numa-migrd
sleep $((duration + 5)) # beside the warm-up
note "$(numa-migrctl status | tr '\n' ';')"
check_equal "no move in $duration s" 0 "$(count_entries KIND=migrate)"
check_equal "no swap" 0 "$(count_entries KIND=swap)"
check "they are still on node 0" workers_on 0 "${pids[0]}"
check "they are still on node 1" workers_on 1 "${pids[1]}"
kill "${pids[@]}"
