# shellcheck shell=bash
# The cost of the daemon with the defaults. The machine is emulated, so that its seconds are upper bounds, not
# measurements of a real machine.
# boot: main
# when: full
# limit: 240
. "$LAB/lib.sh"

span=8
full && span=15

cpu_ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
interrupts() { awk '/^intr/ { print $2 }' /proc/stat; }

# Interrupts per CPU and second while nothing else runs.
idle_interrupts() {
	local before
	before=$(interrupts)
	sleep $span
	echo $((($(interrupts) - before) * 10 / span / 8))
}

tenths() { echo "$(($1 / 10)).$(($1 % 10))"; }

begin
sleep 3
without=$(idle_interrupts)
systemctl start numa-migrd
pid=$(daemon_pid)
sleep 5
with=$(idle_interrupts)
figure lab_idle_interrupts_without_per_cpu_s "$(tenths "$without")" 1/s
figure lab_idle_interrupts_with_per_cpu_s "$(tenths "$with")" 1/s

for _ in 1 2 3 4; do
	crowd 250 500 1000 &
done
sleep 10
before=$(cpu_ticks "$pid")
sleep $span
figure lab_daemon_cpu_percent $((($(cpu_ticks "$pid") - before) / span)) %_emulated
rss=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status")
figure lab_daemon_rss_mb "$(tenths $((rss * 10 / 1024)))" MB
check_memory "with 1,000 busy threads: at most 32 MB" [ "$rss" -le $((32 * 1024)) ]
kill %1 %2 %3 %4
systemctl stop numa-migrd
