# shellcheck shell=bash
# shellcheck disable=SC2034 # read by scenarios/89-compare.sh
# Modes of placement for scripts/compare: begin_mode runs before the programs start, end_mode after they ended. A MODE is
#   baseline, again (the same once more), kernel, numad, simple, simple+kernel
#   SETTINGS, SETTINGS+kernel, SETTINGS+pmu, SETTINGS+kernel+pmu  the service with settings/SETTINGS.conf
#   hand:PLAN     the users bound by numactl(8): see programs.sh

# Time on this machine is ten times that of a usual one; so is the limit of the service.
readonly STRETCH=10

agent=''  # process of a simple daemon
bind=()   # of a user's commands

has_part() { [[ +$1+ == *"+$2+"* ]]; } # MODE PART

settings_of() { # MODE
	local sampling="overhead_percent = $STRETCH.0;" parameters=''
	if has_part "$1" pmu; then
		sampling+=' source = "event";' parameters='parameters: { sampling: { event = "numalab/period=997/"; }; };'
	fi
	cat "$LAB/given/settings/${1%%+*}.conf"
	echo "sampling: { $sampling }; $parameters"
}

start_service() { # MODE
	settings_of "$1" >"$CONF"
	numa-migrd --check-config >&2 || return
	systemctl start numa-migrd
	sleep 5 # it has been there for a while when programs come
}

begin_mode() { # MODE
	agent='' bind=()
	systemctl stop numa-migrd
	if [[ $1 == kernel ]] || has_part "$1" kernel; then balancing 1; else balancing 0; fi
	case $1 in
	baseline | again | kernel | hand:*) ;;
	numad*) numad -i 15 ;;
	simple*)
		simple &
		agent=$!
		;;
	*) start_service "$1" ;;
	esac
}

# User n's commands, bound by hand.
bind_user() { # MODE NUMBER
	local node=$(($2 % 4)) halves=$((2 * $2)),$((2 * $2 + 1))
	bind=()
	case $1 in
	hand:own) bind=(numactl -N "$node" -m "$node") ;;
	hand:halves) bind=(numactl -N "$halves" -i "$halves") ;;
	hand:interleave) bind=(numactl -i all) ;;
	esac
}

# CPU seconds of the placing program; the part used by the kernel is not known.
agent_cpu_s() { # MODE
	local pid=$agent
	case $1 in
	baseline | again | kernel | hand:*) echo 0 && return ;;
	numad*) pid=$(pidof numad) ;;
	simple*) ;;
	*) pid=$(daemon_pid) ;;
	esac
	sed 's/.*) //' "/proc/$pid/stat" | awk '{ print ($12 + $13) / 100 }'
}

end_mode() { # MODE
	case $1 in
	numad*) numad -i 0 ;;
	esac
	[[ ! $agent ]] || kill "$agent"
	systemctl stop numa-migrd
	balancing 0
}
