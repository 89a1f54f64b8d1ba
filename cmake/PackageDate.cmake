# SPDX-License-Identifier: MIT
# Read by cpack. The time in a package is that of its newest change, not that of its build; somebody who sets
# SOURCE_DATE_EPOCH has their own.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
	file(STRINGS ${CPACK_NM_CHANGELOG} entries REGEX "^ -- ")
	list(GET entries 0 newest)
	string(REGEX REPLACE "^ -- .*>  " "" date "${newest}")
	execute_process(COMMAND date -u -d ${date} +%s
		OUTPUT_VARIABLE epoch OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
	set(ENV{SOURCE_DATE_EPOCH} ${epoch})
endif()
