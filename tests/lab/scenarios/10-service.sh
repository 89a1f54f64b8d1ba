# shellcheck shell=bash
# The package's life: install, start, reload with a good and with a bad file, stop, purge.
# SECURITY: no-more, cap-ptrace
# boot: main
# limit: 600
. "$LAB/lib.sh"

main_pid_kept() { [[ $(daemon_pid) == "$pid" ]] && is_active; }

refuses_to_start() {
	! systemctl start numa-migrd && [[ $(systemctl show -P ExecMainStatus numa-migrd) == 78 ]]
}

no_restarts() { [[ $(systemctl show -P NRestarts numa-migrd) == 0 ]]; }

exposure() { # UNIT: the score of systemd-analyze security
	systemd-analyze security --no-pager "$1" | sed -n 's/.*exposure level for.*: \([0-9.]*\) .*/\1/p'
}

ALL_ENCODED='Encoded by libpfm4: 10; by raw value: 0; not encoded: 0.'

maps_scotch() { grep -q libscotch "/proc/$pid/maps"; }

balancing_is() { [[ $(cat /proc/sys/kernel/numa_balancing) == "$1" ]]; }

# As the helper sees it, which lets no program be executed: there is no way in.
helper_may_write() { # FILE
	local root
	root=/proc/$(systemctl show -P MainPID numa-migrd-helper.service)/root
	(: >>"$root$1") 2>/dev/null
}

# That of one that runs; none: nothing, and 1.
worker_pid() {
	local unit
	unit=$(systemctl list-units --plain --no-legend --state=running 'numa-migrd-worker@*.service' |
		awk 'NR == 1 { print $1 }')
	[[ $unit ]] && systemctl show -P MainPID "$unit" | grep -vx 0
}

# Its own mount of /proc; systemd may have put it over the machine's.
worker_closed_links() {
	awk '$5 == "/proc" { last = $6 } END { exit !(last ~ /nosymfollow/) }' "/proc/$(worker_pid)/mountinfo"
}

worker_traces_alone() { grep -q '^CapPrm:[[:space:]]*0000000000080000$' "/proc/$(worker_pid)/status"; }

worker_has() { grep -q "$2" "/proc/$(worker_pid)/$1"; } # FILE PATTERN

# systemd reports a process that a filter killed, and the kernel's audit each call that it killed for.
no_filter_kills() { ! journalctl -q | grep -E 'status=31/SYS|type=1326'; }

# What `numa-migrd --list-events --pmu` prints of a CPU in the sandbox of a unit: this machine has no PMU to list.
encoded_in() { # UNIT
	sed -E -e '/^(Type|ExecReload|ExecStopPost|Restart|RuntimeDirectory.*|CacheDirectory.*|WatchdogSec)=/d' \
		-e 's|^ExecStart=.*|ExecStart=/usr/sbin/numa-migrd --list-events --pmu skx|' \
		-e 's|^ExecPaths=|&/usr/sbin/numa-migrd |' \
		"$(systemctl show -P FragmentPath "$1")" >/run/systemd/system/encoded.service
	systemctl daemon-reload
	systemctl start --wait encoded
	journalctl --sync
	journalctl -q -o cat -u encoded | grep '^Encoded by libpfm4'
	rm /run/systemd/system/encoded.service
	systemctl daemon-reload
}

check "the installed package asks for nothing that is missing" dpkg -i "$PACKAGE"
cp "$CONF" /var/lab/shipped.conf
begin
check "the shipped file is valid" numa-migrd --check-config
check_equal "it is a conffile" "$CONF" "$(dpkg-query -W -f '${Conffiles}' numa-migrd | awk '{ print $1 }')"
check "perf_event_paranoid is the kernel's own" [ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 3 ]

# The guest may not have numad.
printf '[Service]\nExecStart=/bin/sleep infinity\n' >/run/systemd/system/numad.service
systemctl daemon-reload
systemctl start numad
check "it starts" systemctl start numa-migrd
check "which stops numad" fails systemctl --quiet is-active numad
rm /run/systemd/system/numad.service
check "systemctl status reports that it runs" systemctl --no-pager status numa-migrd
pid=$(daemon_pid)
check_equal "it does not run as root" numa-migrd "$(ps -o user:20= -p "$pid" | tr -d ' ')"
check "the journal has the start record" wait_for 5 has_entry KIND=start
note "$(field MESSAGE KIND=start)"
for name in SOURCE SEED NODES CPUS; do
	check "the start record contains its $name" [ "$(field "$name" KIND=start)" ]
