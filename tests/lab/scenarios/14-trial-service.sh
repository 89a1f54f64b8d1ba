# shellcheck shell=bash
# A trial of a service, through real D-Bus, systemd and cgroups: it prints a sentence, also in a guest whose CPUs vary, and
# the attribute of the cgroup is restored.
# boot: main
# when: full
# limit: 300
. "$LAB/lib.sh"

readonly SERVED=/sys/fs/cgroup/system.slice/served.service

has_attribute() { getfattr --only-values -n user.numa-migrd "$SERVED" 2>/dev/null; }

# Lines of memory that the service has gone through in three seconds.
# shellcheck disable=SC2016
readonly SPEED='count() { od -An -v -t u8 /dev/shm/grind.$(systemctl show -P MainPID served) |
	tr -s " " "\n" | awk "{ sum += \$1 } END { printf \"%.0f\", sum }"; }
	before=$(count); sleep 3; echo $(($(count) - before))'

trial() { # PERIODS: its result
	numa-migrctl trial service served --periods "$1" --seconds 12 --measure "$SPEED" 2>/dev/null | grep '^Result: '
}

begin
cat >"$CONF" <<-SETTINGS
	targets: { include = ( { command = "grind"; } ); min_rss_mb = 1; };
	sampling: { $UNCAPPED };
SETTINGS
systemctl start numa-migrd
start_unit served grind 0 2 8
check "the service runs" wait_for 30 [ -e "/dev/shm/grind.$started" ]
result=$(trial 12)
note "$result"
check "the result is a sentence with an interval" grep -qE '^Result: (no difference found|the measure)' <<<"$result"
check "the attribute is restored" fails has_attribute
check "two periods are too few" grep -q '^Result: too few periods: 1 with numa-migrd and 1 without' <<<"$(trial 2)"
check "a measure that fails is reported" grep -q 'false: failed' \
	<<<"$(numa-migrctl trial service served --seconds 1 --measure false 2>&1)"
check "and the attribute is restored" fails has_attribute
systemctl stop served
systemctl stop numa-migrd
