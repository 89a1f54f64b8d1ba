# shellcheck shell=bash
# Programs of Debian, and one of ours, that scripts/compare runs in the emulated machine; neither their memory nor their
# threads are bound.
# Each set NAME has
#   count_NAME  number of users, each with its own uid
#   setup_NAME  optional function that prepares the set before the clock starts
#   user_NAME   work of user $1 from start to end, a fixed amount: ${times} as much in the long form
#   plans_NAME  placements by hand: "own" (user n with threads and memory on node n modulo 4), "interleave" (all nodes)
#   about_NAME  description in one line
# Data are in $DATA: text of three lengths, and a FASTA file, made by scripts/compare from fixed seeds, the same in every
# run.
# shellcheck disable=SC2034,SC2046 # they are read by name; lists of words

readonly DATA=/dev/shm/compare
times=1

# COUNT: repetitions of the FASTA file
fasta() { yes "$DATA/fasta" | head -n "$1"; }

# COUNT: repetitions of the text; sort(1) uses several threads from 131,072 lines on
text() { yes "$DATA/text" | head -n "$1"; }

# COUNT: repetitions of the file of 540,000 lines, and of that of 210,000
lines() { yes "$DATA/lines" | head -n "$1"; }
part() { yes "$DATA/part" | head -n "$1"; }

quietly() { "$@" >/dev/null 2>&1; }

timed() { # NAME COMMAND…: prints its time as one of the user's values
	local begun_us=${EPOCHREALTIME/./}
	quietly "${@:2}"
	echo "$1_ms" $(((${EPOCHREALTIME/./} - begun_us) / 1000))
}

# ---- four users, one program each that runs for 20 to 30 seconds ----

about_long='four users: sort, xz, zstd, jellyfish of two threads, one each, for 20 to 30 seconds'
count_long=4
plans_long='own'

user_long() { # NUMBER
	case $1 in
	0) LC_ALL=C timed 'sort' sort --parallel=2 -S 256M -o /dev/null $(lines $((2 * times))) ;;
	1) timed xz xz -T2 -3 --block-size=1MiB -c $(lines "$times") $(part "$times") ;;
	2) timed zstd zstd -T2 -B1M -12 -c $(part "$times") ;;
	3) timed jellyfish jellyfish count -m 21 -s $((16 * times))M -t 2 --no-write $(fasta $((24 * times))) ;;
	esac
}

# ---- four users, each running several programs of two threads, one after another ----

about_users='four users: sort, xz, jellyfish, pigz, zstd of two threads each, one after another, each begins elsewhere'
count_users=4
plans_users='own interleave'

work_of() { # NUMBER
	case $(($1 % 5)) in
	0) LC_ALL=C quietly sort --parallel=2 -S 48M -o /dev/null $(text 3) ;;
	1) quietly xz -T2 -1 --block-size=512KiB -c "$DATA/short" ;;
	2) quietly jellyfish count -m 19 -s 1M -t 2 --no-write "$DATA/fasta" ;;
	3) quietly pigz -p 2 -4 -c "$DATA/text" ;;
	4) quietly zstd -T2 -5 -c "$DATA/text" ;;
	esac
}

user_users() { # NUMBER
	local step
	for ((step = 0; step < 3 * times; step++)); do
		work_of $((2 * $1 + step))
	done
}

# ---- four users, each running two programs that end after two to five seconds ----

about_brief='four users: sort, xz, zstd, jellyfish of two threads each, two in sequence, which end after two to five seconds'
count_brief=4
plans_brief='own'

brief_work_of() { # NUMBER
	case $(($1 % 4)) in
	0) LC_ALL=C timed 'sort' sort --parallel=2 -S 48M -o /dev/null $(text 4) ;;
	1) timed xz xz -T2 -3 --block-size=1MiB -c "$DATA/text" ;;
	2) timed zstd zstd -T2 -8 -c $(text 4) ;;
	3) timed jellyfish jellyfish count -m 19 -s 4M -t 2 --no-write $(fasta 4) ;;
	esac
}

user_brief() { # NUMBER
	local step
	for ((step = 0; step < 2 * times; step++)); do
		brief_work_of $(($1 + step))
	done
}

# ---- four users with one program each that lasts ----

about_count='four users: one jellyfish of two threads each, whose hash table both share'
count_count=4
plans_count='own interleave'
user_count() { # NUMBER
	quietly jellyfish count -m 21 -s $((4 * times))M -t 2 --no-write $(fasta $((4 * times)))
}

# ---- one process of eight threads whose leader touched the memory ----

about_leader='one sort of eight threads, whose leader reads the lines'
count_leader=1
plans_leader='interleave own'
user_leader() { # NUMBER
	local step
	for ((step = 0; step < 4 * times; step++)); do
		LC_ALL=C quietly sort --parallel=8 -S 48M -o /dev/null $(text 4)
	done
}

# ---- one process of eight threads, on all nodes ----

about_wide='one perf-bench of eight threads at a time: own parts in sequence, all at random, all touched by the leader'
count_wide=1
plans_wide='interleave'

