# Fixtures that are built as a user would build them, by gcc and by clang, into DIRECTORY/gcc and
# DIRECTORY/clang, where DIRECTORY is the binary directory of the including one.
find_program(FIXTURE_GCC NAMES gcc REQUIRED)
find_program(FIXTURE_GXX NAMES g++ REQUIRED)
find_program(FIXTURE_CLANG NAMES clang-14 clang REQUIRED)
find_program(FIXTURE_CLANGXX NAMES clang++-14 clang++ REQUIRED)

set(built ${CMAKE_CURRENT_BINARY_DIR})
set(fixture_outputs)
set(fixture_compilers gcc clang)

# compile(FILE SOURCE [DEPENDS file...] [OPTIONS option...]): FILE in the directory of each of
# `fixture_compilers`, added to fixture_outputs. DIRECTORY in options and depends is the compiler's
# directory. All take `fixture_flags` and depend on `fixture_headers`.
function(compile file source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "OPTIONS;DEPENDS")
  foreach(compiler ${fixture_compilers})
    string(TOUPPER ${compiler} tool)
    cmake_path(GET source EXTENSION extension)
    if(extension STREQUAL .cpp)
      string(REPLACE GCC GXX tool ${tool})
      string(REPLACE CLANG CLANGXX tool ${tool})
      set(standard -std=c++20)
    else()
      set(standard -std=gnu11)
    endif()
    set(directory ${built}/${compiler})
    file(MAKE_DIRECTORY ${directory})
    list(TRANSFORM arg_OPTIONS REPLACE DIRECTORY ${directory} OUTPUT_VARIABLE options)
    list(TRANSFORM arg_DEPENDS REPLACE DIRECTORY ${directory} OUTPUT_VARIABLE depends)
    add_custom_command(OUTPUT ${directory}/${file}
      COMMAND ${FIXTURE_${tool}} ${standard} -O2 -Wall -Wextra -Werror ${fixture_flags} ${source}
              -o ${directory}/${file} ${options}
      DEPENDS ${source} ${fixture_headers} ${depends}
      VERBATIM)
    list(APPEND fixture_outputs ${directory}/${file})
  endforeach()
  set(fixture_outputs ${fixture_outputs} PARENT_SCOPE)
endfunction()
