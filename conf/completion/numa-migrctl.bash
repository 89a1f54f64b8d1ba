# SPDX-License-Identifier: MIT
# bash completion of numa-migrctl(1). It takes the commands and options from --help.

# Prints the argument of a command as in --help: PID, [PID], ID, on|off, or nothing.
_numa_migrctl_argument() { # PROGRAM COMMAND
	"$1" --help 2>/dev/null | awk -v command="$2" '/^  [a-z]/ && $1 == command { print $2 }'
}

# Prints only the numbers at the start of rows: compgen -W expands substitutions.
_numa_migrctl_numbers() {
	awk '$1 ~ /^[0-9]+$/ { print $1 }'
}

# Prints the managed processes, or all processes if the caller may not list them.
_numa_migrctl_pids() { # PROGRAM
	local pids
	pids=$("$1" --color=never processes 2>/dev/null | _numa_migrctl_numbers)
	[[ -n $pids ]] || pids=$(cd /proc && printf '%s\n' [0-9]*)
	printf '%s\n' "$pids"
}

_numa_migrctl_units() {
	systemctl list-units --plain --no-legend --type=service,scope,slice 2>/dev/null | awk '{ print $1 }'
}

_numa_migrctl_commands() { # PROGRAM
	"$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p'
}

_numa_migrctl_words() { # PROGRAM COMMAND
	case $(_numa_migrctl_argument "$1" "$2") in
	PID | '[PID]') _numa_migrctl_pids "$1" ;;
	'PID|UNIT') _numa_migrctl_pids "$1" && _numa_migrctl_units ;;
	'[ID]') printf 'process\nunit\n' && "$1" --color=never decisions -n 50 2>/dev/null | _numa_migrctl_numbers ;;
	UNIT) printf 'off\nobserve\non\nreset\n' && _numa_migrctl_units ;;
	'on|off') printf 'on\noff\n' ;;
	'[start|status|stop|service]') printf 'start\nstatus\nstop\nservice\n' && _numa_migrctl_units ;;
	'[COMMAND]') _numa_migrctl_commands "$1" ;;
	esac
}

_numa_migrctl() { # PROGRAM WORD PREVIOUS
	local program=$1 word=${COMP_WORDS[COMP_CWORD]} command='' i words
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-n | --lines | --minutes | --percent | --user | --unit | --sort | --cpus | --memory | --measure | --periods | --seconds | --report) ((i++)) ;;
		-* | =) ;;
		auto | always | never) ;; # of --color
		*) [[ -n $command ]] || command=${COMP_WORDS[i]} ;;
		esac
	done
	if [[ $3 == --color || $3 == = || $word == = ]]; then
		word=${word#=}
		words='auto always never'
	elif [[ $3 == -n || $3 == --lines ]]; then
		words='10 20 100'
	elif [[ $3 == --minutes || $3 == --percent || $3 == --cpus || $3 == --memory || $3 == --periods || $3 == --seconds ]]; then
		words=''
	elif [[ $3 == --report ]]; then
		words=$(compgen -f -- "$word")
	elif [[ $3 == --user ]]; then
		words=$(compgen -u)
	elif [[ $3 == --unit ]]; then
		words=$(_numa_migrctl_units)
	elif [[ $3 == --sort ]]; then
		words='pid command home threads run local rss age'
	elif [[ $word == -* ]]; then
		words=$("$program" --help 2>/dev/null | sed -n 's/^  .*\(--[a-z-]*=\{0,1\}\).*/\1/p')
	elif [[ -z $command ]]; then
		words=$(_numa_migrctl_commands "$program")
	else
		words=$(_numa_migrctl_words "$program" "$command")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
	[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}

complete -F _numa_migrctl numa-migrctl
