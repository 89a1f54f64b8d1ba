# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The screen of `numa-migrctl top` for scripts/pictures: four unbound programs of as many threads as a node has CPUs.
# boot: main
# when: asked
# limit: 240
. "$LAB/lib.sh"

readonly COLUMNS_WIDE=100 LINES_HIGH=14

screen() { tmux -L lab capture-pane -p -t top; }
shows_homes() { (($(screen | grep -cE '^ *[0-9]+ +tenant-[a-d] .*managed') == 4)); }
has_homes() { (($(count_entries KIND=home) >= 4)); }

begin
balancing 0
programs=()
for name in a b c d; do
	sharers -n "tenant-$name" all 2 4 &
	programs+=("$!")
done
sleep 2
cat >"$CONF" <<-SETTINGS
	targets: { include = ( { command = "tenant-*"; } ); };
	sampling: { $UNCAPPED };
SETTINGS
mark_journal
systemctl start numa-migrd
effect "four programs have a home" wait_for 60 has_homes
tmux -L lab -f /dev/null new-session -d -s top -x $COLUMNS_WIDE -y $LINES_HIGH "numa-migrctl top"
check "top shows four processes" wait_for 60 shows_homes
sleep 3
screen | sed 's/^/# top: /'
tmux -L lab kill-session -t top
systemctl stop numa-migrd
kill "${programs[@]}"
