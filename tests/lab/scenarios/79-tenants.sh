# shellcheck shell=bash
# User A starts 200 busy threads, forks without end, changes attributes of cgroups, holds locks of memory maps, and has
# processes pinned to a node 1,900 levels deep in cgroups. User B's program is leased all the same, and has its affinity
# again after a stop. Then the watchdog and a signal end the daemon again and again until systemd gives it up: in the end
# each affinity is its owner's.
# SECURITY: slow-restore, many-groups, forks
# boot: trouble
# when: full
# limit: 900
. "$LAB/lib.sh"

readonly A=65534 B=games LEDGER=/run/numa-migrd/ledger LEVELS=1900 PINNED=100 THREADS=200 STOP_S=60
readonly DROP_IN=/run/systemd/system/numa-migrd.service.d/crash-loop.conf

# ---- user A ----

as_a() { # UNIT COMMAND…
	local unit=$1
	shift
	systemd-run --quiet --unit="$unit" --slice=user-$A.slice -p User=$A -p Delegate=yes -p TasksMax=infinity "$@"
}

# As files: systemd would take the variables for its own.
readonly SCRIPTS=/run/lab-tenants
write_scripts() {
	mkdir -p $SCRIPTS
	cat >$SCRIPTS/deep.pl <<-'PERL'
		my ($levels, $count) = @ARGV;
		open(my $file, "<", "/proc/self/cgroup"); my ($own) = <$file> =~ /^0::(.*)$/;
		chdir("/sys/fs/cgroup$own") or die "cgroup: $!";
		for (1 .. $levels) { mkdir("x") and chdir("x") or die "level $_: $!" }
		open(my $procs, ">", "cgroup.procs") or die "procs: $!";
		syswrite($procs, $$) or die "move: $!";
		for (1 .. $count) { fork() or do { sleep(1000) while 1 } }
		$| = 1; print "deep\n"; sleep(1000) while 1;
	PERL
	cat >$SCRIPTS/labels.pl <<-'PERL'
		open(my $file, "<", "/proc/self/cgroup"); my ($own) = <$file> =~ /^0::(.*)$/;
		chdir("/sys/fs/cgroup$own") or die "cgroup: $!";
		for (my $i = 0; ; $i = ($i + 1) % 100) {
			mkdir("y$i");
			system("setfattr", "-n", "user.numa-migrd", "-v", "on$i", "y$i");
			rmdir("y$i");
		}
	PERL
	chmod -R a+rX $SCRIPTS
}

has_said() { [[ $(journalctl -q -o cat _SYSTEMD_UNIT="$1.service") == *"$2"* ]]; }

begin_a() {
	write_scripts
	as_a hog "$(command -v crowd)" $THREADS 1000 100
	as_a forker "$(command -v churn)" 100000
	as_a locker "$(command -v holder)" 3
	as_a labels perl $SCRIPTS/labels.pl
	as_a deep taskset -c 4-5 perl $SCRIPTS/deep.pl $LEVELS $PINNED
	check "A's cgroups are $LEVELS levels deep" wait_for 60 has_said deep deep
	mapfile -t pinned < <(pgrep -u $A -f deep.pl)
	check "and has $PINNED pinned processes there" [ ${#pinned[@]} -gt $PINNED ]
}

end_a() {
	systemctl kill -s KILL hog forker locker labels deep 2>/dev/null
	rm -r $SCRIPTS
}

still_pinned() { masks_of "${pinned[@]}" | cut -d' ' -f2 | sort -u; }

# ---- user B ----

start_b() {
	start_unit victim -p User=$B membound -n victim -s 0 2 2 48
}
b_masks() { masks_of "$(unit_pid victim)" | cut -d' ' -f2 | sort -u; }
b_has_own() { [[ $(b_masks) == 0-7 ]]; }

# ---- the end of the daemon ----

given_up() { [[ $(systemctl show -P ActiveState numa-migrd) == failed ]]; }

# By turns it hangs until the watchdog ends it, and is killed.
crash_until_given_up() {
	local last=0 pid signal=STOP end=$((SECONDS + 400))
	crashes=0
	until given_up || ((SECONDS > end)); do
		pid=$(daemon_pid)
		if ((pid && pid != last)) && is_active; then
			last=$pid
			crashes=$((crashes + 1))
			kill -$signal "$pid"
			[[ $signal == STOP ]] && signal=KILL || signal=STOP
		fi
		look_away
	done
}

begin
modprobe fuse
balancing 0
settings_soft_dirty "$LAX_FREE" victim crowd holder
sed -i 's/^targets: {/& min_cpu_percent = 0; min_rss_mb = 1;/' "$CONF"
begin_a
systemctl start numa-migrd
effect "B's program is leased" lend start_b
check "it answers B's questions" timeout 60 setpriv --reuid=games --clear-groups numa-migrctl status
before=$SECONDS
check "a stop takes no longer than its limit" timeout $STOP_S systemctl stop numa-migrd
figure lab_tenants_stop $((SECONDS - before)) s
check_equal "it was in good order" success "$(systemctl show -P Result numa-migrd)"
check_equal "B's affinity is B's" 0-7 "$(b_masks)"
check_equal "and what A has pinned stays so" 4-5 "$(still_pinned)"
check "no ledger is left" fails test -e $LEDGER

mkdir -p "${DROP_IN%/*}"
printf '[Unit]\nStartLimitIntervalSec=3600\nStartLimitBurst=4\n[Service]\nRestartSec=1\nWatchdogSec=20\nTimeoutAbortSec=5\n' >"$DROP_IN"
systemctl daemon-reload
systemctl start numa-migrd
effect "B's program is leased again" lend start_b
crash_until_given_up
check "systemd gives it up" given_up
note "after $crashes crashes: $(systemctl show -P Result numa-migrd)"
check "there were several" [ "$crashes" -ge 3 ]
check "B's affinity is B's" wait_for 30 b_has_own
check_equal "and what A has pinned stays so after all" 4-5 "$(still_pinned)"
check "no ledger is left in the end" wait_for 10 fails test -e $LEDGER
rm "$DROP_IN"
rmdir --ignore-fail-on-non-empty "${DROP_IN%/*}"
systemctl daemon-reload
systemctl reset-failed numa-migrd 2>/dev/null
end_a
systemctl stop victim hog forker locker labels deep 2>/dev/null
true
