#include "writer_shim/loader_watch.hpp"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include "src/memory.hpp"
#include "src/raw_syscall.hpp"
#include "writer_shim/entry_hooks.hpp"
#include "writer_shim/frame_finder.hpp"
#include "writer_shim/function_choice.hpp"
#include "writer_shim/hook.hpp"
#include "writer_shim/library_hooks.hpp"
#include "writer_shim/page_protection.hpp"
#if defined(__x86_64__)
#include "writer_shim/x86_64/instructions.hpp"
#endif

namespace arctrace::shim {
namespace {

const r_debug* loader;     // null: not watched
uint32_t counting_pid;     // of the process that compares the counters; 0: need not
unsigned long long count;  // modules loaded and unloaded when last compared

void changed() {
  forget_frame_rules();
  forget_entry_hooks();
  read_function_choice();
  library_modules_changed();
  arctrace_shim_modules_changed();
}

// Called by the loader in place of its own empty function, with its lock held. After a
// load that is before the new modules' constructors run.
void loader_calls() {
  if (loader->r_state == r_debug::RT_CONSISTENT) changed();
}

// The loader's record for debuggers, as the program's dynamic section names it: the
// symbol _r_debug may be a copy in the program.
int find_loader(dl_phdr_info* info, size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_DEBUG) {
        *static_cast<const r_debug**>(result) =
            reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
      }
    }
  }
  return 1;  // the program is the first; the others don't matter
}

int read_count(dl_phdr_info* info, size_t, void* result) {
  *static_cast<unsigned long long*>(result) = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

unsigned long long module_count() {
  unsigned long long result = 0;
  dl_iterate_phdr(read_count, &result);
  return result;
}

#if defined(__x86_64__)

constexpr size_t kPatchBlock = 16;  // functions are aligned to it, filled up with NOPs

struct Code {
  unsigned char bytes[kPatchBlock];
};

constexpr unsigned char kReturn = 0xc3;

// Turns "return, filler" at `from` into a jump to `target`. False: something else stands
// there, or the target is too far away.
bool make_jump(Code& code, uintptr_t from, uintptr_t target) {
  unsigned char* const end = code.bytes + sizeof code.bytes;
  unsigned char* at = code.bytes;
  if (from % kPatchBlock != 0) return false;
  if (__builtin_memcmp(at, kEndbr64, sizeof kEndbr64) == 0) at += sizeof kEndbr64;
  if (*at != kReturn) return false;
  for (const unsigned char* filler = at + 1; filler < at + kJumpSize;) {
    const size_t length = filler_length(filler, end);
    if (length == 0) return false;
    filler += length;
  }
  const uintptr_t behind = from + static_cast<uintptr_t>(at - code.bytes) + kJumpSize;
  const auto distance = static_cast<int64_t>(target - behind);
  if (distance != static_cast<int32_t>(distance)) return false;
  const auto short_distance = static_cast<int32_t>(distance);
  *at = kJump;
  __builtin_memcpy(at + 1, &short_distance, sizeof short_distance);
  return true;
}

// Another thread may run the function: first what it does not reach, then the jump's
// first byte, each in one store.
void write_code(uintptr_t to, const Code& code) {
  uint64_t halves[2];
  __builtin_memcpy(halves, code.bytes, sizeof halves);
  auto* words = reinterpret_cast<uint64_t*>(to);
  IpcAtomics::store_release(words[1], halves[1]);
  IpcAtomics::store_release(words[0], halves[0]);
}

#elif defined(__aarch64__)

struct Code {
  uint32_t words[2];
};

constexpr uint32_t kBranchTarget = 0xd503245f;  // bti c
constexpr uint32_t kReturn = 0xd65f03c0;
constexpr uint32_t kBranch = 0x14000000;  // and a signed 26-bit distance in words

bool make_jump(Code& code, uintptr_t from, uintptr_t target) {
  const size_t at = code.words[0] == kBranchTarget ? 1 : 0;
  if (code.words[at] != kReturn) return false;
  const auto distance = static_cast<int64_t>(target - (from + 4 * at)) / 4;
  if (distance < -(int64_t{1} << 25) || distance >= int64_t{1} << 25) return false;
  code.words[at] = kBranch | (static_cast<uint32_t>(distance) & 0x03ffffff);
  return true;
}

void write_code(uintptr_t to, const Code& code) {
  auto* words = reinterpret_cast<uint32_t*>(to);
  IpcAtomics::store_release(words[0], code.words[0]);
  IpcAtomics::store_release(words[1], code.words[1]);
  auto* from = reinterpret_cast<char*>(to);
  __builtin___clear_cache(from, from + sizeof code);
}

#endif

// Makes the function at `from` jump to `target`. The page stays executable meanwhile:
// other functions of the loader stand in it.
bool redirect(uintptr_t from, uintptr_t target) {
  Code code;
  copy_bytes(&code, reinterpret_cast<const void*>(from), sizeof code);
  if (!make_jump(code, from, target) ||
      !protect(from, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return false;
  }
  write_code(from, code);
  protect(from, sizeof code, PROT_READ | PROT_EXEC);
  return true;
}

}  // namespace

void watch_loader() {
  dl_iterate_phdr(find_loader, &loader);
  if (loader == nullptr || loader->r_brk == 0 ||
      !redirect(loader->r_brk, reinterpret_cast<uintptr_t>(&loader_calls))) {
    count = module_count();
    counting_pid = sys::getpid();
  }
  // Constructors that ran before ours may have loaded something.
  changed();
}

void check_modules() {
  // Not in a fork child: another thread of its parent may have held the loader's lock.
  if (counting_pid == 0 || counting_pid != sys::getpid()) return;
  const unsigned long long now = module_count();
  if (now == count) return;
  count = now;
  changed();
}

}  // namespace arctrace::shim
