# shellcheck shell=bash
# A migration that the next phase of the program makes bad: a thread one hop from its memory is moved to
# it, and at once turns to memory that is nearer to where it came from. It is undone, and T doubles.
# boot: instrumented
# limit: 120
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

migrated() { has_entry KIND=migrate || has_entry KIND=swap; }

begin_pmu
grind -n phases -s 1 -a 2 0 1 16 &
program=$!
settings_pmu imar2 'performance = "latency"; pin = "node";' phases
sleep 3
mark_journal
systemctl start numa-migrd
check "it is moved to its memory" wait_for 30 migrated
kill -USR1 $program
check "P falls and the move is undone" wait_for 20 has_entry KIND=rollback
note "$(field MESSAGE KIND=rollback | head -n 1)"
check "the verdict says so" wait_for 10 has_entry VERDICT=rolled-back
check "T was doubled" grep -qx 2 <(field INTERVAL_S VERDICT=rolled-back)
systemctl stop numa-migrd
stop_programs
