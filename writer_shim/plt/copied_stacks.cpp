#include "writer_shim/plt/copied_stacks.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "writer_shim/plt/caller_readers.hpp"

namespace arctrace::shim {
namespace {

constexpr const char* kCopiers[] = {"_greenlet.", "greenlet."};

// Functions of libc that call functions of the program.
constexpr const char* kCallers[] = {
    "bsearch", "call_once", "fclose",  "fflush",  "fread",  "ftw",     "fwrite",
    "glob",    "lfind",     "lsearch", "nftw",    "printf", "qsort",   "qsort_r",
    "scandir", "tdestroy",  "tfind",   "tsearch", "twalk",  "twalk_r", "pthread_once"};

uint32_t stacks_are_copied;

bool calls_back(const char* name) {
  for (const char* caller : kCallers) {
    if (equal(name, caller)) return true;
  }
  return false;
}

}  // namespace

void look_for_stack_copier(const char* path) {
  if (stacks_are_copied != 0 || path == nullptr) return;
  const char* name = file_name(path);
  for (const char* copier : kCopiers) {
    if (starts_with(name, copier)) IpcAtomics::store_relaxed(stacks_are_copied, 1U);
  }
  if (stacks_are_copied == 0) return;
  for (LibraryCall& call : library_calls) {
    if (call.kind != CallKind::kFollowed ||
        !may_copy_stack_inside(call.name, IpcAtomics::load_relaxed(call.plain.target))) {
      continue;
    }
    call.kind = CallKind::kPassed;
    IpcAtomics::store_release(call.plain.ready_at, ARCTRACE_SHIM_NOT_READY);
  }
}

bool may_copy_stack_inside(const char* name, uintptr_t target) {
  return IpcAtomics::load_relaxed(stacks_are_copied) != 0 &&
         (!is_of_libc(target) || calls_back(name));
}

}  // namespace arctrace::shim
