# shellcheck shell=bash
# Memory that was first touched on the wrong node, by threads that their owner has pinned to nodes: a stencil whose main
# thread initialises everything, and, with --full, the same on huge pages, one range that all read, and owners that
# rotate. Prints the remaining stalls: without balancing, with an oracle, the kernel's balancing, numad (--full), and the
# service.
# Beside other boots on two cores a worker takes longer to start here than this lasts: it is run by --full or by name.
# boot: instrumented
# when: full
# limit: 300
# limit-full: 4500
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"
. "$LAB/pages-lib.sh"

begin_pmu
bound=yes
groups='pages: { policy = "exclusivity"; }; journal: { level = "debug"; };' adjusted=$PATIENT
compare private imar2 yes private $THREADS 2
figure pages_of_oracle "$(won)" share
figure pages_settle_s "$settle" s
effect "private: an oracle saves at least 25 % of the stalls" at_least "$none" "$(awk "BEGIN { print $oracle / 0.75 }")"
effect "private: pages follow their threads, for at least half of what an oracle wins" at_least "$(won)" 0.5
if full; then
	compare huge imar2 yes -H private $THREADS 4
	compare readonly imar2 yes readonly $THREADS 16
	# The owners rotate for 90 s: the local access ratio shows how fast pages follow.
	span=240
	compare rotate imar2 no -p 90 rotate $THREADS 2
fi
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
