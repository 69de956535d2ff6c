// The library function that library_call_bench calls through its PLT.
#include "bench/library_call.hpp"

long library_call(long number) { return number + 1; }
