# shellcheck shell=bash
# Threads that must not be moved keep their affinities; an unbound one in the same situation is moved.
# All write to node 2's memory from node 0.
# boot: main
# limit: 300
. "$LAB/lib.sh"

confined_pid() { cat /sys/fs/cgroup/system.slice/confined.service/cgroup.procs; }

others_masks() { masks_of "${pids[pinned]}" "${pids[realtime]}" "${pids[hands-off]}" "${pids[confined]}"; }

nodes_of() { # PID
	local tid
	for tid in $(threads_of "$1"); do node_of "$tid"; done | paste -sd,
}

start_free() {
	start 1 membound -f -n free -s 0 2 1 64
	pids[free]=$started
}

# Waits for a move. If the kernel moves the thread to its memory first, another one is started.
move_free() {
	local attempt
	for attempt in 1 2 3; do
		wait_for 45 watch_or_home && watch_masks && return
		note "attempt $attempt: threads, affinities $(masks_of "${pids[free]}" | paste -sd,); nodes $(nodes_of "${pids[free]}")"
		((attempt == 3)) && return 1
		kill "${pids[free]}"
		start_free
	done
}

begin
balancing 0
declare -A pids
systemd-run --quiet --unit=confined -p AllowedCPUs=0-1 "$(command -v membound)" -f -n confined 2 1 48
# Two of them rest between rounds: they shall not fill the node that the free one wants.
start 1 taskset -c 0-1 membound -f -n pinned 2 1 48
pids[pinned]=$started
start 1 chrt --rr 1 membound -f -n realtime -p 200 -s 0 2 1 48
pids[realtime]=$started
start 1 membound -f -n hands-off -p 200 -s 0 2 1 48
pids[hands-off]=$started
start_free
pids[confined]=$(confined_pid)
cat >"$CONF" <<SETTINGS
targets: {
	include = ( { command = "confined"; }, { command = "pinned"; }, { command = "realtime"; },
		    { command = "hands-off"; }, { command = "free"; } );
	exclude = ( { command = "hands-*"; } );
};
sampling: { $UNCAPPED };
threads: { policy = "lbma"; };
SETTINGS
parameters "$LAX_FREE"
before=$(others_masks)
systemctl start numa-migrd
changed=''
watch_masks() {
	[[ $(others_masks) == "$before" ]] || changed=$(others_masks)
	moved "${pids[free]}"
}
watch_or_home() { watch_masks || moved_or_home "${pids[free]}"; }
effect "the free neighbour is moved to its memory" move_free
effect "and runs there" wait_for 5 workers_on 2 "${pids[free]}"
effect "its move was seen to help" wait_for 20 has_entry VERDICT=improved "PID=${pids[free]}"
look_for 10 watch_masks
check_equal "pinned, real-time, confined and excluded: masks unchanged throughout" '' "$changed"
for kind in pinned realtime hands-off confined; do
	check_equal "$kind: no decision" 0 "$(count_entries "PID=${pids[$kind]}" KIND=migrate)"
done
systemctl stop numa-migrd
check_equal "and after the stop" "$before" "$(others_masks)"
systemctl stop confined
kill "${pids[pinned]}" "${pids[realtime]}" "${pids[hands-off]}" "${pids[free]}"
