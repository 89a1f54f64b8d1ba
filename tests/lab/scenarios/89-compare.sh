# shellcheck shell=bash
# Runs what scripts/compare has listed in given/list, a line "ID SET FORM MODE SEED" each, and prints a line "run {…}"
# of each.
# boot: paced
# limit: 600
# when: asked
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"
. "$LAB/compare/programs.sh"
. "$LAB/compare/modes.sh"

prepare_data() {
	mkdir -p "$DATA"
	numactl -i all cp "$LAB"/given/data/* "$DATA"
	chmod -R a+rX "$DATA"
}

# Runs a function of programs.sh as user NUMBER, started on CPU. It prints only its results.
run_as() { # CPU NUMBER FUNCTION
	# shellcheck disable=SC2016 # for the shell that is started
	beginon "$1" setpriv --reuid=$((2000 + $2)) --regid=$((2000 + $2)) --clear-groups \
		"${bind[@]}" bash -c '. "$LAB/compare/programs.sh"; times=$1; "$2" "$3"' - "$times" "$3" "$2"
}

has_function() { declare -F "$1" >/dev/null; }

# Each user's step, all at once.
each_user() { # SET STEP MODE
	local users=count_$1 number pids=()
	has_function "$2_$1" || return 0
	for ((number = 0; number < ${!users}; number++)); do
		bind_user "$3" $number
		run_as "${cpus[number]}" $number "$2_$1" >>/var/lab/own &
		pids+=($!)
	done
	wait "${pids[@]}"
}

# The CPUs on which the users begin, by the seed alone.
draw_cpus() { # SEED
	local number
	RANDOM=$1
	cpus=()
	for ((number = 0; number < 8; number++)); do
		cpus+=($((RANDOM / 7 % 8)))
	done
}

# "SECONDS RUN_DELAY_S LOCAL REMOTE STALLS CYCLES LATE_NS": since boot, of the whole machine.
read_machine() {
	local local_ remote stalls
	read -r _ local_ remote stalls _ < <(readings)
	awk -v now="$EPOCHREALTIME" -v l="$local_" -v r="$remote" -v s="$stalls" '
		FILENAME ~ /schedstat/ && /^cpu/ { delay += $9 }
		FILENAME ~ /times/ { cycles += $2; late += $3 }
		END { printf "%s %.6f %s %s %s %.0f %.0f\n", now, delay / 1e9, l, r, s, cycles, late }' \
		/proc/schedstat $PMU/times
}

own_figures() {
	awk 'NF == 2 { sum[$1] += $2; n[$1]++ } END { for (name in sum) { printf "%s\"%s\":%.6g", comma, name, sum[name] / n[name]; comma = "," } }' /var/lab/own
}

report_run() { # ID SET FORM MODE SEED BEFORE AFTER AGENT_S
	echo "$6 $7" | awk -v id="$1" -v set="$2" -v form="$3" -v mode="$4" -v seed="$5" -v mhz="$(mhz)" -v agent="$8" -v own="$(own_figures)" '{
		s = $8 - $1; l = $10 - $3; r = $11 - $4
		printf "run {\"id\":\"%s\",\"program\":\"%s\",\"form\":\"%s\",\"mode\":\"%s\",\"seed\":%d,\"mhz\":%d,", id, set, form, mode, seed, mhz
		printf "\"seconds\":%.4f,\"run_delay_s\":%.4f,\"stall_cycles\":%.0f,\"cycles\":%.0f,", s, $9 - $2, $12 - $5, $13 - $6
		printf "\"local_permille\":%d,\"late_permille\":%.1f,\"agent_cpu_s\":%.3f,\"own\":{%s}}\n", l + r ? 1000 * l / (l + r) : 0, ($14 - $7) / 1e6 / (8 * s), agent, own
	}'
}

# Prints the journal of this run, if requested, in the seconds in which starts and ends of programs are given.
show_journal() { # ID BEFORE AFTER
	[[ -e $LAB/given/journal ]] || return 0
	echo "journal # $1: from ${2%% *} to ${3%% *}"
	{ journalctl -q -b -u numa-migrd -o short-unix --since "@${2%%.*}" && numa-migrctl status --json; } 2>&1 | sed 's/^/journal /'
}

# Of each node "NODE FREE HIGH", in MiB: its free memory, and the watermark up to which the kernel reclaims. Without
# ZONE_DMA, which is kept for devices.
free_and_high() {
	awk '/^Node/ { node = $2 + 0; dma = $4 == "DMA" } dma { next } $1 == "pages" && $2 == "free" { free[node] += $3 } $1 == "high" { high[node] += $2 }
		END { for (node in free) printf "%d %d %d\n", node, free[node] / 256, high[node] / 256 }' /proc/zoneinfo
}

# Reads as much as is free on each node from the disk without content; no part twice, as cached parts are not read. The
# cache of a disk lasts as long as the disk is open.
void_mib=0
fill_nodes() {
	local node free high pids=()
	while read -r node free high; do
		((free > high)) || continue
		numactl -N "$node" -m "$node" readahead /dev/vdb $void_mib $((free - high)) &
		pids+=($!)
		void_mib=$((void_mib + free - high))
	done < <(free_and_high)
	wait "${pids[@]}"
}

are_full() { free_and_high | awk -v spare=16 '$2 > $3 + spare { spared = 1 } END { exit spared }'; }

# As on a server that has been up for days: free memory is page cache, clean and inactive. False if some stays free.
# Most of it is read before the instruments start, in seconds; between runs, as much as the last one has left free.
fill_page_cache() {
	for _ in 1 2 3; do
		are_full || fill_nodes
	done
	note "MiB of each node: free (and high watermark):$(free_and_high | sort | awk '{ printf " %d (%d)", $2, $3 }'), $(awk '
		$3 ~ /^((Ina|A)ctive\(file\)|Dirty):/ { sum[$3] = sum[$3] " " int($4 / 1024) } END { for (name in sum) printf "%s%s, ", name, sum[name] }' \
		/sys/devices/system/node/node[0-3]/meminfo)"
	are_full
}

prepare_page_cache() { # FORM
	if [[ $1 == *+cache ]]; then
		fill_page_cache
	else
		sync
		echo 3 >/proc/sys/vm/drop_caches
	fi
}

one_run() { # ID SET FORM MODE SEED
	local before after agent_before agent_after
	times=1
	case ${3%+cache} in
	long) times=15 ;;
	x*) times=${3%+cache} && times=${times#x} ;;
	esac
	draw_cpus "$5"
	prepare_page_cache "$3" || { note "not run, as the page cache is not full: $1" && return; }
	begin_mode "$4" || { note "$4 does not start" && return; }
	: >/var/lab/own
	each_user "$2" begin "$4"
	: >/var/lab/own
	agent_before=$(agent_cpu_s "$4")
	before=$(read_machine)
	each_user "$2" user "$4"
	after=$(read_machine)
	agent_after=$(agent_cpu_s "$4")
	report_run "$@" "$before" "$after" "$(awk "BEGIN { print $agent_after - $agent_before }")"
	show_journal "$1" "$before" "$after"
	each_user "$2" end "$4"
	wait_for 10 users_are_gone
	end_mode "$4"
}

users_are_gone() { ! pgrep -u "$(seq -s, 2000 2007)" >/dev/null; }

begin
prepare_data
exec 4</dev/vdb
! grep -qF '+cache ' "$LAB/given/list" || fill_page_cache
load_pmu
export LAB
renice -n -5 -p $$ >/dev/null # looks at the machine do not wait behind the programs
while read -r -a run <&3; do
	one_run "${run[@]}"
done 3<"$LAB/given/list"
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
