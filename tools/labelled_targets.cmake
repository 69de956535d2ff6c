# cmake -DBUILD=directory -DLABEL=label -P labelled_targets.cmake
# Prints the executables of the tests with this label, relative to the build directory: what ninja has
# to build for them. ctest can't tell before they are built, so this reads the files that it reads.
cmake_minimum_required(VERSION 3.25)

function(add_test name command)
  set_property(GLOBAL PROPERTY command_${name} ${command})
endfunction()

function(set_tests_properties name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" LABELS "")
  if(LABEL IN_LIST test_LABELS)
    get_property(command GLOBAL PROPERTY command_${name})
    cmake_path(RELATIVE_PATH command BASE_DIRECTORY ${BUILD})
    execute_process(COMMAND ${CMAKE_COMMAND} -E echo ${command})
  endif()
endfunction()

function(subdirs)
  foreach(directory ${ARGN})
    if(NOT IS_ABSOLUTE ${directory})
      set(directory ${CMAKE_CURRENT_LIST_DIR}/${directory})
    endif()
    include(${directory}/CTestTestfile.cmake)
  endforeach()
endfunction()

cmake_path(ABSOLUTE_PATH BUILD)
include(${BUILD}/CTestTestfile.cmake)
