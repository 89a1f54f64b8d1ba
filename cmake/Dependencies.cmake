# SPDX-License-Identifier: MIT
# Every library here is used because it does something that is not this project's purpose, and does it well.
find_package(PkgConfig REQUIRED)

# hwloc: the machine's topology from /sys, from XML and from recorded trees, and CPU bitmaps.
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.9)
# libnuma: the memory call move_pages(2). Only the worker links it.
pkg_check_modules(NUMA REQUIRED IMPORTED_TARGET numa>=2.0.16)
# libconfig: the syntax of /etc/numa-migrd.conf.
pkg_check_modules(LIBCONFIG REQUIRED IMPORTED_TARGET libconfig>=1.5)
# libsystemd: event loop (sd-event), readiness and watchdog (sd-daemon), journal entries with fields
# (sd-journal), and the bus (sd-bus).
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd>=252)
# jansson: the JSON that numa-migrd shows and numa-migrctl reads and prints: quoting, numbers, and a parser for input
# that may be damaged.
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
# ncurses: the full screen of numa-migrctl top, on whatever terminal.
pkg_check_modules(NCURSES REQUIRED IMPORTED_TARGET ncursesw)
# Scotch (7 or later: contexts): places threads that share memory near each other by dual recursive
# bipartitioning, the algorithm kMAF itself uses: good graph partitioners take years, and this one maps onto
# trees of unequal distances and is repeatable. It has no pkg-config file in Debian. Policy kmaf loads it at run time.
find_library(NM_SCOTCH_LIBRARY scotch REQUIRED)
execute_process(COMMAND readelf -d ${NM_SCOTCH_LIBRARY} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
if(NOT dynamic MATCHES "SONAME[^[]*\\[([^]]+)\\]")
	message(FATAL_ERROR "${NM_SCOTCH_LIBRARY} has no SONAME: a shared library is needed")
endif()
set(NM_SCOTCH_SONAME ${CMAKE_MATCH_1})
find_path(NM_SCOTCH_INCLUDE scotch.h PATH_SUFFIXES scotch REQUIRED)
# libpfm4 (4.13 or later): encodes the hardware events of the event tables, which name them as it does, at run time.
# It reports no exact version and has no pkg-config file in Debian.
find_library(NM_PFM_LIBRARY pfm REQUIRED)
find_path(NM_PFM_INCLUDE perfmon/pfmlib_perf_event.h REQUIRED)
# cmocka: unit tests.
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
