# shellcheck shell=bash
# Processes that policy "auto" misjudges if it looks at a part of them only: some threads pinned, the first thread
# exited, all memory in huge pages of the pool, CPUs or memory confined by a cpuset.
# boot: main
# when: full
# limit: 420
. "$LAB/lib.sh"

readonly CGROUPS=/sys/fs/cgroup

begin_with() { # COMMAND
	begin
	balancing 0
	cat >"$CONF" <<-SETTINGS
		targets: { include = ( { command = "$1"; } ); };
		sampling: { $UNCAPPED };
	SETTINGS
	mark_journal
}

# Sets `started`.
in_cpuset() { # NAME CPUS NODES COMMAND…
	local folder=$CGROUPS/$1
	mkdir -p "$folder"
	echo "$2" >"$folder/cpuset.cpus"
	echo "$3" >"$folder/cpuset.mems"
	(echo "$BASHPID" >"$folder/cgroup.procs" && exec "${@:4}") >/dev/null &
	started=$!
}

pages_on() { # NODE PID
	awk -v node="N$1=" '{ for (i = 1; i <= NF; i++) if (index($i, node) == 1) sum += substr($i, length(node) + 1) }
		END { print sum + 0 }' "/proc/$2/numa_maps"
}

is_managed() { [[ $(numa-migrctl explain process "$1" 2>&1) =~ state:\ *(managed|observed) ]]; } # PID

stop_all() {
	systemctl stop numa-migrd
	kill "$started" "${busy[@]}" 2>/dev/null
	wait
	busy=()
}

busy=()

begin_with partly
unusual partly pinned 24 >/dev/null &
started=$!
sleep 3
before=$(pages_on 1 "$started")
systemctl start numa-migrd
sleep 30
after=$(pages_on 1 "$started")
note "pages on the node of pinned threads: $before, later $after"
check "memory that pinned threads use stays with them" test "$after" -ge $((before * 9 / 10))
stop_all

begin_with leader
unusual leader leader 64 >/dev/null &
started=$!
systemctl start numa-migrd
check "a process whose first thread has exited is managed" wait_for 30 is_managed "$started"
stop_all

begin_with huge
echo 40 >/sys/devices/system/node/node2/hugepages/hugepages-2048kB/nr_hugepages
unusual huge huge 64 >/dev/null &
started=$!
systemctl start numa-migrd
check "huge pages of the pool count as memory" wait_for 30 is_managed "$started"
stop_all
echo 0 >/sys/devices/system/node/node2/hugepages/hugepages-2048kB/nr_hugepages

# One CPU of node 0, both of node 2.
begin_with uneven
echo +cpuset >$CGROUPS/cgroup.subtree_control
in_cpuset uneven 0,4-5 0-3 unusual uneven plain 32
systemctl start numa-migrd
sleep 25
check_equal "no affinity stays narrow in a cpuset of uneven nodes" 0,4-5 "$(masks_of "$started" | cut -d' ' -f2 | sort -u)"
stop_all

# Memory may only be on node 0, which is busy at first.
begin_with confined
for cpu in 0 1; do
	taskset -c $cpu sh -c 'while :; do :; done' &
	busy+=("$!")
done
in_cpuset confined 0-7 0 unusual confined plain 64
systemctl start numa-migrd
sleep 20
kill "${busy[@]}"
busy=()
sleep 20
away=$(count_entries "PID=$started" NODE_TO=1 NODE_TO=2 NODE_TO=3)
check_equal "no thread is moved away from memory that cannot follow" 0 "$away"
stop_all
rmdir $CGROUPS/uneven $CGROUPS/confined
