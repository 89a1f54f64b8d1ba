# shellcheck shell=bash
# A recording of the daemon on a real kernel, made over the bus, gives the same decisions in a replay, bit for bit.
# boot: main
# limit: 600
. "$LAB/lib.sh"

readonly FILE=/var/lab/recording

as() { runuser -u "$1" -- "${@:2}"; } # USER COMMAND…

status_of() { # COMMAND…: its exit status
	"$@" >&2
	echo $?
}

own_mask() { workers_masked 0-7 "$recorded"; }

# A misplaced thread, and a recording of what comes of it, in place of the last ones.
start_recorded() {
	[[ ! $recorder ]] || { stop_recorder; kill -9 "$recorded"; }
	rm -f "$FILE"
	start 1 membound -n recorded -s 0 2 1 64
	recorded=$started
	numa-migrctl record "$FILE" &
	recorder=$!
}

stop_recorder() {
	kill -INT "$recorder"
	wait "$recorder"
}

grows() { # FILE
	local before
	before=$(stat -c %s "$1")
	sleep 3
	[[ $(stat -c %s "$1") != "$before" ]]
}

entries_of() { numa-migrctl dump "$1" | grep -c "^$2 "; } # FILE KIND

replays() { # FILE
	local said
	said=$(numa-migrctl replay "$1" 2>&1) || {
		note "$said"
		return 1
	}
	note "${said//$'\n'/; }"
	[[ $said == *"the same decisions, bit for bit"* ]]
}

# ---- over the bus ----

who_may() {
	useradd passerby
	check_equal "a recording is for root" 77 "$(status_of as passerby numa-migrctl record --seconds=1 /tmp/of-others)"
	check "who may not leaves no file" [ ! -e /tmp/of-others ]
	userdel passerby
}

over_the_bus() {
	effect "a thread is leased while it is recorded" lend start_recorded
	check_equal "there is one recording at a time" 1 "$(status_of numa-migrctl record --seconds=1 /var/lab/other)"
	sleep 10 # for the verdict
	check "the recording ends when it is interrupted" stop_recorder
	check_equal "it is for its owner alone" 600 "$(stat -c %a "$FILE")"
	note "$(stat -c %s "$FILE") bytes"
	figure lab_recording_bytes_per_interval "$(($(stat -c %s "$FILE") / $(entries_of "$FILE" interval)))" B
	check "nothing is appended after its end" fails grows "$FILE"
}

# ---- without a daemon ----

looked_at() {
	check "the replay decides the same" replays "$FILE"
	check "also as a user who owns nothing" replays_for_others
	check "a decision is in it" [ "$(entries_of "$FILE" decision)" -gt 0 ]
	check "and its receipt" [ "$(entries_of "$FILE" receipt)" -gt 0 ]
}

replays_for_others() {
	install -m 444 "$FILE" /tmp/for-others
	as nobody numa-migrctl replay /tmp/for-others
	local r=$?
	rm -f /tmp/for-others
	return "$r"
}

torn() {
	cp "$FILE" "$FILE.torn"
	truncate -s -5 "$FILE.torn"
	check "one that was cut off is replayed up to there" replays "$FILE.torn"
	printf x | dd of="$FILE.torn" bs=1 seek=$(($(stat -c %s "$FILE.torn") / 2)) conv=notrunc status=none
	check_equal "damage is told" 1 "$(status_of numa-migrctl replay "$FILE.torn")"
	rm -f "$FILE.torn"
}

begin
recorder=''
balancing 0
settings_soft_dirty "$LAX_FREE" recorded
mark_journal
systemctl start numa-migrd
who_may
over_the_bus
check "the journal has entries about the recordings" wait_for 5 has_entry KIND=record
systemctl stop numa-migrd
check "every affinity is as it was" wait_for 5 own_mask
looked_at
torn
kill -9 "$recorded"
rm -f "$FILE"
