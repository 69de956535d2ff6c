# Writes OUTPUT: {number, "name"}, for each system call of the machine that COMPILER (a
# list, with its options) compiles for.
set(probe "${OUTPUT}.c")
file(WRITE ${probe} "#include <asm/unistd.h>\n")
execute_process(COMMAND ${COMPILER} -E -dM ${probe}
  OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "#define __NR_[a-z0-9_]+ [0-9]+\n" macros "${macros}")
set(table "")
foreach(macro ${macros})
  string(REGEX REPLACE "#define __NR_([a-z0-9_]+) ([0-9]+)\n" "{\\2, \"\\1\"},\n" row "${macro}")
  string(APPEND table "${row}")
endforeach()
if(table STREQUAL "")
  message(FATAL_ERROR "no system calls in <asm/unistd.h>")
endif()
file(WRITE ${OUTPUT} "${table}")
