// Machines that have no stubs yet: neither library calls nor functions that are hooked at
// their entry are recorded.
#include "writer_shim/entry_hooks.hpp"
#include "writer_shim/function_sleds.hpp"
#include "writer_shim/library_hooks.hpp"

namespace arctrace::shim {

void hook_library_calls(LibraryCalls /*which*/) {}
bool returns_to_stub(uintptr_t /*address*/) { return false; }
void library_modules_changed() {}
void name_all_library_calls() {}
void forget_entry_hooks() {}
void patch_functions() {}

}  // namespace arctrace::shim
