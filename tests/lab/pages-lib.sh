# shellcheck shell=bash
# Helpers of the scenarios about pages and sharing, beside lib.sh and pmu-lib.sh: the same program without
# a service, with an oracle, with numa-migrd, and, with --full, with the kernel's balancing and with numad.

readonly FILE=/var/lab/readings THREADS=8
# Each page drains the CPUs that run the program, and an emulated one keeps the others waiting: for ten
# milliseconds where they never rest, for half of one where they rest nine after each of work. And reading what
# a process has mapped takes a hundred times what it takes elsewhere.
rests=(-r9)
readonly PATIENT='call_limit_ms = 1000.0; maps_budget_ms = 200.0;'
# Seconds: of what stays as it is, and of what has to settle.
still_s=4 span=30
full && still_s=10 span=120

# Prints the last number of that name in the status of the daemon; 0 if there is none.
status_of() { # NAME
	numa-migrctl status --json | awk -F: -v name="$1" '{ gsub(/[ ",]/, "") } $1 == name { n = $2 } END { print n + 0 }'
}

# Pages that the kernel has moved, on behalf of any program, and huge pages that it split for that.
pages_moved() { awk '$1 == "pgmigrate_success" { print $2 }' /proc/vmstat; }
huge_split() { awk '$1 == "thp_migration_split" { n = $2 } END { print n + 0 }' /proc/vmstat; }

# Threads that begin bound stay so where `bound` is set: their owner has pinned them.
bound=''
sharers_begin() { # ARGUMENT…
	sharers "${rests[@]}" "$@" &
	wait_for_programs $THREADS
	[[ $bound ]] || release_programs
}

# Sets per_line (over the whole of it), settled_per_line (over its last quarter) and local (over that, too).
# Cases that never settle, because they have no oracle, are measured over the whole time.
measure_still() {
	local before after
	before=$(readings)
	sleep $still_s
	after=$(readings)
	per_line=$(stall_per_line "$before" "$after")
	settled_per_line=$per_line
	local=$(local_permille "$before" "$after")
	settle=0
}

measure_settling() {
	local since first middle last
	since=$(uptime_s)
	watch_readings $span $FILE
	first=$(head -n 1 $FILE)
	middle=$(tail -n $((span / 4 + 1)) $FILE | head -n 1)
	last=$(tail -n 1 $FILE)
	per_line=$(stall_per_line "${first% *}" "${last% *}")
	settled_per_line=$(stall_per_line "${middle% *}" "${last% *}")
	local=$(local_permille "${middle% *}" "${last% *}")
	if [[ $oracle == none ]]; then
		settled_per_line=$per_line
		local=$(local_permille "${first% *}" "${last% *}")
	fi
	settle=$(settle_s $FILE "$since")
}

# Prints the results of the last measurement, and its name; since `moved` and `split` were set.
print_figures() { # NAME WHO
	figure "$1_$2_local_permille" "$local" permille
	figure "$1_$2_stall_ratio" "$(ratio "$settled_per_line" "$none")" of_none
	figure "$1_$2_settle_s" "$settle" s
	figure "$1_$2_pages_moved" $(($(pages_moved) - moved)) pages
	figure "$1_$2_huge_split" $(($(huge_split) - split)) pages
	[[ $oracle == none ]] || figure "$1_$2_of_oracle" "$(of_oracle "$none" "$settled_per_line" "$oracle")" share
}

mark_pages() { moved=$(pages_moved) split=$(huge_split); }

# Sets `none` and, but for those that no placement suits for long, `oracle`.
measure_bounds() { # NAME ORACLE ARGUMENT…: ORACLE: yes or no
	local name=$1 with_oracle=$2
	shift 2
	oracle=none
	balancing 0
	mark_pages
	sharers_begin -n "$name" -s "$@"
	measure_still
	stop_programs
	none=$settled_per_line
	print_figures "$name" none
	[[ $with_oracle == yes ]] || return 0
	mark_pages
	sharers_begin -n "$name" -o "$@"
	measure_still
	stop_programs
	oracle=$settled_per_line
	print_figures "$name" oracle
}

measure_ours() { # NAME POLICY ARGUMENT…
	local name=$1 policy=$2
	shift 2
	sharers_begin -n "$name" -s "$@"
	settings_pmu "$policy" '' "$name"
	mark_journal
	mark_pages
	start_beside
	measure_settling
	print_figures "$name" ours
	figure "${name}_ours_ping_pong" "$(status_of pages_ping_pong)" pages
	note "$name: $(moves); pages moved $(status_of pages_moved), refused $(status_of pages_refused), elsewhere $(status_of pages_elsewhere), failed $(status_of pages_failed), slow calls $(status_of page_backoffs) of $(status_of page_calls); exclusivity $(status_of page_exclusivity)"
	note "$(field MESSAGE SHARING_THREADS=$THREADS | tail -n 1)"
	systemctl stop numa-migrd
	stop_programs
}

# The kernel's own, and numad where there is one.
measure_others() { # NAME ARGUMENT…
	local name=$1
	shift
	balancing 1
	sharers_begin -n "$name" -s "$@"
	mark_pages
	measure_settling
	stop_programs
	print_figures "$name" automatic
	balancing 0
	command -v numad >/dev/null || return 0
	sharers_begin -n "$name" -s "$@"
	mark_pages
	nice -n 20 numad -i 5
	measure_settling
	numad -i 0
	stop_programs
	print_figures "$name" numad
}

# The share of the gain of an oracle that is reached after settling; below 0 for a loss.
won() { of_oracle "$none" "$settled_per_line" "$oracle"; }

at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# All of it for one program; `won` and `settled_per_line` are ours afterwards.
compare() { # NAME POLICY ORACLE ARGUMENT…
	local name=$1 policy=$2 with_oracle=$3
	shift 3
	measure_bounds "$name" "$with_oracle" "$@"
	if full; then measure_others "$name" "$@"; fi
	measure_ours "$name" "$policy" "$@"
	effect "$name: no worse than without a service by more than 1 %" \
		at_least "$(awk "BEGIN { print 1.01 * $none }")" "$settled_per_line"
}
