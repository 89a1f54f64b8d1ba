# shellcheck shell=bash
# Thousands of short-lived threads and processes with hostile names, for a minute: no error, no growth; and one hostile
# name that lives long enough to be moved and logged.
# SECURITY: names, forks
# boot: trouble
# when: full
# limit: 300
. "$LAB/lib.sh"

readonly HOSTILE=$'x) R 1\n\e[31m\xff'

seconds=12
full && seconds=60

fds() { find "/proc/$pid/fd" -mindepth 1 | wc -l; }
rss_kb() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"; }
not_grown() { (($2 <= $1 + $3)); } # BEFORE AFTER ALLOWED

hostile_moved() { has_entry KIND=migrate "PID=$hostile"; }

# Prints how many processes and threads came and went: at least as many, in at least the seconds.
churn_for() { # SECONDS PROCESSES THREADS
	local made processes=0 threads=0 begun=$SECONDS
	while ((SECONDS - begun < $1 || processes < $2 || threads < $3)); do
		made=$(churn 6)
		processes=$((processes + ${made% *})) threads=$((threads + ${made#* }))
	done
	echo "$processes $threads"
}

begin
balancing 0
settings_faults "$LAX_FREE" 'x)*'
systemctl start numa-migrd
pid=$(daemon_pid)
start 1 membound -f -n "$HOSTILE" -s 0 2 1 48
hostile=$started
churn_for 0 3000 0 >/dev/null # its tables grow to what this needs
fds_before=$(fds) rss_before=$(rss_kb)
made=$(churn_for $seconds 0 1000)
note "$made short-lived processes and threads"
figure lab_churn_fds $(($(fds) - fds_before)) growth
figure lab_churn_rss $(($(rss_kb) - rss_before)) kB_growth
check "no more file descriptors" not_grown "$fds_before" "$(fds)" 2
check_memory "no more memory than 1 MB" not_grown "$rss_before" "$(rss_kb)" 1024
check_equal "no error" '' "$(field MESSAGE PRIORITY=0 PRIORITY=1 PRIORITY=2 PRIORITY=3)"
check "it is the same process" [ "$(daemon_pid)" = "$pid" ]
effect "the thread with the hostile name was moved" wait_for 60 hostile_moved
name=$(field COMM "PID=$hostile" | sort -u)
note "its name in the journal: $name"
check_equal "on one line, without control characters" 1 "$(printf '%s\n' "$name" | grep -vc '[[:cntrl:]]')"
check "in valid UTF-8" iconv -f UTF-8 -t UTF-8 <<<"$name"
check "numa-migrctl status answers" numa-migrctl status --json
systemctl stop numa-migrd
check_equal "its mask is back" 0-7 "$(masks_of "$hostile" | cut -d' ' -f2 | sort -u)"
kill "$hostile"
