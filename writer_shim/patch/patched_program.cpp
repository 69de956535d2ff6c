// The text is written through /proc/self/mem, so that it need never be writable, or where
// that is refused, while it cannot be executed.
#include "writer_shim/patch/patched_program.hpp"

#include <arctrace/format.h>
#include <fcntl.h>
#include <link.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "writer_shim/arch/patch_code.hpp"
#include "writer_shim/arch/patched_calls.h"
#include "writer_shim/base/page_protection.hpp"
#include "writer_shim/elf/elf_sections.hpp"
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/filter/arg_specs.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/patch/flooding.hpp"
#include "writer_shim/patch/patch_image_file.hpp"
#include "writer_shim/patch/patch_report.hpp"
#include "writer_shim/plt/call_table.hpp"

namespace arctrace::shim {
namespace {

// The program, as a module and a file.
struct Program {
  ModuleImage image;
  FileAddress file{};  // address 0 of it
  char path[1024] = {};
};

int find_program(dl_phdr_info* info, size_t, void* found) {
  auto& program = *static_cast<Program*>(found);
  if (!read_module(*info, program.image)) program.image = {};
  const ModuleFile file(*info, true);
  copy_bytes(program.path, file.path(),
             text_length(file.path(), sizeof program.path - 1));
  struct stat status {};
  if (file.descriptor() >= 0 && sys::stat_fd(file.descriptor(), &status) == 0) {
    program.file = {status.st_dev, status.st_ino, 0};
  }
  return 1;  // the program is the first module
}

bool has_other_threads() {
  struct stat status {};
  constexpr uint64_t kLinksOfOneThread = 3;
  return raw_syscall(SYS_newfstatat, AT_FDCWD, sys::pointer_argument("/proc/self/task"),
                     sys::pointer_argument(&status), 0) != 0 ||
         status.st_nlink != kLinksOfOneThread;
}

bool has_seccomp_filter() { return raw_syscall(SYS_prctl, PR_GET_SECCOMP) != 0; }

// Writes jumps over the functions' first instructions, many with one system call.
class TextWriter {
 public:
  TextWriter()
      : memory_(static_cast<int>(sys::open("/proc/self/mem", O_RDWR | O_CLOEXEC))) {}
  ~TextWriter() {
    if (memory_ >= 0) sys::close(memory_);
  }
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  // `functions`: ascending. False: nothing was written.
  template <class IsWanted>
  bool write(const PatchedFunction* functions, uint32_t count,
             const IsWanted& is_wanted) {
    for (uint32_t i = 0; i < count; ++i) {
      if (!is_wanted(i)) continue;
      const PatchedFunction& function = functions[i];
      const uintptr_t end = function.at + kPatchJumpSize;
      if (size_ != 0 && end - low_ > sizeof bytes_ && !flush()) return false;
      if (size_ == 0) low_ = function.at;
      const uintptr_t known = low_ + size_;
      if (known < end) {
        copy_bytes(bytes_ + size_, reinterpret_cast<const void*>(known), end - known);
        size_ = end - low_;
      }
      copy_bytes(bytes_ + (function.at - low_), function.jump, kPatchJumpSize);
    }
    return flush();
  }

 private:
  bool flush() {
    const size_t size = size_;
    size_ = 0;
    if (size == 0) return true;
    if (memory_ >= 0 && raw_syscall(SYS_pwrite64, memory_, sys::pointer_argument(bytes_),
                                    static_cast<long>(size),
                                    static_cast<long>(low_)) == static_cast<long>(size)) {
      return true;
    }
    if (!protect(low_, size, PROT_READ | PROT_WRITE)) return false;
    copy_bytes(reinterpret_cast<void*>(low_), bytes_, size);
    return protect(low_, size, PROT_READ | PROT_EXEC);
  }

  const int memory_;
  uintptr_t low_ = 0;
  size_t size_ = 0;
  static unsigned char bytes_[size_t{1} << 16];
};
unsigned char TextWriter::bytes_[];

void refuse(uint32_t verdict) { arctrace_shim_patches(verdict, 0, nullptr, 0); }

class Patcher {
 public:
  Patcher(const Program& program, const PatchTable& table)
      : program_(program),
        table_(table),
        functions_(reinterpret_cast<const PatchedFunction*>(table.functions)),
        slots_(*reinterpret_cast<PatchSlots*>(table.slots)),
        gates_(reinterpret_cast<uint64_t*>(table.gates)) {}

