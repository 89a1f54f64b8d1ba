# shellcheck shell=bash
# Modelled time: walks through memory take as long, by the clock of the guest, as their modelled cycles; alone, and with
# every CPU busy.
# boot: paced
# limit: 400
# when: asked
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

readonly MB=16 PASSES=2
readonly APART=65 # lines: nothing is fetched ahead

# DISTANCE STEP "LINES NS QUEUED": measured over modelled. A line is six instructions and an access to memory; of each 64
# that are read in sequence, two are awaited in full, and the others at 10 % of their time.
walk_ratio() {
	echo "$3" | awk -v distance="$1" -v step="$2" -v mhz="$(mhz)" '{
		latency = 20 * distance
		if (step == 1) latency = (2 * latency + 62 * int(latency / 10)) / 64
		printf "%.3f\n", $2 * mhz / 1000 / ($1 * (latency + 6) + $3)
	}'
}

# The rest are ticks in between, whose caches are cold; beside lines that are prefetched they weigh more.
is_true() { # RATIO STEP
	awk -v ratio="$1" -v most="$((1050 + ($2 == 1) * 50))" 'BEGIN { exit !(ratio > 0.97 && ratio < most / 1000) }'
}

check_walk() { # NAME DISTANCE STEP "LINES NS QUEUED"
	local ratio
	ratio=$(walk_ratio "$2" "$3" "$4")
	figure "walk_ratio_$1" "$ratio" of_modelled
	check "a walk ($1) takes its modelled time" is_true "$ratio" "$3"
}

# How late the CPUs were altogether, in permille of the time since the reading before.
late_permille() { # READING READING: as by late()
	echo "$1 $2" | awk '{ printf "%d\n", 1000 * ($4 - $2) / (8 * ($3 - $1)) }'
}

renice -n -20 -p $$ >/dev/null
load_pmu
balancing 0
before=$(lateness)
check_walk local 10 $APART "$(walk 0 0 $MB $PASSES $APART)"
check_walk near 21 $APART "$(walk 0 1 $MB $PASSES $APART)"
check_walk far 31 $APART "$(walk 0 2 $MB $PASSES $APART)"
check_walk local_in_a_row 10 1 "$(walk 0 0 $MB $((8 * PASSES)) 1)"
check_walk far_in_a_row 31 1 "$(walk 0 2 $MB $((8 * PASSES)) 1)"
for cpu in 0 1 2 3 4 5 6 7; do
	walk $cpu $((cpu / 2)) $MB $PASSES $APART >/var/lab/walk.$cpu &
	walks[cpu]=$!
done
wait "${walks[@]}"
for cpu in 0 1 2 3 4 5 6 7; do
	check_walk "beside_$cpu" 10 $APART "$(cat /var/lab/walk.$cpu)"
done
after=$(lateness)
figure late_permille "$(late_permille "$before" "$after")" permille
check "the host kept up" [ "$(late_permille "$before" "$after")" -lt 20 ]
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
