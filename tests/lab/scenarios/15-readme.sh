# shellcheck shell=bash
# A newcomer types each command of README.md that a machine with the package can run, in the order of its sections, and
# all of them succeed: installation, dry run, trial, a first configuration, operation, removal. Their output is on the
# console.
# boot: trouble
# when: full
# limit: 400
. "$LAB/lib.sh"

readonly README=/lab/README.md
readonly SOURCES='^(scripts/|cmake |\(cd )' # need the sources, which this machine does not have
readonly ENDLESS='^(journalctl -f|numa-migrctl top$)'
typed=0
started=0 # PID in README

section() { awk -v head="## $1" '/^## / { inside = $0 == head } inside' "$README"; } # NAME

# Indented lines, without their remarks.
commands_of() { section "$1" | sed -nE 's/^    ([^ ].*)/\1/; T; s/ +# .*//; p' | grep -vE "$SOURCES"; } # SECTION

# Replaces the names that README uses for what a machine has.
with_names() { # COMMAND
	local command=${1//PID/$started}
	if [[ $command == 'apt install ./'* ]]; then
		command=${command//\*/1}
		mkdir -p "$(dirname "${command#apt install }")"
		cp "$PACKAGE" "${command#apt install }"
	fi
	echo "$command"
}

# As in a terminal, whose user confirms everything. Those that do not end have to run when they are ended.
type_command() { # COMMAND
	local wanted=0 status
	echo "README: # $1" >&2
	[[ $1 ]] || return
	if [[ $1 =~ $ENDLESS ]]; then
		wanted=124
		timeout 20 script -qec "$1" /dev/null </dev/null >&2
	else
		yes 2>/dev/null | timeout 200 bash -c "$1" >&2
	fi
	status=$?
	typed=$((typed + 1))
	((status == wanted)) || note "exit status $status"
	((status == wanted))
}

type_section() { # NAME
	local command
	while IFS= read -r command; do
		check "$1: $command" type_command "$(with_names "$command")"
		settle "$command"
	done < <(commands_of "$1")
}

# Waits until the next command has something to show.
settle() { # COMMAND
	case $1 in
	'systemctl start numa-migrd') effect "a dry run logs decisions" wait_for 60 has_entry RESULT=dry-run ;;
	'systemctl reload numa-migrd') effect "and then it acts" wait_for 60 has_entry RESULT=asked + RESULT=applied ;;
	'journalctl -fu numa-migrd') check "the process is known" wait_for 60 numa-migrctl explain process "$started" ;;
	esac
}

# The configuration that a section shows, into the file that it names.
write_configuration() { # SECTION
	local file
	file=$(section "$1" | grep -oE '/etc/numa-migrd\.conf\.d/[a-z-]+\.conf')
	# shellcheck disable=SC2016 # fences of Markdown
	section "$1" | sed -n '/^```libconfig$/,/^```$/p' | grep -v '^```' >"$file"
	check "$1: a file and its text" [ -s "$file" ]
}

check "README is there" [ -s "$README" ]
export TERM=xterm
cd /var/lab || exit 1
dpkg --purge numa-migrd >&2
balancing 1
mark_journal
type_section Install
check "nothing has been started" fails is_active
# On a busy machine, so that there is something to gain.
others=()
for _ in 1 2; do
	sharers -n other all 2 32 >/dev/null &
	others+=("$!")
done
systemctl unmask postgresql # the image has no service by that name
start_unit postgresql sharers -n postgres all 2 32
check "there is a service" [ "$started" -gt 0 ]
type_section 'Try it'
write_configuration 'A first configuration'
type_section 'A first configuration'
rm -r /etc/numa-migrd.conf.d
systemctl reload numa-migrd
type_section Operate
kill "${others[@]}"
type_section 'What it changes, and how that is undone'
check "all of it was typed" [ "$typed" -ge 28 ]
check "the package is gone" fails dpkg -s numa-migrd
check_equal "and its files" '' "$(find /run /etc /var/cache -name '*numa-migr*')"
systemctl stop postgresql
systemctl mask postgresql
