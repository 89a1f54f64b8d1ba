# shellcheck shell=bash
# Nothing to gain: every thread beside its memory, and one process whose threads are uneven by nature. No
# thread is taken from its memory (the kernel may carry one away, and we back), and the stalls do not rise.
# boot: instrumented
# when: full
# limit: 240
# limit-full: 420
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"

span=12
full && span=120

# A span of it; sets per_line and local.
measure() {
	local before after
	before=$(readings)
	sleep $span
	after=$(readings)
	per_line=$(stall_per_line "$before" "$after")
	local=$(local_permille "$before" "$after")
}

# Threads that the kernel scatters within a span do not count: a harmful daemon does harm in every span.
not_worse() { less "$per_line" "$(awk "BEGIN { print 1.01 * $without }")"; }

begin_pmu
for node in 0 1 3; do
	grind -n "settled$node" -s $node $node 1 16 &
done
grind -n uneven -u -s 2 2 2 16 &
wait_for_programs 5
release_programs
measure
note "without the daemon: $per_line stall cycles a line, $local ‰ local"
without=$per_line
settings_pmu imar2 '' 'settled*' uneven
start_beside
sleep 5
for _ in 1 2 3 4; do
	measure
	note "with it: $per_line stall cycles a line, $local ‰ local; $(moves)"
	not_worse && break
done
check_equal "no thread is taken from its memory" '' "$(moved_from_home)"
figure imar2_settled_moves "$(($(count_entries KIND=migrate) + $(count_entries KIND=swap)))" moves
figure imar2_settled_loss_percent "$(increase "$per_line" "$without")" %
effect "the stalls rise by less than 1 %, in one of four spans" not_worse
systemctl stop numa-migrd
stop_programs