done
check_equal "it saw the nodes" 4 "$(field NODES KIND=start)"
check "numa-migrctl status" numa-migrctl status

start 2 membound 0 2 64
check "a worker runs as a unit of its own" wait_for 60 worker_pid
check "it follows no link of /proc" wait_for 10 worker_closed_links
check "and has CAP_SYS_PTRACE alone" wait_for 10 worker_traces_alone
check "libnuma is loaded under the unit's filter" worker_has maps /libnuma
check "which is in force" worker_has status '^Seccomp:[[:space:]]*2$'
kill "$started"

check_equal "libpfm4 encodes events under the daemon's unit" "$ALL_ENCODED" "$(encoded_in numa-migrd.service | tail -n 1)"
check_equal "and under the helper's" "$ALL_ENCODED" "$(encoded_in numa-migrd-helper.service | tail -n 1)"

echo 'parameters: { general: { interval_s = 2; }; };' >"$CONF"
check "a good file is taken at reload" systemctl reload numa-migrd
check "the journal has an entry" wait_for 5 has_entry KIND=reload
check "it is the same process" main_pid_kept

check "Scotch is not loaded without policy kmaf" fails maps_scotch
echo 'threads: { policy = "kmaf"; };' >"$CONF"
check "policy kmaf is taken" systemctl reload numa-migrd
check "and loads Scotch in the sandbox" wait_for 5 maps_scotch

balancing 0
echo 'parameters: { sampling: { inject = "numa_balancing"; }; };' >"$CONF"
check "a file that asks for balancing is taken" systemctl reload numa-migrd
check "the helper may write kernel.numa_balancing" wait_for 150 balancing_is 1
check "its own mount permits it" helper_may_write /proc/sys/kernel/numa_balancing
check "and nothing else below /proc/sys" fails helper_may_write /proc/sys/kernel/core_pattern
echo 'parameters: { general: { interval_s = "many"; }; };' >"$CONF"
check "a bad file makes systemctl reload fail" fails systemctl reload numa-migrd
kill -HUP "$pid"
check "and SIGHUP is answered with the reason" wait_for 5 has_entry KIND=reload-refused
note "$(field MESSAGE KIND=reload-refused)"
check "it runs on with the old settings" main_pid_kept

check "it stops" systemctl stop numa-migrd
check "kernel.numa_balancing is as it was" wait_for 5 balancing_is 0
check_equal "in good order" success "$(systemctl show -P Result numa-migrd)"
check "a bad file at start: exit 78" refuses_to_start
sleep 3
check "and no restart" no_restarts

journalctl --sync
check_equal "no worker printed anything" '' "$(journalctl -q -o cat -t numa-migrd-worker)"
check "and no filter killed a process" no_filter_kills

figure lab_exposure_daemon "$(exposure numa-migrd.service)" of_10
figure lab_exposure_helper "$(exposure numa-migrd-helper.service)" of_10
figure lab_exposure_worker "$(exposure numa-migrd-worker@x.service)" of_10
check "systemd-analyze security: the daemon at 1.0 or lower" \
	awk "BEGIN { exit !($(exposure numa-migrd.service) <= 1.0) }"
check "and the helper at 1.6 or lower" awk "BEGIN { exit !($(exposure numa-migrd-helper.service) <= 1.6) }"
check "and a worker at 1.2 or lower" awk "BEGIN { exit !($(exposure numa-migrd-worker@x.service) <= 1.2) }"

cp /var/lab/shipped.conf "$CONF"
systemctl reset-failed numa-migrd
systemctl start numa-migrd
check "purge while it runs" dpkg --purge numa-migrd
check_equal "purge leaves nothing" '' "$(leftovers)"
check_equal "but the user, who cannot log in" /usr/sbin/nologin "$(getent passwd numa-migrd | cut -d: -f7)"
