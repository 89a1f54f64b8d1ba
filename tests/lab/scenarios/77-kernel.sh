# shellcheck shell=bash
# What kernels do otherwise from one release to the next: the mask that an owner has asked for is remembered (6.2) or
# not, hinting faults skip what others have mapped (6.7), and memory comes in folios of 16 to 128 KiB (6.8) where it is
# told to. What is seen and restored is the same on each.
# boot: main
# when: release
# limit: 400
. "$LAB/lib.sh"

readonly FOLIOS=/sys/kernel/mm/transparent_hugepage

# Those of a thread that its owner has narrowed, once managed and once not: whatever this kernel remembers.
start_narrowed() { # NAME
	start 1 membound -n "$1" -s 0 2 1 48
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
	effect "masks: a thread that its owner has narrowed is leased" lend start_asked
	echo 0-5 >$GROUP/cpuset.cpus
	systemctl stop numa-migrd
	check "masks: in a smaller cpuset it has what an unmanaged one has" wait_for 10 same_masks
	note "in a smaller cpuset: $(worker_mask "$alone")"
	echo 0-7 >$GROUP/cpuset.cpus
	check "masks: and when the cpuset widens again" wait_for 10 same_masks
	note "when it widens again: $(worker_mask "$alone")"
	kill -9 "$asked" "$alone"
	wait_for 10 rmdir $GROUP
}

start_hinted() {
	[[ ! $hinted ]] || kill -9 "$hinted"
	start 1 membound -H -n hinted -s 0 2 1 64
	hinted=$started
}

by_hinting_faults() {
	hinted=''
	settings_soft_dirty "$LAX_FREE" hinted
	sed -i 's/inject = "soft_dirty"/inject = "numa_balancing"/' "$CONF"
	systemctl start numa-migrd
	effect "hinting faults: a thread is leased by what they show" lend start_hinted
	systemctl stop numa-migrd
	check_equal "hinting faults: its mask is back" 0-7 "$(worker_mask "$hinted")"
	check_equal "hinting faults: kernel.numa_balancing is as before" 0 "$(cat /proc/sys/kernel/numa_balancing)"
	kill -9 "$hinted"
}

folios() { # always|never
	local file
	for file in $FOLIOS/hugepages-{16,64,128}kB/enabled; do
		[[ ! -e $file ]] || echo "$1" >"$file"
	done
}

start_folios() {
	[[ ! $folio ]] || kill -9 "$folio"
	start 1 membound -n folios -s 0 2 1 64
	folio=$started
}

# Soft-dirty bits are of pages, also where one fault brings in many.
in_folios() {
	folio=''
	[[ -e $FOLIOS/hugepages-64kB ]] || note "this kernel has no folios between a page and a huge one"
	folios always
	settings_soft_dirty "$LAX_FREE" folios
	systemctl start numa-migrd
	effect "folios: a thread is leased" lend start_folios
	systemctl stop numa-migrd
	check_equal "folios: its mask is back" 0-7 "$(worker_mask "$folio")"
	kill -9 "$folio"
	folios never
}

readonly GROUP=/sys/fs/cgroup/lab-kernel
begin
trap 'folios never; rmdir $GROUP 2>/dev/null' EXIT
note "$(uname -r)"
balancing 0
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
settings_soft_dirty "$LAX_FREE" asked
systemctl start numa-migrd
remembered
by_hinting_faults
in_folios
