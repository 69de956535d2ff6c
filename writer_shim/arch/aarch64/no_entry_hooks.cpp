// Functions that call mcount at their entry (-pg) are not recorded on this machine.
#include "writer_shim/functions/entry_hooks.hpp"

namespace arctrace::shim {

void forget_entry_hooks() {}

}  // namespace arctrace::shim
