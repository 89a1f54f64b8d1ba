# shellcheck shell=bash
# A migration that the next phase of the program makes bad: a thread one hop from its memory is moved to
# it, and at once turns to memory that is nearer to where it came from. It is rolled back, and T doubles.
# boot: paced
# when: full
# limit: 400
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

# Until it is moved there by the daemon. The kernel may take it there before: then it has turned to the
# other memory already, and is started again.
move_home() {
	local attempt
	for attempt in 1 2 3; do
		mark_journal
		start_beside
		grind -n phases -s 1 -a 2 0 1 16 &
		wait_for_programs 1
		release_programs
		left=0
		wait_for 40 migrated_or_left
		has_entry KIND=migrate NODE_TO=0 && return
		note "attempt $attempt: $(field MESSAGE KIND=migrate | head -n 1)"
		((attempt == 3)) && return 1
		systemctl stop numa-migrd
		stop_programs
	done
}

# Not on the node that it began on for some looks: it will not be moved any more.
migrated_or_left() {
	! has_entry KIND=migrate || return 0
	if workers_on 1 "${leaders[@]}"; then left=0; else left=$((left + 1)); fi
	((left >= HOME_LOOKS))
}

begin_pmu
for performance in latency product; do
	settings_pmu imar2 "performance = \"$performance\"; t_min_s = 2.0;" phases
	effect "$performance: it is moved to its memory" move_home
	effect "$performance: P falls and the move is rolled back" wait_for 20 has_entry KIND=rollback
	note "$(field MESSAGE VERDICT=rolled-back | head -n 1)"
	effect "$performance: the verdict is rolled-back" has_entry VERDICT=rolled-back
	check "$performance: T was doubled" grep -qx 4 <(field INTERVAL_S VERDICT=rolled-back)
	systemctl stop numa-migrd
	stop_programs
done
