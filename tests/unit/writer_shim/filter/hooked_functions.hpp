// Functions of this program with NOP areas for hooks, because of which the shim reads its
// symbols.
#pragma once

namespace arctrace::shim::testing {

extern "C" {
int hooked_filtered(int number);
int hooked_notraced(int number);
int hooked_other(int number);
}

}  // namespace arctrace::shim::testing