# Each thread touches 24 MiB and streams over them; all touch and use 192 MiB at random; the leader touches 192 MiB,
# which all stream over.
user_wide() { # NUMBER
	local all=(perf bench numa mem -q -p 1 -t 8 -s 3600 -R -W)
	timed parts "${all[@]}" -T 24 -l $((40 * times)) -z
	timed random "${all[@]}" -P 192 -l $((6 * times)) -r
	timed leader "${all[@]}" -P 192 -l $((6 * times)) -z
}

# ---- one process that works alone for ten seconds, and then with eight threads ----

about_alone='one program of ours: ten seconds with one thread, which touches all memory, then eight in lockstep'
count_alone=1
plans_alone='interleave'
user_alone() { # NUMBER
	alone 16 5 $((24 * times))
}

# ---- two processes of four threads that share all of their memory ----

about_pairs='two jellyfish of four threads each, whose hash table all four share'
count_pairs=2
plans_pairs='halves interleave own'
user_pairs() { # NUMBER
	quietly jellyfish count -m 21 -s $((8 * times))M -t 4 --no-write $(fasta $((6 * times)))
}

# ---- four key-value servers ----

about_redis='four redis-server, each with its own redis-benchmark'
count_redis=4
plans_redis='own interleave'

redis() { # NUMBER COMMAND…
	redis-cli -p $((7000 + $1)) "${@:2}" >/dev/null
}

# The servers are started by their users too, and are filled before the clock starts.
begin_redis() { # NUMBER
	redis-server --port $((7000 + $1)) --save '' --appendonly no --daemonize no --loglevel warning >/dev/null &
	until redis "$1" ping 2>/dev/null; do sleep 0.1; done
	quietly redis-benchmark -p $((7000 + $1)) -t set -n 20000 -r 20000 -d 512 -c 4 -P 32
}

user_redis() { # NUMBER
	redis-benchmark -p $((7000 + $1)) -t get,set -n $((20000 * times)) -r 20000 -d 512 -c 4 -P 16 --csv |
		awk -F'"' '$2 ~ /GET|SET/ { print tolower($2) "_per_s", $4 }'
}

end_redis() { # NUMBER
	redis "$1" shutdown nosave
}

# ---- a database ----

about_pgbench='one postgresql, its pgbench with eight clients'
count_pgbench=1
plans_pgbench='own interleave'

postgres_bin() { dirname "$(find /usr/lib/postgresql -name pg_ctl -path '*/bin/*')"; }

begin_pgbench() { # NUMBER
	local bin
	bin=$(postgres_bin)
	mkdir -p /dev/shm/pg
	"$bin/initdb" -D /dev/shm/pg/data -A trust --no-sync >/dev/null
	"$bin/pg_ctl" -D /dev/shm/pg/data -o '-k /dev/shm/pg -c listen_addresses= -c fsync=off -c shared_buffers=48MB' -w -t 600 start >/dev/null
	quietly "$bin/pgbench" -h /dev/shm/pg -i -s 2 postgres
}

user_pgbench() { # NUMBER
	"$(postgres_bin)/pgbench" -h /dev/shm/pg -S -c 8 -j 2 -t $((250 * times)) postgres |
		awk '/^tps/ { print "per_s", $3 } /^latency average/ { print "latency_ms", $4 }'
}

end_pgbench() { # NUMBER
	"$(postgres_bin)/pg_ctl" -D /dev/shm/pg/data -m immediate stop >/dev/null
	rm -rf /dev/shm/pg
}

# ---- memcached under load ----

about_memcached='one memcached of four threads, memcaslap with four'
count_memcached=1
plans_memcached='own interleave'

begin_memcached() { # NUMBER
	memcached -p 7100 -U 0 -l 127.0.0.1 -m 96 -t 4 >/dev/null 2>&1 &
	sleep 1
}

user_memcached() { # NUMBER
	memcaslap -s 127.0.0.1:7100 -T 4 -c 16 -x $((30000 * times)) | awk '/TPS:/ { for (i = 1; i < NF; i++) if ($i == "TPS:") print "per_s", $(i + 1) }'
}

end_memcached() { # NUMBER
	pkill -u $((2000 + $1)) memcached
}

# ---- stressors of memory ----

about_stress='stress-ng: four users, two stream and memcpy stressors each'
count_stress=4
plans_stress='own interleave'
user_stress() { # NUMBER
	quietly stress-ng --temp-path /dev/shm --vm 1 --vm-bytes 16M --vm-method inc-nybble --vm-ops $((2000 * times)) --memcpy 1 --memcpy-ops $((40 * times))
}

# ---- a build of many short processes ----

about_build='make -j8: many short processes'
count_build=1
plans_build='own interleave'

begin_build() { # NUMBER
	mkdir -p /dev/shm/build
	for ((i = 0; i < 16 * times; i++)); do
		printf '#include <string.h>\nint f%d(const char *s) { return (int)strlen(s) + %d; }\n' $i $i >/dev/shm/build/f$i.c
	done
	# shellcheck disable=SC2016 # for make
	printf 'OBJECTS := $(patsubst %%.c,%%.o,$(wildcard *.c))\nall: $(OBJECTS)\n%%.o: %%.c\n\tgcc -O1 -c -o $@ $<\n' >/dev/shm/build/Makefile
}

user_build() { # NUMBER
	quietly make -s -j8 -C /dev/shm/build
}

end_build() { # NUMBER
	rm -rf /dev/shm/build
}
