# shellcheck shell=bash
# A migration that the next phase of the program makes bad: a thread one hop from its memory is moved to
# it, and at once turns to memory that is nearer to where it came from. It is undone, and T doubles.
# boot: instrumented
# limit: 240
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

begin_pmu
for performance in latency product; do
	settings_pmu imar2 "performance = \"$performance\"; t_min_s = 2.0;" phases
	mark_journal
	systemctl start numa-migrd
	grind -n phases -s 1 -a 2 0 1 16 &
	wait_for_programs 1
	release_programs
	check "$performance: it is moved to its memory" wait_for 40 has_entry KIND=migrate
	check "$performance: P falls and the move is undone" wait_for 20 has_entry KIND=rollback
	note "$(field MESSAGE VERDICT=rolled-back | head -n 1)"
	check "$performance: the verdict says so" has_entry VERDICT=rolled-back
	check "$performance: T was doubled" grep -qx 4 <(field INTERVAL_S VERDICT=rolled-back)
	systemctl stop numa-migrd
	stop_programs
done
