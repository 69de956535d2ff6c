// Replaces the function's return by a branch, in one store.
#include "writer_shim/arch/function_jump.hpp"

#include <sys/mman.h>

#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/aarch64/instructions.hpp"
#include "writer_shim/base/page_protection.hpp"

namespace arctrace::shim {

bool make_function_jump(uintptr_t from, uintptr_t target) {
  auto* code = reinterpret_cast<uint32_t*>(from);
  if (*code == kBranchTarget) ++code;
  const auto address = reinterpret_cast<uintptr_t>(code);
  const auto distance = static_cast<int64_t>(target - address) / 4;
  // The page stays executable, because it holds other functions too.
  if (*code != kReturn || distance < -kBranchWords || distance >= kBranchWords ||
      !protect(address, sizeof *code, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return false;
  }
  // One instruction: a thread that runs it sees the return or the branch.
  IpcAtomics::store_release(*code,
                            kBranch | (static_cast<uint32_t>(distance) & kBranchMask));
  auto* changed = reinterpret_cast<char*>(address);
  __builtin___clear_cache(changed, changed + sizeof *code);
  protect(address, sizeof *code, PROT_READ | PROT_EXEC);
  return true;
}

}  // namespace arctrace::shim
