# shellcheck shell=bash
# Helpers of the scenarios in the instrumented machine, beside lib.sh: the modelled PMU and its counters.

readonly PMU=/sys/bus/event_source/devices/numalab
readonly KERNEL_TROUBLE='WARNING:|BUG:|Oops|lockup|rcu.*stall|Call Trace|blocked for more than'

load_pmu() {
	[[ -d $PMU ]] || insmod /lab/numalab.ko
}

# Prints complaints of the kernel since boot.
kernel_trouble() { dmesg | grep -E "$KERNEL_TROUBLE"; }

# ---- the programs and what they cost ----

# READING READING: stall cycles for each line of work between the two
stall_per_line() {
	echo "$1 $2" | awk '{ lines = $10 - $5; printf "%.2f\n", (lines > 0 ? ($9 - $4) / lines : 0) }'
}

# READING READING: all accesses, of all programs, for each line of work
accesses_per_line() {
	echo "$1 $2" | awk '{ lines = $10 - $5; printf "%.3f\n", (lines > 0 ? ($6 - $1) / lines : 0) }'
}

# READING READING: share of local DRAM accesses
local_permille() {
	echo "$1 $2" | awk '{ l = $7 - $2; r = $8 - $3; printf "%d\n", l + r ? 1000 * l / (l + r) : 0 }'
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b) printf "%.3f\n", a / b; else print "nan" }'; }

# In percent: NOW BEFORE
increase() { awk -v a="$1" -v b="$2" 'BEGIN { if (b) printf "%.2f\n", 100 * (a / b - 1); else print "nan" }'; }

less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

# Share of the gain of an oracle: NONE OURS ORACLE
of_oracle() {
	awk -v n="$1" -v x="$2" -v o="$3" \
		'BEGIN { if (n > o) printf "%.3f\n", (n - x) / (n - o); else print "nan" }'
}

# So many readings into the file, a second apart, each with the time since boot.
watch_readings() { readings -t "$1" >"$2"; } # COUNT FILE

uptime_s() { cut -d' ' -f1 /proc/uptime; }

# Seconds from the first line to the one after which never again less than 85 % was local; or inf.
settle_s() { # FILE SINCE
	awk -v since="$2" 'NR > 1 { l = $2 - local; r = $3 - remote
			if (l + r && l < 0.85 * (l + r)) settled = ""
			else if (settled == "") settled = $6 - since }
		{ local = $2; remote = $3 }
		END { if (settled == "") print "inf"; else printf "%.1f\n", settled }' "$1"
}

# Sets `leaders`: of the programs that count their work. Without a process for it, as all here: an emulated
# machine at work takes a second to start one.
find_programs() {
	local file
	leaders=()
	for file in /dev/shm/grind.*; do
		[[ ! -e $file ]] || leaders+=("${file##*.}")
	done
}

# Waits until that many of their threads, other than the leaders, run and have settled.
wait_for_programs() { # THREADS
	wait_for 60 has_threads "$1" || note "not $1 threads within 60 s"
	sleep 2
}

has_threads() {
	local leader tasks=()
	find_programs
	for leader in "${leaders[@]}"; do
		tasks+=(/proc/"$leader"/task/*)
	done
	((${#tasks[@]} == $1 + ${#leaders[@]}))
}

signal_programs() { # SIGNAL
	find_programs
	((${#leaders[@]} == 0)) || kill "-$1" "${leaders[@]}"
}

# Those that begin bound may go where they like.
release_programs() { signal_programs USR1; }

stop_programs() {
	signal_programs KILL
	rm -f /dev/shm/grind.*
}

# The daemon with the modelled PMU's samples, managing what the scenario starts; TEXT adds to the parameters of `threads`,
# `groups` adds further groups of settings, and `adjusted` parameters.
groups='' adjusted=''
settings_pmu() { # POLICY TEXT COMMAND…
	local policy=$1 text=$2 command include=()
	shift 2
	parameters "$LAX_FREE $adjusted"
	for command; do
		include+=("{ command = \"$command\"; }")
	done
	cat >"$CONF" <<-SETTINGS
		targets: { include = ( $(IFS=,; echo "${include[*]}") ); min_rss_mb = 1; };
		sampling: { source = "event"; $UNCAPPED };
		threads: { policy = "$policy"; };
		parameters: { sampling: { event = "numalab/period=4999/"; }; threads: { $text }; };
		$groups
	SETTINGS
}

# Starts the daemon while the programs are stopped: beside them the start takes 30 s here, during which nothing is
# measured.
start_beside() {
	signal_programs STOP
	systemctl start numa-migrd
	signal_programs CONT
}

# Begins a scenario with the PMU, no balancing and no programs.
begin_pmu() {
	begin
	renice -n -20 -p $$ >/dev/null # else each look at the programs waits behind them; they are at 0
	load_pmu
	balancing 0
	stop_programs
}

# Local shares, in permille, of the threads that were moved though most of their memory was local.
moved_from_home() {
	{ field LOCAL_SHARE_PERMILLE KIND=migrate KIND=swap && field LOCAL_SHARE_PERMILLE_2 KIND=swap; } |
		awk '$1 > 500'
}

moves() { echo "$(count_entries KIND=migrate) migrations, $(count_entries KIND=swap) swaps, $(count_entries KIND=rollback) rollbacks"; }

# ---- where time is paced ----

mhz() { cat "$LAB/mhz"; }

# "NS LATE_NS": the guest's clock, and what all CPUs were ahead of it.
lateness() {
	local ns
	ns=$(awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime)
	awk -v ns="$ns" '{ late += $3 } END { print ns, late + 0 }' $PMU/times
}
