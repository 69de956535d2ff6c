// Machines that have no call stubs yet: no library calls are recorded.
#include "writer_shim/library_hooks.hpp"

namespace arctrace::shim {

void hook_library_calls(LibraryCalls /*which*/) {}
bool returns_to_stub(uintptr_t /*address*/) { return false; }
void library_modules_changed() {}
void name_all_library_calls() {}

}  // namespace arctrace::shim
