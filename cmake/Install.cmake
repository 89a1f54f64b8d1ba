# SPDX-License-Identifier: MIT
# Where everything but the programs goes (those are installed by their own folders). The units name the
# programs by their paths below /usr, so that is the prefix to use; DESTDIR moves the whole tree.
pkg_get_variable(NM_UNIT_DIR systemd systemdsystemunitdir)
pkg_get_variable(NM_PRESET_DIR systemd systemdsystempresetdir)
if(NOT NM_UNIT_DIR)
	message(FATAL_ERROR "pkg-config does not know systemd's directories: install systemd-dev (Debian 13) "
		"or systemd (Debian 12); scripts/setup does it")
endif()

install(FILES systemd/numa-migrd.service systemd/numa-migrd-helper.service
	systemd/numa-migrd-helper.socket DESTINATION ${NM_UNIT_DIR})
install(FILES systemd/numa-migrd.preset DESTINATION ${NM_PRESET_DIR} RENAME 60-numa-migrd.preset)
install(FILES systemd/numa-migrd.sysusers DESTINATION lib/sysusers.d RENAME numa-migrd.conf)
install(FILES systemd/numa-migrd.catalog DESTINATION lib/systemd/catalog)
install(FILES conf/org.numamigrd1.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/dbus-1/system.d)
install(DIRECTORY conf/drop-ins conf/grafana DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES conf/numa-migrd.conf DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR})

# Compressed without name and time: the same source gives the same package.
function(nm_install_compressed source name destination)
	set(compressed ${CMAKE_CURRENT_BINARY_DIR}/compressed/${name}.gz)
	add_custom_command(OUTPUT ${compressed}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/compressed
		COMMAND gzip -9nc ${source} > ${compressed}
		DEPENDS ${source} VERBATIM)
	set_property(GLOBAL APPEND PROPERTY NM_COMPRESSED ${compressed})
	install(FILES ${compressed} DESTINATION ${destination})
endfunction()

file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.[1-8])
foreach(page IN LISTS pages)
	cmake_path(GET page EXTENSION LAST_ONLY section)
	string(SUBSTRING ${section} 1 -1 section)
	cmake_path(GET page FILENAME name)
	nm_install_compressed(${page} ${name} ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
nm_install_compressed(${PROJECT_SOURCE_DIR}/cmake/debian/changelog changelog ${CMAKE_INSTALL_DOCDIR})
install(FILES cmake/debian/copyright README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

get_property(compressed GLOBAL PROPERTY NM_COMPRESSED)
add_custom_target(compressed ALL DEPENDS ${compressed})
