# SPDX-License-Identifier: MIT
# The packages: cpack -G DEB, cpack -G RPM. The same source gives the same bytes, wherever and whenever it is
# built (scripts/test, "reproducible").
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME numa-migrd)
set(CPACK_PACKAGE_VENDOR numa-migrd)
set(CPACK_PACKAGE_CONTACT "numa-migrd maintainers <maintainers@numa-migrd.example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON) # /etc and, on Debian 12, /lib are outside the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackageDate.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/PackageModes.cmake)
set(CPACK_NM_CHANGELOG ${PROJECT_SOURCE_DIR}/cmake/debian/changelog)

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "places processes and their memory on NUMA nodes")
set(NM_DESCRIPTION
"On a machine with several NUMA nodes, an access to memory of another node
takes longer than an access to local memory. This service assigns each
process a home node, moves its threads there and migrates its memory once;
other policies move threads one by one. It verifies each change, rolls back
those that made a process slower, and logs every step in the journal. It
leaves pinned threads alone, and restores every CPU affinity when it stops.

It does nothing useful on a machine with one NUMA node.")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The system bus carries numa-migrctl; libraries are found by dpkg-shlibdeps.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd (>= 252), default-dbus-system-bus | dbus-system-bus")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "attr, prometheus-node-exporter")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION ${NM_DESCRIPTION})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(NM_DEBIAN ${PROJECT_SOURCE_DIR}/cmake/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${NM_DEBIAN}/conffiles ${NM_DEBIAN}/postinst
	${NM_DEBIAN}/prerm ${NM_DEBIAN}/postrm)

# Libraries are found by rpmbuild.
set(NM_RPM ${PROJECT_SOURCE_DIR}/cmake/rpm)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE_DIST ON)
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_GROUP "System Environment/Daemons")
set(CPACK_RPM_PACKAGE_REQUIRES "systemd >= 252, dbus")
set(CPACK_RPM_PACKAGE_DESCRIPTION ${NM_DESCRIPTION})
set(CPACK_RPM_CHANGELOG_FILE ${CMAKE_CURRENT_BINARY_DIR}/rpm-changelog)
execute_process(COMMAND awk -f ${NM_RPM}/changelog.awk ${CPACK_NM_CHANGELOG}
	OUTPUT_FILE ${CPACK_RPM_CHANGELOG_FILE} COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CPACK_NM_CHANGELOG})
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${NM_RPM}/post)
set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE ${NM_RPM}/preun)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${NM_RPM}/postun)
set(CPACK_RPM_POST_TRANS_SCRIPT_FILE ${NM_RPM}/posttrans)
set(CPACK_RPM_USER_FILELIST "%config(noreplace) /etc/numa-migrd.conf")
set(CPACK_RPM_SPEC_MORE_DEFINE
"Packager: ${CPACK_PACKAGE_CONTACT}
%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1")
# Every folder above one of our files that other packages own.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/lib/systemd /usr/lib/systemd/catalog
	/usr/lib/systemd/system /usr/lib/systemd/system-preset /usr/lib/sysusers.d /usr/libexec /usr/sbin
	/usr/share/bash-completion /usr/share/bash-completion/completions
	/usr/share/dbus-1 /usr/share/dbus-1/system.d
	/usr/share/man /usr/share/man/man1 /usr/share/man/man5 /usr/share/man/man7 /usr/share/man/man8
	/usr/share/zsh /usr/share/zsh/site-functions)
include(CPack)
