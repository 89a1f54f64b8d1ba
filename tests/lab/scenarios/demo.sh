# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What scripts/demo shows where there is no machine with several nodes at hand.
# boot: main
# when: asked
# limit: 300
. "$LAB/lib.sh"
demo_dir=/var/lab
# shellcheck source=tests/lab/demo-lib.sh
. "$LAB/demo-lib.sh"

say() { echo "# $*"; }

begin
demo_find_nodes
say "four nodes, two CPUs each; kernel.numa_balancing is $(cat /proc/sys/kernel/numa_balancing) as Debian has it"
check "the programs started" demo_start 1 32
say "four programs run; each has its memory bound to a node, and began on another one"
say "watching them for ten seconds without numa-migrd …"
before=$(demo_share 20)
say "before: $before % of the threads are on the node of their memory"

# An emulated CPU is so slow that the shipped limit of own cost would leave hardly any samples.
demo_settings "$CONF" 100
say "systemctl start numa-migrd"
journalctl -q -f -n 0 -o cat -t numa-migrd > >(sed -u 's/^/#   /') &
follower=$!
systemctl start numa-migrd
converged=$(demo_converge 60)
after=$(demo_share 20)
moves=$(count_entries RESULT=applied)
improved=$(count_entries VERDICT=improved)
neutral=$(count_entries VERDICT=neutral)
say "systemctl stop numa-migrd"
systemctl stop numa-migrd
kill "$follower"
demo_stop
demo_table "$before" "$after" "$converged" "$moves" "$improved" "$neutral" | sed 's/^/# /'
effect "more threads are on the node of their memory than before" [ "$after" -gt "$before" ]
