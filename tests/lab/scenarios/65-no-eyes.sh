# shellcheck shell=bash
# No sampling source: balancing off, no injection, no helper and so, at perf_event_paranoid 3, no events. The daemon logs
# it with the remedy, neither crashes nor restarts, and changes nothing.
# boot: trouble
# when: full
# limit: 150
. "$LAB/lib.sh"

# Also when it is stopped half-way: the next scenario needs its helper.
give_eyes_back() {
	systemctl stop numa-migrd
	systemctl unmask --runtime numa-migrd-helper.socket numa-migrd-helper.service
	systemctl start numa-migrd-helper.socket
	kill "$started"
}

begin
balancing 0
start 2 membound -s 0 2 2 32
trap give_eyes_back EXIT
trap exit TERM
systemctl mask --now --runtime numa-migrd-helper.socket numa-migrd-helper.service
systemctl start numa-migrd
check "it logs what is missing" wait_for 10 has_entry KIND=problem
sleep 5
note "$(field MESSAGE)"
check_equal "no restart" 0 "$(systemctl show -P NRestarts numa-migrd)"
check_equal "no move" 0 "$(count_entries KIND=migrate)"
check_equal "and no home" 0 "$(count_entries KIND=home)"
check_equal "the masks are untouched" 0-7 "$(masks_of "$started" | cut -d' ' -f2 | sort -u)"
