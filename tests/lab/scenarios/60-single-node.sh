# shellcheck shell=bash
# A machine with one node: nothing to do, logged once, and no crash.
# boot: single
# when: full
# limit: 150
. "$LAB/lib.sh"

begin
check_equal "the machine has one node" 0 "$(cat /sys/devices/system/node/online 2>/dev/null || echo 0)"
check "it starts" systemctl start numa-migrd
check "it logs that there is only one node" wait_for 5 has_entry NODES=1
note "$(field MESSAGE)"
start 2 membound 0 2 32
sleep 10
check_equal "no restart" 0 "$(systemctl show -P NRestarts numa-migrd)"
check_equal "no failure" success "$(systemctl show -P Result numa-migrd)"
check_equal "no move" 0 "$(count_entries KIND=migrate)"
check_equal "and no home" 0 "$(count_entries KIND=home)"
check "it stops" systemctl stop numa-migrd
kill "$started"
