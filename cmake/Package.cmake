# SPDX-License-Identifier: MIT
# The Debian package: cpack -G DEB.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME numa-migrd)
set(CPACK_PACKAGE_VENDOR numa-migrd)
set(CPACK_PACKAGE_CONTACT "numa-migrd maintainers <maintainers@numa-migrd.example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON) # /etc and, on Debian 12, /lib are outside the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The system bus carries numa-migrctl; libraries are found by dpkg-shlibdeps.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd (>= 252), default-dbus-system-bus | dbus-system-bus")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "moves threads to their memory on NUMA machines")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"On a machine with several memory nodes a thread is slowed down when its
memory is on another node than the one it runs on. This service samples
which thread touches which node's memory, moves threads there, checks
that it helped, takes back what did not, and explains each move in the
journal. Threads that their owner has pinned are left alone, and every
CPU mask returns to what it was when the service stops.

It does nothing useful on a machine with a single memory node.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(NM_DEBIAN ${PROJECT_SOURCE_DIR}/cmake/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${NM_DEBIAN}/conffiles ${NM_DEBIAN}/postinst
	${NM_DEBIAN}/prerm ${NM_DEBIAN}/postrm)
include(CPack)
