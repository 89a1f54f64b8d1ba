# shellcheck shell=bash
# Threads that share memory, started on different nodes: pairs, and, with --full, neighbours, all with all, and a pipeline
# (kMAF, figure 4). Prints the remaining stalls: without balancing, with an oracle, the kernel's balancing, numad
# (--full), and with policy kmaf.
# boot: instrumented
# when: full
# limit: 300
# limit-full: 4500
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"
. "$LAB/pages-lib.sh"

begin_pmu
full || span=50 # threads first, then pages
groups='pages: { policy = "exclusivity"; }; journal: { level = "debug"; };' adjusted=$PATIENT
rests=() rules='mapping_s = 1.0;'
compare pairs kmaf-paper yes pairs $THREADS 2
figure sharing_of_oracle "$(won)" share
figure sharing_settle_s "$settle" s
effect "pairs: threads were placed by shared memory" has_entry POLICY=kmaf-paper RESULT=applied
note "$(field MESSAGE POLICY=kmaf-paper RESULT=applied | head -n 1)"
note "$(field MESSAGE POLICY=kmaf-paper VERDICT=improved | head -n 1)"
effect "pairs: sharing threads meet, for at least half of what an oracle wins" at_least "$(won)" 0.5
if full; then
	compare neighbours kmaf yes neighbours $THREADS 2
	compare pipeline kmaf yes pipeline $THREADS 2
	compare all kmaf yes all $THREADS 8
	# Threads by sharing alone: pages stay, and nothing is lost by that.
	groups='journal: { level = "debug"; };'
	compare pairs_stay kmaf yes pairs $THREADS 2
fi
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
