# The rows of statistics.jq as a table, and as lines "name value unit".
def n($digits): if . == null then "-" else . * pow(10; $digits) | round / pow(10; $digits) | tostring end;
"# judge \(.judge); thrown away, as the host was late: \(.thrown_away_late)",
(.tables[] | .program as $p | "", "# \($p) (\(.form), \(.mhz) MHz)",
 "mode\truns\tseconds\tof baseline\t95 %\trun delay s\tstalls G\tlocal ‰\tits CPU s\town figures",
 (.rows[] | [.mode + (if .plan then " (\(.plan))" else "" end), .runs, (.seconds | n(2)), (.ratio | n(3)), "\(.ratio_95[0] | n(3)) … \(.ratio_95[1] | n(3))",
	(.run_delay_s | n(2)), (.stall_gcycles | n(2)), (.local_permille | n(0)), (.agent_cpu_s | n(2)), (.own | to_entries | map("\(.key) \(.value | n(1))") | join(", "))] | map(tostring) | join("\t"))),
"", (.tables[] | .program as $p | .rows[] | select(.ratio) | "compare_\($p)_\(.mode | gsub("[^a-z0-9]"; "_")) \(.ratio | n(3)) of_baseline")
