# shellcheck shell=bash
# The installed units deny the operations that no program of numa-migrd needs: each is attempted in the sandbox of the
# daemon, the helper and a worker.
# SECURITY: no-more, cap-ptrace, helper-itself
# boot: main
# when: full
# limit: 200
. "$LAB/lib.sh"

# The unit's own sandbox around another program.
attempt_in() { # UNIT [ALLOWED…]: other operations that were allowed
	local unit=$1 program
	shift
	program=/usr/local/sbin/attempts
	sed -E -e '/^(Type|Exec(Reload|StopPost)|Restart|NotifyAccess|RuntimeDirectory.*|CacheDirectory.*|WatchdogSec)=/d' \
		-e '/^(Standard(Input|Output|Error)|TimeoutStopSec|Requires|After|Wants)=/d' \
		-e "s|^ExecStart=.*|ExecStart=$program $*|" -e "s|^ExecPaths=|&$program |" \
		"$(systemctl show -P FragmentPath "$unit")" >/run/systemd/system/attempted.service
	systemctl daemon-reload
	systemctl start --wait attempted
	journalctl --sync
	journalctl -q -o cat -u attempted --since="$mark" | grep -E '^(allowed|denied) |attempts$'
	rm /run/systemd/system/attempted.service
	systemctl daemon-reload
}

# Whether a file can be made there as the helper sees it. It lets no program be executed, so that there is no way in.
helper_writes() { # DIRECTORY
	local root
	systemctl start numa-migrd-helper.service
	root=/proc/$(systemctl show -P MainPID numa-migrd-helper.service)/root
	[[ -d $root$1 ]] || return 0
	touch "$root$1/attempt" && rm "$root$1/attempt"
}

allowed() { sed -n 's/^allowed //p' <<<"$result" | paste -sd' '; }
nr_denied() { grep -c '^denied ' <<<"$result"; }

begin
trap 'rm -f /usr/local/sbin/attempts' EXIT
cp "$(command -v attempts)" /usr/local/sbin/
# Outside of any unit most of them are root's.
check "they can be had" [ "$(attempts | grep -c '^allowed')" -ge 15 ]

mark_journal
result=$(attempt_in numa-migrd.service)
note "$(systemctl show -P ExecMainStatus attempted): $(tail -n 1 <<<"$result")"
check_equal "the daemon is denied all" '' "$(allowed)"
check "they were attempted" [ "$(nr_denied)" -ge 25 ]

check "the helper's /etc is read-only" fails helper_writes /etc
check "and its /run" fails helper_writes /run
check "but for its own directory" helper_writes /run/numa-migrd-helper
mark_journal
result=$(attempt_in numa-migrd-helper.service)
check_equal "and so is the helper" '' "$(allowed)"
check "they were attempted" [ "$(nr_denied)" -ge 25 ]

mark_journal
result=$(attempt_in numa-migrd-worker@x.service)
check_equal "and a worker" '' "$(allowed)"
check "they were attempted" [ "$(nr_denied)" -ge 25 ]
