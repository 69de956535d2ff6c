# Compilers run through ccache where there is one: CMAKE_<LANG>_COMPILER_LAUNCHER= turns that off. A
# second clone in another directory finds what the first one compiled: paths below the source
# directory count relative to it, and so does __FILE__, which stands in each assertion of a test. The
# directory that debug information names is then the first one's; what tests it switches the launcher
# off (tests/unit/symbols).
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
find_program(ARCTRACE_CCACHE ccache)
if(ARCTRACE_CCACHE)
  foreach(language C CXX)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER
        env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ARCTRACE_CCACHE})
    endif()
  endforeach()
endif()
