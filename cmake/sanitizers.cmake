# ARCTRACE_SANITIZE: "", "address" (with undefined), "thread", or "fuzzer" (clang's, with
# address and undefined). The libraries
# that are loaded into traced programs are left out (cmake/traced.cmake): a
# program that is not itself sanitized could not load them. Tests run their
# code from arctrace_shared and arctrace_writer, which are sanitized.
set(ARCTRACE_SANITIZE "" CACHE STRING "Sanitizer: empty, address, thread or fuzzer")
add_library(arctrace_sanitizers INTERFACE)
if(ARCTRACE_SANITIZE STREQUAL "address")
  # Not null: a check before each access, of what faults anyway, and is told by
  # AddressSanitizer then.
  # Behind its checks gcc sees paths that there are not; the release build has its warnings.
  target_compile_options(arctrace_sanitizers INTERFACE
    -fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=all
    -fno-omit-frame-pointer
    -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict
    -Wno-maybe-uninitialized)
  # No relocations at each start of the command, which take it 110 of 290 ms here, a thousand times.
  target_link_options(arctrace_sanitizers INTERFACE -fsanitize=address,undefined
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
elseif(ARCTRACE_SANITIZE STREQUAL "thread")
  # It knows no fences, and gcc warns of them. There is one pair, in overwrite mode, between
  # who wipes a block and who copies it (docs/memory_ordering.md); tests/threads drains.
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
