# ARCTRACE_SANITIZE: "", "address" (with undefined), "thread", or "fuzzer" (clang's, with address
# and undefined). The libraries that are loaded into traced programs are not sanitized
# (cmake/traced.cmake), because a program that is not itself sanitized could not load them. Tests
# run their code from arctrace_shared and arctrace_writer, which are sanitized.
set(ARCTRACE_SANITIZE "" CACHE STRING "Sanitizer: empty, address, thread or fuzzer")
add_library(arctrace_sanitizers INTERFACE)
if(ARCTRACE_SANITIZE STREQUAL "address")
  # Null pointers are not checked before each access: such an access faults anyway, and
  # AddressSanitizer reports it. The checks make gcc see paths that do not exist, so its warnings
  # come from the release build.
  target_compile_options(arctrace_sanitizers INTERFACE
    -fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=all
    -fno-omit-frame-pointer
    -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict
    -Wno-maybe-uninitialized)
  # Without PIE a start of the command saves its relocations, which took 110 of 290 ms here; tests
  # start it a thousand times.
  target_link_options(arctrace_sanitizers INTERFACE -fsanitize=address,undefined
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
elseif(ARCTRACE_SANITIZE STREQUAL "thread")
  # ThreadSanitizer knows no fences, and gcc warns of them. The one pair of fences, in overwrite
  # mode, is between a thread that wipes a block and one that copies it (docs/memory_ordering.md);
  # so tests/threads drains instead.
  target_compile_options(arctrace_sanitizers INTERFACE
    -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  target_link_options(arctrace_sanitizers INTERFACE -fsanitize=thread)
elseif(ARCTRACE_SANITIZE STREQUAL "fuzzer")
  target_compile_options(arctrace_sanitizers INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=null
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(arctrace_sanitizers INTERFACE -fsanitize=address,undefined)
elseif(ARCTRACE_SANITIZE)
  message(FATAL_ERROR "ARCTRACE_SANITIZE must be empty, address, thread or fuzzer")
endif()
