// The functions that library_call_bench calls: through its PLT, or in the program with
// the hook that the compiler puts into them.
#include "bench/library_call.hpp"

long library_call(long number) { return number + 1; }

long other_library_call(long number) { return number + 3; }
