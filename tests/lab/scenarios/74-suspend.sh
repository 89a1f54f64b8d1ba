# shellcheck shell=bash
# The machine sleeps for some seconds: the daemon continues, and still answers. Runs only on request, because not
# every emulator wakes up again.
# boot: trouble
# when: asked
# limit: 180
. "$LAB/lib.sh"

begin
balancing 0
settings_faults "$LAX_FREE" membound
start 1 membound -f -s 0 2 1 48
systemctl start numa-migrd
pid=$(daemon_pid)
effect "a thread is moved" wait_for 60 moved "$started"
if ! rtcwake -m freeze -s 5 >&2; then
	skip "it sleeps" "this kernel cannot sleep, or has no clock to wake it"
else
	sleep 5
	check_equal "it is the same process" "$pid" "$(daemon_pid)"
	check "it answers" numa-migrctl status
	check_equal "no error" '' "$(field MESSAGE PRIORITY=0 PRIORITY=1 PRIORITY=2 PRIORITY=3)"
fi
systemctl stop numa-migrd
check_equal "its mask is back" 0-7 "$(masks_of "$started" | cut -d' ' -f2 | sort -u)"
kill "$started"
