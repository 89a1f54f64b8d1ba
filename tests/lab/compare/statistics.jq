# Raw results of scripts/compare, one a line, into rows: medians; and of times over those of "baseline", paired by seed, the
# interval between order statistics that holds the median with at least 95 % whatever the distribution (from six pairs
# on). Arguments: judge, keys (of the service's rows), names.
def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def choose($n; $k): reduce range($k) as $i (1; . * ($n - $i) / ($i + 1));
def tail($n; $k): [range($k + 1) | choose($n; .)] | add / pow(2; $n);
def depth: length as $n | [range(($n / 2) | floor) | select(tail($n; .) <= 0.025)] | if length == 0 then null else max end;
def interval: depth as $d | sort | if $d == null then [null, null] else [.[$d], .[length - 1 - $d]] end;
def row($base): . as $runs | ($runs | map({key: (.seed | tostring), value: .seconds}) | from_entries) as $seconds
	| [$base | to_entries[] | select($seconds[.key]) | $seconds[.key] / .value] as $ratios
	| {mode: $runs[0].mode, runs: ($runs | length), seconds: ($runs | map(.seconds) | median),
	   ratio: ($ratios | median), ratio_95: ($ratios | interval),
	   run_delay_s: ($runs | map(.run_delay_s) | median), stall_gcycles: ($runs | map(.stall_cycles / 1e9) | median),
	   local_permille: ($runs | map(.local_permille) | median), agent_cpu_s: ($runs | map(.agent_cpu_s) | median),
	   own: ([$runs[].own | to_entries[]] | group_by(.key) | map({key: .[0].key, value: (map(.value) | median)}) | from_entries)};
def best: [.[] | select(.mode | startswith("hand:"))] | if length == 0 then empty else min_by(.ratio // .seconds) | . + {plan: .mode, mode: "oracle"} end;
map(select(.id == "\(.program)/\(.form)/\(.mode)/\(.seed)/\($judge)\($keys[.mode | split("+")[0]] // "")")) | map(select(.program as $p | $names | index($p)))
| (map(select(.late_permille > 20)) | length) as $late | map(select(.late_permille <= 20))
| {judge: $judge, thrown_away_late: $late, tables: (group_by([.program, .form]) | map(
	(map(select(.mode == "baseline")) | map({key: (.seed | tostring), value: .seconds}) | from_entries) as $base
	| {program: .[0].program, form: .[0].form, mhz: .[0].mhz,
	   rows: (group_by(.mode) | map(row($base)) | . + [best] | sort_by(.ratio // 9))}))}
