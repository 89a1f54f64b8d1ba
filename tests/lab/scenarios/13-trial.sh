# shellcheck shell=bash
# A trial of processes, through real D-Bus, systemd and journald: its result outlives the command, and is a sentence.
# boot: main
# when: full
# limit: 1200
. "$LAB/lib.sh"

over() { numa-migrctl trial | grep -q '^Trial: over'; }

begin
cat >"$CONF" <<-SETTINGS
	targets: { include = ( { command = "alone"; } ); min_rss_mb = 1; };
	sampling: { $UNCAPPED };
SETTINGS
systemctl start numa-migrd
check "it shows for how long processes are drawn" grep -q 'in the first 4 min' \
	<<<"$(numa-migrctl trial start --minutes 14)"
check "status shows it" grep -q 'trial: running, 14 min left' <<<"$(numa-migrctl status)"
check "a trial of a service is refused meanwhile" grep -q 'a trial is running' \
	<<<"$(numa-migrctl trial service numa-migrd --measure true 2>&1)"
for _ in {1..40}; do
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
systemctl stop numa-migrd
