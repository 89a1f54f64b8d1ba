# shellcheck shell=bash
# Threads that share memory, started on different nodes: pairs, and, with --full, neighbours, all with all, and a pipeline
# (kMAF, figure 4). Those that rest are not moved. Prints the remaining stalls: without balancing, with an oracle, the
# kernel's balancing, numad (--full), and with policy kmaf.
# boot: instrumented
# when: full
# limit: 300
# limit-full: 4500
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"
. "$LAB/pages-lib.sh"

begin_pmu
full || span=50
groups='pages: { policy = "exclusivity"; }; journal: { level = "debug"; };' adjusted=$PATIENT
# They rest, so that each wake-up could take them away again. The gain of their pages depends on the scheduler,
# and is printed only.
measure_bounds pairs yes pairs $THREADS 2
measure_ours pairs kmaf pairs $THREADS 2
figure sharing_of_oracle "$(won)" share
check_equal "pairs: threads that rest are left alone" 0 "$(count_entries POLICY=kmaf KIND=migrate KIND=swap)"
if full; then
	compare neighbours kmaf yes neighbours $THREADS 2
	compare pipeline kmaf yes pipeline $THREADS 2
	compare all kmaf yes all $THREADS 8
	# Threads by sharing alone: pages stay, and nothing is lost by that.
	groups='journal: { level = "debug"; };'
	compare pairs_stay kmaf yes pairs $THREADS 2
fi
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
