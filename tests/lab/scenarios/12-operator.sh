# shellcheck shell=bash
# Permissions to read and to control, top in a terminal of 80 by 24, the metrics, and the attribute of a cgroup,
# through real D-Bus, systemd and journald.
# SECURITY: group
# boot: main
# when: full
# limit: 600
. "$LAB/lib.sh"

readonly METRICS=/var/cache/numa-migrd/numa-migrd.prom
readonly GROUP=/sys/fs/cgroup/system.slice/opted.service

as() { runuser -u "$1" -- "${@:2}"; } # USER COMMAND…

status_of() { # COMMAND…: its exit status
	"$@" >&2
	echo $?
}

paused() { [[ $(numa-migrctl --json status) =~ \"paused\":\ *true ]]; }

# ---- users: without rights, and with the right to read ----

make_users() {
	useradd passerby
	useradd -G numa-migrd looker
}

remove_users() {
	userdel passerby
	userdel looker
}

may_not() { # USER COMMAND…
	check_equal "$1 may not: ${*:2}" 77 "$(status_of as "$1" numa-migrctl "${@:2}")"
}

who_may() {
	local user command
	for command in status threads "explain 1"; do
		# shellcheck disable=SC2086
		may_not passerby $command
	done
	check "passerby sees the status line" grep -q 'sampled' <<<"$(as passerby numa-migrctl status 2>/dev/null)"
	check "looker sees the status" as looker numa-migrctl status
	check "looker sees the threads" as looker numa-migrctl threads
	for user in passerby looker; do
		may_not "$user" pause
		may_not "$user" reload
		may_not "$user" manage 1
	done
	check "nothing was paused" fails paused
	check "root may pause" numa-migrctl pause
	check "it is paused" paused
	check "and the thread has its own affinity" wait_for 5 own_mask
	check "and resume" numa-migrctl resume
	check "root may reload" numa-migrctl reload
	check "the interface can be introspected" busctl --no-pager introspect org.numamigrd1 /org/numamigrd1
}

# ---- what is to be seen ----

managed() { [[ $(numa-migrctl explain process "$1") =~ state:\ *managed ]]; } # PID

lists() {
	local decision
	decision=$(field DECISION KIND=migrate | head -n 1)
	check "the decision is listed" grep -q "\"decision\": *$decision\b" <<<"$(numa-migrctl --json decisions)"
	check "and explained" numa-migrctl explain "$decision"
	check_equal "one that was never made is not" 1 "$(status_of numa-migrctl explain 999999)"
	check "a process is explained" wait_for 30 managed "$opted" # after the resume, an interval later
	check "processes" grep -q opted <<<"$(numa-migrctl processes)"
	check "one process" grep -q opted <<<"$(numa-migrctl processes "$opted")"
	check_equal "a process that is unknown" 1 "$(status_of numa-migrctl explain process 4194303)"
	check "doctor" grep -q '"version": *2' <<<"$(numa-migrctl --json doctor)"
	check "doctor: the service runs" grep -q 'numa-migrd is running' <<<"$(numa-migrctl doctor)"
	check "no colour where there is no terminal" fails grep -q $'\e' <<<"$(numa-migrctl doctor)"
}

screen() { tmux -L lab capture-pane -p -t top; }
shows() { [[ $(screen) == *"$1"* ]]; }
top_ended() { ! tmux -L lab has-session -t top 2>/dev/null; }

full_screen() {
	tmux -L lab -f /dev/null new-session -d -s top -x 80 -y 24 "numa-migrctl top"
	check "top: the nodes and the process" wait_for 30 shows opted
	screen | sed 's/^/# /'
	check_equal "top: it keeps within 80 columns" "" "$(screen | grep -E '.{81}')"
	tmux -L lab send-keys -t top q
	check "top: q ends it" wait_for 10 top_ended
}

# ---- metrics ----

metrics() {
	check "metrics: the file is there" wait_for 30 [ -s "$METRICS" ]
	check "metrics: others may read it" as passerby cat "$METRICS"
	check "metrics: it ends as OpenMetrics does" [ "$(tail -n 1 "$METRICS")" = "# EOF" ]
	if command -v promtool >/dev/null; then
		check "metrics: promtool" promtool check metrics <"$METRICS"
	else
		skip "metrics: promtool" "the host has none"
	fi
}

# ---- the attribute ----

set_attribute() { numa-migrctl steer opted "$1"; } # VALUE

own_mask() { workers_masked 0-7 "$opted"; }

# A misplaced thread in a unit that sets its attribute, as the shipped drop-in does.
start_opted() { # VALUE
	start_unit opted -p "ExecStartPre=+setfattr -n user.numa-migrd -v $1 $GROUP" membound -f -n opted -s 0 2 1 64
	opted=$started
}

opts_out() {
	effect "attribute: moved with on" get_moved start_opted on
	mark_journal
	check "attribute: off" set_attribute off
	check "attribute: the affinity is its owner's" wait_for 20 own_mask
	sleep 2
	mark_journal
	sleep 10
	check_equal "attribute: and nothing was decided since" 0 "$(count_entries "PID=$opted" KIND=migrate)"
}

opts_in() {
	local attempt
	start_opted off
	mark_journal
	sleep 15
	check_equal "attribute: a unit that begins with off is left alone" 0 "$(count_entries "PID=$opted" KIND=migrate)"
	for attempt in 1 2 3; do
		set_attribute on
		wait_for 30 moved_or_home "$opted" && moved "$opted" && break
		start_opted off
	done
	effect "attribute: on" moved "$opted"
}

# A restart makes another cgroup.
steers_permanently() {
	local cgroup=/sys/fs/cgroup/system.slice/kept.service
	kept_value() { getfattr --only-values -n user.numa-migrd $cgroup; }
	printf '[Service]\nExecStart=/bin/sleep infinity\n' >/run/systemd/system/kept.service
	systemctl daemon-reload
	systemctl start kept
	check "permanent: of a running service" numa-migrctl steer kept observe --permanent
	check_equal "permanent: now" observe "$(kept_value)"
	systemctl restart kept
	check_equal "permanent: after a restart" observe "$(kept_value)"
	check "permanent: reset" numa-migrctl steer kept reset --permanent
	check "permanent: no attribute now" fails kept_value
	systemctl restart kept
	check "permanent: none after a restart" fails kept_value
	systemctl stop kept
	rm -r /run/systemd/system/kept.service /etc/systemd/system/kept.service.d
	systemctl daemon-reload
}

others_directory() {
	check "attribute: the directory becomes another user's" chown passerby "$GROUP"
	check "attribute: who may restrict it" as passerby setfattr -n user.numa-migrd -v observe "$GROUP"
	check "attribute: observed, and not moved" wait_for 20 own_mask
}

begin
balancing 0
make_users
settings_faults "$LAX_FREE" opted
cat >>"$CONF" <<SETTINGS
pages: { policy = "watch"; };
metrics: { file = "$METRICS"; };
SETTINGS
mark_journal
systemctl start numa-migrd
effect "a thread is moved" get_moved start_opted on
who_may
lists
full_screen
metrics
opts_out
opts_in
others_directory
steers_permanently
systemctl stop numa-migrd
check "metrics: no file of a stopped service" [ ! -e "$METRICS" ]
check_equal "and numa-migrctl says that it is not running" 69 "$(status_of numa-migrctl status)"
doctor=$(as passerby numa-migrctl doctor || true)
check "doctor: systemd knows the unit, as any user sees" grep -q 'numa-migrd is installed and does not run' <<<"$doctor"
systemctl stop opted
remove_users
