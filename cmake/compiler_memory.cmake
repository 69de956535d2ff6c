# gcc collects garbage whenever its memory has doubled, from 128 MB on, which is 4 to 8 % of the time of a large unit.
# If each core has enough memory for it, collecting begins at 1 GB. The largest unit then takes 1.5 GB instead of 1.1.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT machine QUERY TOTAL_PHYSICAL_MEMORY NUMBER_OF_LOGICAL_CORES)
  list(GET machine 0 memory_mb)
  list(GET machine 1 cores)
  math(EXPR memory_mb_per_core "${memory_mb} / ${cores}")
  if(memory_mb_per_core GREATER_EQUAL 2500)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
  endif()
endif()
