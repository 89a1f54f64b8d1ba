# shellcheck shell=bash
# A migration that the next phase of the program makes bad: a thread one hop from its memory is moved to
# it, and at once turns to memory that is two hops away. It is rolled back, and T doubles.
# boot: paced
# when: full
# limit: 400
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

move_home() {
	mark_journal
	start_beside
	lockstep -n phases 16 1:0:2 &
	wait_for_programs 1
	release_programs
	wait_for 40 has_entry KIND=migrate NODE_TO=0
}

begin_pmu
adjusted='t_min_s = 2.0;'
for performance in latency product; do
	settings_pmu imar2 "performance = \"$performance\";" phases
	effect "$performance: it is moved to its memory" move_home
	effect "$performance: P falls and the move is rolled back" wait_for 20 has_entry KIND=rollback
	note "$(field MESSAGE VERDICT=rolled-back | head -n 1)"
	effect "$performance: the verdict is rolled-back" has_entry VERDICT=rolled-back
	check "$performance: T was doubled" grep -qx 4 <(field INTERVAL_S VERDICT=rolled-back)
	systemctl stop numa-migrd
	stop_programs
done
