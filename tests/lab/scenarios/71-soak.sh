# shellcheck shell=bash
# Endurance: thousands of processes, policies that change by reload, pause and resume, and owners that rotate, for the
# minutes given to scripts/soak (default: one). Nothing grows, no thread is moved back and forth, the daemon stays below
# its limit, and the kernel reports nothing.
# boot: trouble
# when: asked
# limit: 240
. "$LAB/lib.sh"

readonly POLICIES=(auto lbma imar2 kmaf balance)
readonly MOVES_A_MINUTE=12 # of one thread, at most
readonly CAP=50 # % of a CPU: the shipped 1 %, by what such a CPU shows too much (lib.sh)

fds() { find "/proc/$pid/fd" -mindepth 1 | wc -l; }
rss_kb() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"; }
cpu_s() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / hz }' "/proc/$pid/stat"; }
not_grown() { (($2 <= $1 + $3)); } # BEFORE AFTER ALLOWED
below() { awk -v found="$1" -v cap="$2" 'BEGIN { exit !(found <= cap) }'; }
most_moves() { field TID KIND=migrate | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 } END { if (!NR) print 0 }'; }
kernel_warnings() { dmesg --level=emerg,alert,crit,err,warn | grep -cE 'WARNING|BUG|Oops|soft lockup|hung task'; }

switch_policy() { # NAME
	sed -i "s/policy = \"[a-z0-9]*\"/policy = \"$1\"/" "$CONF"
	systemctl reload numa-migrd
}

# A new owner of the same kind of work takes the place of the old one, on the next node.
rotate() { # ROUND
	[[ -z ${worker:-} ]] || kill "$worker" 2>/dev/null || true
	start 2 membound -f $(($1 % 4)) 2 64
	worker=$started
}

a_round() { # ROUND
	rotate "$1"
	switch_policy "${POLICIES[$1 % ${#POLICIES[@]}]}"
	made=$(churn 10)
	total=$((total + ${made% *}))
	if (($1 % 3 == 2)); then
		numa-migrctl pause
		numa-migrctl resume
	fi
}

begin
minutes=${LAB_MINUTES:-0}
((minutes > 0)) || minutes=1
balancing 0
settings_faults "$LAX_FREE" membound
sed -i "s/overhead_percent = [0-9.]*/overhead_percent = $CAP.0/" "$CONF"
warned=$(kernel_warnings)
systemctl start numa-migrd
pid=$(daemon_pid)
total=0 round=0
while ((round < 4)); do # until its tables have grown to what this needs
	a_round $round
	round=$((round + 1))
done
fds_before=$(fds) rss_before=$(rss_kb) cpu_before=$(cpu_s) began=$(date +%s)
while (($(date +%s) - began < minutes * 60)); do
	a_round $round
	round=$((round + 1))
done
took=$(($(date +%s) - began))
share=$(awk -v a="$cpu_before" -v b="$(cpu_s)" -v s="$took" 'BEGIN { printf "%.2f", 100 * (b - a) / s }')
figure soak_minutes $((took / 60)) min
figure soak_rounds "$round" rounds
figure soak_churned "$total" processes
figure soak_fds $(($(fds) - fds_before)) growth
figure soak_rss $(($(rss_kb) - rss_before)) kB_growth
figure soak_cpu "$share" %
figure soak_moves "$(count_entries KIND=migrate)" moves
figure soak_moves_most "$(most_moves)" moves
check "no more file descriptors" not_grown "$fds_before" "$(fds)" 2
check_memory "no more memory than 2 MB" not_grown "$rss_before" "$(rss_kb)" 2048
check "its own cost is below its cap of $CAP %" below "$share" $CAP
check "no thread was moved back and forth" below "$(most_moves)" $((MOVES_A_MINUTE * (minutes + 2)))
check_equal "it is the same process" "$pid" "$(daemon_pid)"
check_equal "no error" '' "$(field MESSAGE PRIORITY=0 PRIORITY=1 PRIORITY=2 PRIORITY=3)"
check_equal "no warning of the kernel" "$warned" "$(kernel_warnings)"
systemctl stop numa-migrd
check_equal "every mask is back" 0-7 "$(masks_of "$worker" | cut -d' ' -f2 | sort -u)"
kill "$worker"
