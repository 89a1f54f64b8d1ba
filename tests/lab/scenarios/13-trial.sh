# shellcheck shell=bash
# The trials of an administrator, through real D-Bus, systemd and cgroups: one of a service, whose attribute is restored,
# and one of processes, whose result outlives the command. Each prints a sentence.
# boot: main
# when: full
# limit: 1800
. "$LAB/lib.sh"

readonly SERVED=/sys/fs/cgroup/system.slice/served.service

has_attribute() { getfattr --only-values -n user.numa-migrd "$SERVED" 2>/dev/null; }

# Lines of memory that the service has gone through in three seconds.
readonly SPEED='count() { od -An -v -t u8 /dev/shm/grind.$(systemctl show -P MainPID served) |
	tr -s " " "\n" | awk "{ sum += \$1 } END { print sum }"; }
	before=$(count); sleep 3; echo $(($(count) - before))'

trial_of_a_service() {
	local result
	start_unit served "$(command -v grind)" 0 2 8
	check "a trial of a service" numa-migrctl trial service served --periods 12 --seconds 15 \
		--measure "$SPEED" >/tmp/service
	result=$(grep '^Result: ' /tmp/service)
	note "$result"
	check "its result is a sentence with an interval" grep -qE '^Result: (no difference found|the measure)' <<<"$result"
	check "the attribute is restored" fails has_attribute
	systemctl stop served
}

over() { numa-migrctl trial | grep -q '^Trial: over'; }

trial_of_processes() {
	check "a trial of processes" numa-migrctl trial start --minutes 17 >/tmp/start
	check "it shows for how long processes are drawn" grep -q 'in the first 7 min' /tmp/start
	check "status shows it" grep -q 'trial: running, 17 min left' <<<"$(numa-migrctl status)"
	check "a trial of a service is refused meanwhile" grep -q 'a trial is running' \
		<<<"$(numa-migrctl trial service numa-migrd --measure true 2>&1)"
	for _ in {1..70}; do
		for _ in 1 2; do
			timeout 60 alone 4 1 6 >/dev/null &
		done
		sleep 5
	done
	check "it ends" wait_for 1200 over
	numa-migrctl trial | sed 's/^/# /'
	check "the journal has its end" has_entry KIND=trial
	check "the result is a sentence" grep -qE '^Result: (no difference|a typical process|no comparison)' \
		<<<"$(numa-migrctl trial)"
	check "status shows the result" grep -q 'trial: over' <<<"$(numa-migrctl status)"
	check "doctor, too" grep -q 'The trial: over' <<<"$(numa-migrctl doctor)"
}

begin
cat >"$CONF" <<-SETTINGS
	targets: { include = ( { command = "grind"; }, { command = "alone"; } ); min_rss_mb = 1; };
	sampling: { $UNCAPPED };
SETTINGS
systemctl start numa-migrd
trial_of_a_service
trial_of_processes
systemctl stop numa-migrd
