#include "bench/library_call.hpp"

long library_call(long number) { return number + 1; }
