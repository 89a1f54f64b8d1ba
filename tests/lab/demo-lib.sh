# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The first act of the demonstration, in the emulated machine (scenarios/demo.sh) and on a real one (scripts/demo).

# Runs four programs to their end, and sets demo_seconds: processes of perf's own NUMA benchmark, bound to nothing, whose
# threads walk through memory that they share. It was first touched on CPU 0, as if one process had prepared it all.
demo_run() { # THREADS MB LOOPS: of each
	local started=$EPOCHREALTIME
	perf bench numa mem -q -p 4 -t "$1" -P "$2" -l "$3" -s 3600 -0 -z -r -R -W >/dev/null
	demo_seconds=$(awk -v from="$started" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }')
}

demo_table() { # SECONDS SECONDS: without and with the service
	printf '\n%-32s %10s   %15s\n' '' without 'with numa-migrd'
	printf '%-32s %8.1f s   %13.1f s  (%+.0f %%)\n' 'run time of the four programs' "$1" "$2" \
		"$(awk -v without="$1" -v with="$2" 'BEGIN { print 100 * (with / without - 1) }')"
}
