// Compiled with -fpatchable-function-entry.
#include "tests/unit/writer_shim/filter/hooked_functions.hpp"

extern "C" {
int hooked_filtered(int number) { return number + 1; }
int hooked_notraced(int number) { return number + 2; }
int hooked_other(int number) { return number + 3; }
}
