# SPDX-License-Identifier: MIT
# Where everything but the programs goes (those are installed by their own folders). The units name the
# programs by their paths below /usr, so that is the prefix to use; DESTDIR moves the whole tree.
# tests/check-install holds that nothing is forgotten.
#
# These differ between distributions; a package for another one than this names its own, for instance
# -DNM_UNIT_DIR=lib/systemd/system.
pkg_get_variable(unit_dir systemd systemdsystemunitdir)
# Below the prefix they are named by it, as everything else: only Debian 12's are elsewhere.
string(REGEX REPLACE "^${CMAKE_INSTALL_PREFIX}/" "" unit_dir "${unit_dir}")
set(NM_UNIT_DIR ${unit_dir} CACHE STRING "Where systemd's units are")
if(NOT NM_UNIT_DIR)
	# So that it is looked for again.
	unset(NM_UNIT_DIR CACHE)
	message(FATAL_ERROR "pkg-config does not know systemd's directory: install systemd-dev (Debian 13) "
		"or systemd (Debian 12); scripts/setup does it")
endif()
if(EXISTS /etc/debian_version)
	set(zsh_dir ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
else()
	set(zsh_dir ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
set(NM_ZSH_DIR ${zsh_dir} CACHE STRING "Where zsh's completions are")
set(examples ${CMAKE_INSTALL_DOCDIR}/examples)

install(FILES systemd/numa-migrd.service systemd/numa-migrd-restore.service systemd/numa-migrd-helper.service
	systemd/numa-migrd-helper.socket systemd/numa-migrd-worker.socket
	systemd/numa-migrd-worker@.service systemd/system-numamigrd.slice DESTINATION ${NM_UNIT_DIR})
install(FILES systemd/numa-migrd.sysusers DESTINATION lib/sysusers.d RENAME numa-migrd.conf)
install(FILES systemd/numa-migrd.catalog DESTINATION lib/systemd/catalog)
install(FILES conf/org.numamigrd1.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/dbus-1/system.d)
install(FILES conf/numa-migrd.conf DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR})

# nm_install_found(<destination> <pattern>…): the files of conf/ that match.
function(nm_install_found destination)
	list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/conf/)
	file(GLOB found CONFIGURE_DEPENDS ${ARGN})
	install(FILES ${found} DESTINATION ${destination})
endfunction()
nm_install_found(${NM_ZSH_DIR} completion/_*)
file(GLOB bash_completions CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/conf/completion/*.bash)
foreach(completion IN LISTS bash_completions)
	cmake_path(GET completion STEM LAST_ONLY command)
	install(FILES ${completion} RENAME ${command}
		DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endforeach()
foreach(folder IN ITEMS ansible drop-ins grafana kubernetes)
	nm_install_found(${examples}/${folder} ${folder}/*)
endforeach()
install(PROGRAMS conf/slurm/prolog conf/slurm/epilog DESTINATION ${examples}/slurm)

# Packages compress them, each in their own way.
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.[1-8])
foreach(page IN LISTS pages)
	cmake_path(GET page EXTENSION LAST_ONLY section)
	string(SUBSTRING ${section} 1 -1 section)
	install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
# README links the guides and SECURITY.md. What a failed call leads to is for maintainers.
file(GLOB guides CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
list(FILTER guides EXCLUDE REGEX "/failures\\.md$")
install(FILES ${guides} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(FILES README.md SECURITY.md NEWS DESTINATION ${CMAKE_INSTALL_DOCDIR})
