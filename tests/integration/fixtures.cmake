# Fixtures that are built as a user would build them, by gcc and by clang, into DIRECTORY/gcc and
# DIRECTORY/clang, where DIRECTORY is the binary directory of the including file, or one below it that
# `built` names. Each such directory has a target, made by add_fixture_targets(): fixtures.NAME.gcc.
find_program(FIXTURE_GCC NAMES gcc REQUIRED)
find_program(FIXTURE_GXX NAMES g++ REQUIRED)
find_program(FIXTURE_CLANG NAMES clang-14 clang REQUIRED)
find_program(FIXTURE_CLANGXX NAMES clang++-14 clang++ REQUIRED)

set(built ${CMAKE_CURRENT_BINARY_DIR})
set(fixture_compilers gcc clang)

# compile(FILE SOURCE [DEPENDS file...] [OPTIONS option...]): FILE in the directory of each of
# `fixture_compilers`. DIRECTORY in options and depends is the compiler's
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
    set_property(DIRECTORY APPEND PROPERTY fixture_directories ${directory})
    set_property(DIRECTORY APPEND PROPERTY fixtures_in_${directory} ${directory}/${file})
  endforeach()
endfunction()

# add_fixture_targets(NAME): fixtures.NAME.COMPILER builds what lies in the binary directory's
# COMPILER, fixtures.NAME.SUB.COMPILER what lies in its SUB/COMPILER.
function(add_fixture_targets name)
  get_property(directories DIRECTORY PROPERTY fixture_directories)
  list(REMOVE_DUPLICATES directories)
  foreach(directory ${directories})
    get_property(files DIRECTORY PROPERTY fixtures_in_${directory})
    cmake_path(RELATIVE_PATH directory BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} OUTPUT_VARIABLE part)
    string(REPLACE / . part ${part})
    add_custom_target(fixtures.${name}.${part} ALL DEPENDS ${files})
  endforeach()
endfunction()
