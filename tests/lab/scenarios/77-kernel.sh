# shellcheck shell=bash
# Differences between kernel releases: whether the affinity that an owner has set is remembered (6.2), whether hinting
# faults skip mappings that a thread has not accessed (6.7), and whether memory comes in folios of 16 to 128 KiB (6.8, if
# enabled). Observations and restored affinities are the same on each.
# boot: main
# when: release
# limit: 400
. "$LAB/lib.sh"

readonly FOLIOS=/sys/kernel/mm/transparent_hugepage

# Those of a thread that its owner has narrowed, once managed and once not: regardless of what this kernel remembers.
start_narrowed() { # NAME
	start 1 membound -f -n "$1" -s 0 2 1 48
	taskset -a -p -c 2-7 "$started" >&2
	echo "$started" >"$GROUP/cgroup.procs"
}

start_asked() {
	[[ ! $asked ]] || kill -9 "$asked"
	start_narrowed asked
	asked=$started
}

same_masks() { [[ $(worker_mask "$asked") == "$(worker_mask "$alone")" ]]; }

worker_mask() { # PID
	masks_of "$1" | sed -n '2s/.* //p'
}

remembered() {
	asked=''
	mkdir $GROUP
	echo 0-7 >$GROUP/cpuset.cpus
	start_narrowed alone
	alone=$started
	effect "affinities: a thread that its owner has narrowed is moved" get_moved start_asked
	echo 0-5 >$GROUP/cpuset.cpus
	systemctl stop numa-migrd
	check "affinities: in a smaller cpuset it has that of an unmanaged one" wait_for 10 same_masks
	note "in a smaller cpuset: $(worker_mask "$alone")"
	echo 0-7 >$GROUP/cpuset.cpus
	check "affinities: and when the cpuset widens again" wait_for 10 same_masks
	note "when it widens again: $(worker_mask "$alone")"
	kill -9 "$asked" "$alone"
	wait_for 10 rmdir $GROUP
}

# By faults of the kernel's own balancing, which may move it to its memory: it is enough that its accesses are seen.
accesses_seen() { numa-migrctl --json threads "$hinted" | grep -q '"accesses": *[1-9]'; }

by_hinting_faults() {
	start 1 membound -H -n hinted -s 0 2 1 64
	hinted=$started
	settings_faults "$LAX_FREE" hinted
	echo 'parameters: { sampling: { inject = "numa_balancing"; }; };' >>"$CONF"
	systemctl start numa-migrd
	check "hinting faults: what a thread writes to is seen" wait_for 60 accesses_seen
	systemctl stop numa-migrd
	check_equal "hinting faults: its mask is back" 0-7 "$(worker_mask "$hinted")"
	check_equal "hinting faults: kernel.numa_balancing is as before" 0 "$(cat /proc/sys/kernel/numa_balancing)"
	kill -9 "$hinted"
}

# These sizes only; initially the kernel has huge ones enabled, which follow the setting for all.
folios() { # KB always|inherit
	local file
	for file in "$FOLIOS"/hugepages-*kB/enabled; do
		[[ ! -e $file ]] || echo never >"$file"
	done
	file=$FOLIOS/hugepages-$1kB/enabled
	[[ ! -e $file ]] || echo "$2" >"$file"
}

as_before() { folios 2048 inherit; }

faulted_in() { cat "$FOLIOS/hugepages-$1kB/stats/anon_fault_alloc"; } # KB

start_folios() {
	[[ ! $folio ]] || kill -9 "$folio"
	start 1 membound -f -F -n folios -s 0 2 1 64
	folio=$started
}

# One fault brings in many pages.
in_folios() { # KB
	local before
	if [[ ! -e $FOLIOS/hugepages-$1kB ]]; then
		skip "folios of $1 KiB" "this kernel has none between a page and a huge one"
		return
	fi
	folio=''
	folios "$1" always
	before=$(faulted_in "$1")
	settings_faults "$LAX_FREE" folios
	systemctl start numa-migrd
	effect "folios of $1 KiB: a thread is moved" get_moved start_folios
	check "folios of $1 KiB: its memory is in them" [ "$(faulted_in "$1")" -gt "$before" ]
	systemctl stop numa-migrd
	check_equal "folios of $1 KiB: its mask is back" 0-7 "$(worker_mask "$folio")"
	kill -9 "$folio"
	as_before
}

readonly GROUP=/sys/fs/cgroup/lab-kernel
begin
trap 'as_before; rmdir $GROUP 2>/dev/null' EXIT
note "$(uname -r)"
balancing 0
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
settings_faults "$LAX_FREE" asked
systemctl start numa-migrd
remembered
by_hinting_faults
for size in 16 64 128; do
	in_folios $size
done
