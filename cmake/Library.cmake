# SPDX-License-Identifier: MIT
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Each public header compiles alone: target all_verify_interface_header_sets, part of the tests.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

add_compile_definitions(_GNU_SOURCE)
add_compile_options(
	-Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wmissing-prototypes -Wstrict-prototypes -Wundef
	# The same decisions bit for bit from gcc and clang (design, "Determinism").
	-ffp-contract=off)
# The build's place does not show in the binaries, but where gcov has to find it; the later one counts where
# one is inside the other.
if(NOT CMAKE_C_FLAGS MATCHES "--coverage")
	add_compile_options(
		-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.
		-ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
endif()

# What Debian's own packages are hardened with; fortification needs optimisation.
add_compile_options($<$<CONFIG:RelWithDebInfo,Release>:-fstack-protector-strong>)
if(NOT CMAKE_C_FLAGS MATCHES "_FORTIFY_SOURCE") # a distribution's own level counts
	add_compile_definitions($<$<CONFIG:RelWithDebInfo,Release>:_FORTIFY_SOURCE=2>)
endif()
add_link_options($<$<CONFIG:RelWithDebInfo,Release>:LINKER:-z,relro,-z,now>)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

# nm_library(<name> SOURCES a.c… [DEPENDS library…] [LINK target…] [HEADERS a.h…] [SHARED b.h…])
# A static library, nm_<name>. A module (a folder of src) has one of its own name and may have more. HEADERS are its outward
# headers, which others include as "module/a.h"; SHARED are those that most modules use, in include/numa-migrd.
function(nm_library name)
	cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK;HEADERS;SHARED" ${ARGN})
	add_library(nm_${name} STATIC ${ARG_SOURCES})
	list(TRANSFORM ARG_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
	list(TRANSFORM ARG_SHARED PREPEND ${PROJECT_SOURCE_DIR}/include/numa-migrd/)
	target_sources(nm_${name} PUBLIC FILE_SET HEADERS
		BASE_DIRS ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src FILES ${ARG_HEADERS} ${ARG_SHARED})
	list(TRANSFORM ARG_DEPENDS PREPEND nm_)
	target_link_libraries(nm_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LINK})
	set_property(GLOBAL APPEND PROPERTY NM_LIBRARIES nm_${name})
endfunction()
