# shellcheck shell=bash
# Time that is real: walks through memory take as long, by the guest's own clock, as their modelled cycles say; alone,
# and with every CPU at work.
# boot: paced
# limit: 400
# when: asked
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

readonly MB=16 PASSES=2

# DISTANCE "LINES NS QUEUED": measured over modelled. A line is five instructions and an access to memory.
walk_ratio() {
	echo "$2" | awk -v distance="$1" -v mhz="$(mhz)" \
		'{ printf "%.3f\n", $2 * mhz / 1000 / ($1 * (20 * distance + 5) + $3) }'
}

# What is more are the ticks in between, whose caches are cold.
is_true() { awk -v ratio="$1" 'BEGIN { exit !(ratio > 0.97 && ratio < 1.05) }'; }

check_walk() { # NAME DISTANCE "LINES NS QUEUED"
	local ratio
	ratio=$(walk_ratio "$2" "$3")
	figure "walk_ratio_$1" "$ratio" of_modelled
	check "a walk ($1) takes its modelled time" is_true "$ratio"
}

# How late the CPUs were altogether, in permille of the time since the reading before.
late_permille() { # READING READING: as by late()
	echo "$1 $2" | awk '{ printf "%d\n", 1000 * ($4 - $2) / (8 * ($3 - $1)) }'
}

renice -n -20 -p $$ >/dev/null
load_pmu
balancing 0
before=$(lateness)
check_walk local 10 "$(walk 0 0 $MB $PASSES)"
check_walk near 21 "$(walk 0 1 $MB $PASSES)"
check_walk far 31 "$(walk 0 2 $MB $PASSES)"
for cpu in 0 1 2 3 4 5 6 7; do
	walk $cpu $((cpu / 2)) $MB $PASSES >/var/lab/walk.$cpu &
	walks[cpu]=$!
done
wait "${walks[@]}"
for cpu in 0 1 2 3 4 5 6 7; do
	check_walk "beside_$cpu" 10 "$(cat /var/lab/walk.$cpu)"
done
after=$(lateness)
figure late_permille "$(late_permille "$before" "$after")" permille
check "the host kept up" [ "$(late_permille "$before" "$after")" -lt 20 ]
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
