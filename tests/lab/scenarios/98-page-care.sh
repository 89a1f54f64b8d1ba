# shellcheck shell=bash
# Moving pages with care: within a memory cpuset, not onto a node that is nearly full, while the threads
# exit, and while a real-time task keeps a CPU to itself and each drain of the CPUs waiting.
# As 96-pages: by --full or by name.
# boot: instrumented
# when: full
# limit: 300
. "$LAB/lib.sh"
. "$LAB/pmu-lib.sh"
. "$LAB/pages-lib.sh"

readonly HOG=/dev/shm/hog

# Pages of its own memory that the process has on these nodes.
pages_on() { # PID NODE…
	local pid=$1
	shift
	tr ' ' '\n' <"/proc/$pid/numa_maps" | awk -F= -v nodes="$*" '
		BEGIN { n = split(nodes, list, " "); for (i = 1; i <= n; i++) wanted["N" list[i]] = 1 }
		/^anon=/ { own = 1 } /^[0-9a-f]+$/ { own = 0 }
		own && ($1 in wanted) { sum += $2 } END { print sum + 0 }'
}

free_mb() { # NODE
	awk '/MemFree:/ { print int($4 / 1024) }' "/sys/devices/system/node/node$1/meminfo"
}

pages_began() { (($(status_of pages_moved) > before)); }

# Starts the daemon on these programs and waits until it moves pages; returns whether it did.
begin_moving() { # COMMAND
	settings_pmu none '' "$1"
	mark_journal
	start_beside
	before=0
	wait_for 40 pages_began
}

have_come() { (($(pages_on "$kept" 1) > 500)); }

errors() { field MESSAGE PRIORITY=0 PRIORITY=1 PRIORITY=2 PRIORITY=3; }

begin_pmu
bound=yes # where their pages have to go is then no chance
groups='pages: { policy = "exclusivity"; };' adjusted=$PATIENT

# Its threads are on all nodes, its memory may be on two of them.
systemd-run --quiet --unit=kept -p AllowedMemoryNodes=0-1 "$(command -v sharers)" "${rests[@]}" -n kept -s private $THREADS 2
wait_for_programs $THREADS
find_programs
kept=${leaders[0]}
elsewhere=$(pages_on "$kept" 2 3) # of the files that it has mapped
effect "cpuset: pages are moved" begin_moving kept
# Moves that did not help are rolled back, so that they need not stay.
effect "cpuset: to the other node that it may use" wait_for 20 have_come
note "cpuset: $(pages_on "$kept" 0) pages on node 0, $(pages_on "$kept" 1) on node 1; moved $(status_of pages_moved), refused $(status_of pages_refused), failed $(status_of pages_failed)"
sleep 5
check_equal "cpuset: to none that it may not" "$elsewhere" "$(pages_on "$kept" 2 3)"
systemctl stop numa-migrd kept
stop_programs

# 24 MiB are left on node 2, less than pages.keep_free. Threads are there, their memory is on node 0.
echo 3 >/proc/sys/vm/drop_caches # caches would count as room
numactl -m 2 fallocate -l $(($(free_mb 2) - 24))M $HOG
sharers_begin -n full -s private $THREADS 2
left=$(free_mb 2)
effect "full: pages are moved" begin_moving full
sleep 8
note "full: $left MiB were free on node 2, $(free_mb 2) are; moved $(status_of pages_moved), refused $(status_of pages_refused), failed $(status_of pages_failed)"
check "full: what was free there stays so" [ "$(free_mb 2)" -ge $((left - 6)) ]
systemctl stop numa-migrd
stop_programs
rm $HOG

# They end while their pages are moved, again and again.
sharers_begin -n exits -s private $THREADS 2
effect "exits: pages are moved" begin_moving exits
pid=$(daemon_pid)
for _ in 1 2; do
	stop_programs
	sharers_begin -n exits -s private $THREADS 2
	before=$(status_of pages_moved)
	wait_for 20 pages_began || note "exits: no page was moved in 20 s"
done
stop_programs
check "exits: the daemon answers" numa-migrctl status
check_equal "exits: it is the same one" "$pid" "$(daemon_pid)"
check_equal "exits: no error" '' "$(errors)"
systemctl stop numa-migrd

# A real-time task has CPU 7 for itself, as far as the kernel lets it.
sharers "${rests[@]}" -n beside -s private $((THREADS - 1)) 2 &
wait_for_programs $((THREADS - 1))
chrt --fifo 50 taskset -c 7 bash -c 'while :; do :; done' &
spinner=$!
effect "spinner: pages are moved" begin_moving beside
pid=$(daemon_pid)
intervals=$(status_of intervals)
sleep 10
note "spinner: intervals $intervals, then $(status_of intervals); pages moved $(status_of pages_moved), longest call $(status_of page_call_longest_ns) ns, backed off $(status_of page_backoffs) times"
effect "spinner: the intervals continue" [ "$(status_of intervals)" -ge $((intervals + 4)) ]
check_equal "spinner: the watchdog has nothing to do" "$pid 0" "$(daemon_pid) $(systemctl show -P NRestarts numa-migrd)"
check_equal "spinner: no error" '' "$(errors)"
kill $spinner
systemctl stop numa-migrd
stop_programs
if full; then nm_bench_mover; fi
check_equal "the kernel has nothing to complain about" '' "$(kernel_trouble)"
