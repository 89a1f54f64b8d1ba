# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the commands in this folder.

source_dir=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/..")
# shellcheck disable=SC2034 # for the commands
build_dir=${NUMA_MIGRD_BUILD:-$source_dir/build}

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

wrong_usage() {
	echo "${0##*/}: $*" >&2
	echo "Try: $0 --help" >&2
	exit 64
}

need_root() {
	[[ $(id -u) == 0 ]] || die "needs root to $1"
}

# configure PRESET [CMAKE-OPTION…]: the build tree of a preset, below $build_dir
configure() {
	local preset=$1
	shift
	(cd "$source_dir" && cmake --preset "$preset" -B "$build_dir/$preset" "$@")
}

# Root's build must not leave files behind that the owner of the source cannot remove.
give_build_to_owner() {
	[[ ${SUDO_UID:-} && -d $build_dir ]] || return 0
	chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$build_dir"
}
