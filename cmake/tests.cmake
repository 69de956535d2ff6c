# arctrace_test(NAME [GATE] LABELS label... (PROGRAM target | PYTHON file | COMMAND command)
#   [ARGUMENTS argument...] [ENVIRONMENT NAME=value...] [DEPENDS target...] [FULL_DEPENDS target...]
#   [FIXTURES fixture...] [LOCKS what...] [SERIAL] [TIMEOUT seconds]): a test that tools/run-tests runs.
#
# PROGRAM is one of doctest's, PYTHON a file that ends with cases.main() (tests/harness/cases.py): single cases of these
# can be run, and each runs isolated from others (tests/harness/isolate). LOCKS: resources that it can't share with
# another test that names the same (`kernel`). SERIAL: no other test runs beside it. GATE: tools/test runs it, not only
# tools/test --full.
# The target `needs.NAME` builds what the test needs: PROGRAM or the products, DEPENDS and FULL_DEPENDS. `needs.gate`
# builds what the gate's tests need there, which excludes FULL_DEPENDS; `needs.threads` and `needs.canary` build what
# the tests with these labels need. A test that ends with 77 had nothing to run here.
foreach(label gate threads canary)
  add_custom_target(needs.${label})
endforeach()
set(arctrace_tests ${CMAKE_CURRENT_LIST_DIR}/../tests)
cmake_path(ABSOLUTE_PATH arctrace_tests NORMALIZE)

set(isolate ${arctrace_tests}/harness/isolate)

function(arctrace_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GATE;SERIAL" "PROGRAM;PYTHON;TIMEOUT"
    "ARGUMENTS;COMMAND;DEPENDS;ENVIRONMENT;FIXTURES;FULL_DEPENDS;LABELS;LOCKS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "arctrace_test(${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(arg_PROGRAM)
    set(arg_COMMAND ${isolate} $<TARGET_FILE:${arg_PROGRAM}>)
    list(APPEND arg_DEPENDS ${arg_PROGRAM})
  elseif(arg_PYTHON)
    cmake_path(ABSOLUTE_PATH arg_PYTHON)
    set(arg_COMMAND ${isolate} ${Python3_EXECUTABLE} -B ${arg_PYTHON})
    list(PREPEND arg_ENVIRONMENT "PYTHONPATH=${arctrace_tests}/harness:${arctrace_tests}/integration")
  endif()
  if(arg_GATE)
    list(APPEND arg_LABELS gate)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1800)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND} ${arg_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}" ENVIRONMENT "ARCTRACE_TEST=${name};${arg_ENVIRONMENT}"
    FIXTURES_REQUIRED "${arg_FIXTURES}" SKIP_RETURN_CODE 77 TIMEOUT ${arg_TIMEOUT}
    RESOURCE_LOCK "${arg_LOCKS}" RUN_SERIAL ${arg_SERIAL})

  if(TARGET products AND NOT arg_PROGRAM AND NOT "canary" IN_LIST arg_LABELS)
    list(APPEND arg_DEPENDS products)
  endif()
  add_custom_target(needs.${name})
  set(needers needs.${name})
  foreach(label gate threads canary)
    if(label IN_LIST arg_LABELS)
      list(APPEND needers needs.${label})
    endif()
  endforeach()
  if(arg_DEPENDS)
    foreach(needer ${needers})
      add_dependencies(${needer} ${arg_DEPENDS})
    endforeach()
  endif()
  if(arg_FULL_DEPENDS)
    add_dependencies(needs.${name} ${arg_FULL_DEPENDS})
  endif()
endfunction()
