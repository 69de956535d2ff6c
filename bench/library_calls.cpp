// Calls of library_call.hpp's functions, which are compiled with the same hook as this
// file.
#include "bench/library_call.hpp"

long call_repeatedly(long calls) {
  volatile long result = 0;
  for (long i = 0; i < calls; ++i) result = library_call(i);
  return result;
}

long call_in_turn(long calls) {
  volatile long result = 0;
  for (long i = 0; i < calls; i += 2) {
    result = library_call(i);
    result = other_library_call(i);
  }
  return result;
}