  void patch() {
    patch_code = {table_.low, table_.high};
    arctrace_patched_code = table_.code_low;
    arctrace_patched_code_size = table_.code_high - table_.code_low;
    find_loaded_object(table_.code_low);  // the first one takes the loader's lock
    find_demangler();
    slots_.begins = reinterpret_cast<uintptr_t>(arctrace_patched_begins);
    uintptr_t at_least = table_.code_low;
    uint32_t count = 0;
    {
      PatchReport changed(ARCTRACE_PATCH_CHANGED);
      for (uint32_t i = 0; i < table_.function_count; ++i) {
        const PatchedFunction& function = functions_[i];
        if (function.at < at_least || !is_as_in_file(function)) {
          changed.add(function.function);
          continue;
        }
        slots_.entries[i] = entry_for(function);
        if (slots_.entries[i] != 0) {
          gates_[i] = function.copy - kPatchRecordSize;
          ++count;
        }
        at_least = function.at + function.covered;
      }
    }
    const size_t slots_size = (uint64_t{table_.function_count} + 1) * sizeof(uint64_t);
    protect(table_.slots, slots_size, PROT_READ);
    if (!TextWriter().write(functions_, table_.function_count,
                            [this](uint32_t i) { return slots_.entries[i] != 0; })) {
      refuse(ARCTRACE_PATCH_NOT_WRITTEN);
      return;
    }
    watch_flooding(functions_, gates_, table_.function_count);
    arctrace_shim_patches(ARCTRACE_PATCH_DONE, count, nullptr, 0);
    if (without_stub_ != 0) {
      arctrace_shim_patches(ARCTRACE_PATCH_NO_STUB, without_stub_, nullptr, 0);
    }
  }

 private:
  bool is_as_in_file(const PatchedFunction& function) const {
    return function.covered >= kPatchJumpSize && function.covered <= kPatchCoveredMax &&
           function.at < table_.code_high &&
           table_.code_high - function.at >= function.covered &&
           starts_with(reinterpret_cast<const uint8_t*>(function.at), function.original,
                       function.covered);
  }

  // Not libc's memcmp, which a program can replace.
  static bool starts_with(const uint8_t* code, const uint8_t* original, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      if (code[i] != original[i]) return false;
    }
    return true;
  }

  // 0: the function is filtered out, or there is no stub left.
  uint64_t entry_for(const PatchedFunction& function) {
    const char* name = "";
    if (function.name < table_.names_size) {
      name = reinterpret_cast<const char*>(table_.names + function.name);
    }
    KnownFunction known = {function.function, name, 0, 0};
    if (*name != '\0') {
      FileAddress at = program_.file;
      at.address = function.function - program_.image.bias;
      known.flags_at_start = filter_flags(name, program_.path, function.size);
      if (records_args()) known.arg_specs = arg_specs_of(name, &at);
    }
    if ((known.flags_at_start & ARCTRACE_SHIM_HIDDEN) != 0) return 0;
    if (function.entry_only != 0) known.flags_at_start |= ARCTRACE_SHIM_ENTRY_ONLY;
    const uint32_t number = stub_for_function(known, function.copy);
    if (number == kNoStub) {
      ++without_stub_;
      return 0;
    }
    LibraryCall& call = library_calls[number];
    // The analysis has found out what the stub would look for at the first call.
    if (call.kind == CallKind::kUnexamined) call.kind = CallKind::kFollowed;
    return reinterpret_cast<uintptr_t>(&call);
  }

  const Program& program_;
  const PatchTable& table_;
  const PatchedFunction* const functions_;
  PatchSlots& slots_;
  uint64_t* const gates_;
  uint32_t without_stub_ = 0;
};

}  // namespace

void patch_program(const ShimOptions& options) {
  if (options.patcher == nullptr) return;
  uint32_t refusal = 0;
  if (has_other_threads()) refusal = ARCTRACE_PATCH_THREADS;
  if (has_seccomp_filter()) refusal = ARCTRACE_PATCH_CONFINED;
  Program program;
  dl_iterate_phdr(find_program, &program);
  const ModuleImage& image = program.image;
  if (image.range.high == 0) refusal = ARCTRACE_PATCH_UNREADABLE;
  if (refusal == 0 && calls_compiled_in_hooks(image)) refusal = ARCTRACE_PATCH_HOOKS;
  if (refusal != 0) {
    refuse(refusal);
    return;
  }
  uint64_t matched = 0;
  const PatchTable* table = load_patch_image(options.patcher, image.bias, matched);
  arctrace_shim_patterns_matched(matched);
  if (table == nullptr) return;
  if (!image.range.contains(table->code_low) || table->code_high < table->code_low ||
      table->code_high > image.range.high) {
    refuse(ARCTRACE_PATCH_UNREADABLE);
    return;
  }
  Patcher(program, *table).patch();
}

}  // namespace arctrace::shim
