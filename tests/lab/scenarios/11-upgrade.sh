# shellcheck shell=bash
# Upgrade from an earlier package, and downgrade: running units keep running, stopped ones stay stopped, a changed
# configuration is kept, an unchanged one follows the package, and every affinity is restored. Then the shipped
# configuration with changing programs, for --minutes or 40 s; removal and purge leave nothing, and no warning.
# boot: main
# when: full
# limit: 800
. "$LAB/lib.sh"

# The earlier package: one that was given (tests/lab/run --earlier), or this one under a lower number and with
# another shipped configuration.
earlier_package() {
	local tree=/var/lab/earlier
	if [[ -f /lab/earlier.deb ]]; then
		echo /lab/earlier.deb
		return
	fi
	dpkg-deb -R "$PACKAGE" "$tree"
	sed -i 's/^Version: .*/Version: 0.0.1/' "$tree/DEBIAN/control"
	echo '# As an earlier version had it.' >>"$tree$CONF"
	dpkg-deb -Znone -b "$tree" "$tree.deb" >&2
	echo "$tree.deb"
}

# As an unattended upgrade does it: never asking, and keeping what the administrator has changed.
take() { DEBIAN_FRONTEND=noninteractive dpkg --force-confold --force-downgrade -i "$1"; }

state() { echo "$(systemctl is-enabled numa-migrd) $(systemctl is-active numa-migrd)"; }

version() { dpkg-query -W -f '${Version}' numa-migrd; }

runs_again() { # PID-BEFORE
	is_active && [[ $(daemon_pid) != "$1" ]]
}

# An earlier version keeps affinities narrowed.
lawful() { workers_masked 4-5 "$lent" || workers_masked 0-7 "$lent"; }

# Instead of the last one, whose CPU it shall have.
start_misplaced() {
	[[ ! $lent ]] || kill "$lent"
	start 1 membound -f -n lent -s 0 2 1 64
	lent=$started
}

# change NAME FILE: takes the package while the service runs and a thread is moved.
change() {
	local name=$1 file=$2 pid
	effect "$name: a thread is moved" get_moved start_misplaced
	pid=$(daemon_pid)
	check "$name: the package is taken" take "$file"
	check "$name: the service was started anew" wait_for 15 runs_again "$pid"
	check_equal "$name: and is enabled and running" "enabled active" "$(state)"
	check_equal "$name: the changed configuration is kept" "$changed" "$(cat "$CONF")"
	check "$name: the thread has its own affinity, or one of an earlier version" wait_for 10 lawful
	check "$name: what was released stays released" not_moved
}

not_moved() { [[ $(masks_of "$free" | cut -d' ' -f2 | sort -u) == 0-7 ]]; }

# ---- the shipped configuration ----

# Without the one that the kernel changes itself.
sysctls() { sysctl -a 2>/dev/null | grep -E '^(kernel\.(numa|perf|sched)|vm\.)' | grep -v max_sample_rate; }

affinities() { sed -n 's/^Cpus_allowed_list:\t//p' /proc/[0-9]*/task/[0-9]*/status 2>/dev/null | sort -u; }

warnings() {
	journalctl --sync
	journalctl -q -p warning --since="$mark" -o short | grep -iE 'numa-?migr' || true
}

# Programs that start on one node with memory on another, four at a time, each for about 20 s.
change_programs() { # SECONDS
	local end=$((SECONDS + $1)) count=0 running=()
	while ((SECONDS < end)); do
		start 2 membound -n "work$((count += 1))" -s $((count % 4)) $(((count + 1) % 4)) 2 32
		running+=("$started")
		((${#running[@]} <= 4)) || {
			kill "${running[0]}"
			running=("${running[@]:1}")
		}
		sleep 5
	done
	kill "${running[@]}"
	note "$count programs"
}

has_placed() { has_entry KIND=home || has_entry KIND=pages || has_entry KIND=migrate; }

begin
balancing 0
earlier=$(earlier_package)
dpkg --purge numa-migrd >&2
check "the earlier package is installed" take "$earlier"
note "from $(version) to $(dpkg-deb -f "$PACKAGE" Version)"
check_equal "which neither enables nor starts it" "disabled inactive" "$(state)"

check "stopped: the upgrade" take "$PACKAGE"
check_equal "stopped: it stays disabled and stopped" "disabled inactive" "$(state)"
check "stopped: an unchanged configuration is the new one" cmp "$CONF" /var/lab/shipped.conf
check "stopped: going back" take "$earlier"
check_equal "stopped: an unchanged configuration is the old one" \
	"$(dpkg-deb --fsys-tarfile "$earlier" | tar -xO ".$CONF")" "$(cat "$CONF")"

settings_faults "$LAX_FREE" lent free
changed=$(cat "$CONF")
lent=''
start 1 membound -f -n free -s 0 2 1 64
free=$started
mark_journal
systemctl enable --quiet --now numa-migrd
check "it runs" wait_for 10 is_active
numa-migrctl release "$free" >&2
check "a released process has its affinity" wait_for 10 not_moved
change upgrade "$PACKAGE"
change downgrade "$earlier"
check_equal "nothing failed on the way" 0 "$(count_entries KIND=reload-refused)"
systemctl stop numa-migrd
check_equal "in the end every mask is the original one" 0-7 "$(masks_of "$lent" "$free" | cut -d' ' -f2 | sort -u)"

systemctl disable --quiet numa-migrd
kill "$lent" "$free"
# Files of the lab, and the scripts of an earlier package, are not what is tested.
without_parameters
rm -f "$PARAMETERS"
take "$PACKAGE" >&2
edited=/etc/systemd/system/numa-migrd.service # as "systemctl edit --full" makes it
cp "$(systemctl show -P FragmentPath numa-migrd)" "$edited"
check "purge" dpkg --purge numa-migrd
check_equal "purge leaves an edited unit, and nothing else" "$edited" "$(leftovers)"
rm -f "$edited"
systemctl daemon-reload

before=$(sysctls) masks=$(affinities)
mark_journal
check "on a clean machine: the earlier package is installed" take "$earlier"
systemctl enable --quiet --now numa-migrd
check "it runs" wait_for 10 is_active
change_programs 20
check "upgrade" take "$PACKAGE"
check_equal "it is enabled and running" "enabled active" "$(state)"
check_equal "with the shipped configuration" '' "$(diff "$CONF" /var/lab/shipped.conf)"
change_programs $((LAB_MINUTES ? LAB_MINUTES * 60 : 20))
check "it has placed programs" has_placed
check "it is still active" is_active
figure rehearsal_homes "$(count_entries KIND=home)" homes
check "removal while it runs" dpkg --remove numa-migrd
check_equal "stops it" inactive "$(systemctl is-active numa-migrd)"
check "and keeps the configuration" test -f "$CONF"
check_equal "no affinity is left" "$masks" "$(affinities)"
check "purge after removal" dpkg --purge numa-migrd
check_equal "leaves no file" '' "$(leftovers)"
check_equal "no setting of the kernel" "$before" "$(sysctls)"
check_equal "and no warning in the journal" '' "$(warnings)"
