// Patches one module. The text is written through /proc/self/mem, so that it need never
// be writable, or where that is refused, while it cannot be executed.
#include "writer_shim/patch/module_patcher.hpp"

#include <arctrace/format.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/arch/patched_calls.h"
#include "writer_shim/base/mappings.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/patch/patch_report.hpp"
#include "writer_shim/plt/call_table.hpp"

namespace arctrace::shim {
namespace {

// Whether code that was written may be executed again: under PR_SET_MDWE and some
// security modules it may not, and code that was made writable would be lost. Tries it
// with a copy of a page of the program.
bool may_rewrite_code() {
  constexpr size_t kPage = 4096;
  const auto file = static_cast<int>(sys::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (file < 0) return false;
  void* const page = sys::map(kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
  sys::close(file);
  if (page == nullptr) return false;
  *static_cast<volatile unsigned char*>(page) = 0;
  const bool may =
      protect(reinterpret_cast<uintptr_t>(page), kPage, PROT_READ | PROT_EXEC);
  raw_syscall(SYS_munmap, sys::pointer_argument(page), kPage);
  return may;
}

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
    if (!may_rewrite_code() || !protect(low_, size, PROT_READ | PROT_WRITE)) return false;
    copy_bytes(reinterpret_cast<void*>(low_), bytes_, size);
    return protect(low_, size, PROT_READ | PROT_EXEC);
  }

  const int memory_;
  uintptr_t low_ = 0;
  size_t size_ = 0;
  ARCTRACE_LARGE_TABLE static unsigned char bytes_[size_t{1} << 16];
};
unsigned char TextWriter::bytes_[];

// Makes the slots of an image writable as long as the object exists.
class WritableSlots {
 public:
  explicit WritableSlots(const PatchTable& table)
      : at_(table.slots),
        size_((uint64_t{table.function_count} + 1) * sizeof(uint64_t)),
        can_(protect(at_, size_, PROT_READ | PROT_WRITE)) {}
  ~WritableSlots() {
    if (can_) protect(at_, size_, PROT_READ);
  }
  WritableSlots(const WritableSlots&) = delete;
  WritableSlots& operator=(const WritableSlots&) = delete;
  explicit operator bool() const { return can_; }

 private:
  const uintptr_t at_;
  const size_t size_;
  const bool can_;
};

// The functions of a module in the image that was made for it.
class Functions {
 public:
  Functions(const PatchedModule& module, const PatchTable& table)
      : module_(module),
        table_(table),
        functions_(reinterpret_cast<const PatchedFunction*>(table.functions)),
        slots_(*reinterpret_cast<PatchSlots*>(table.slots)),
        gates_(reinterpret_cast<uint64_t*>(table.gates)) {}

  uint32_t prepare() {
    const WritableSlots writable(table_);
    if (!writable) return 0;
    slots_.begins = reinterpret_cast<uintptr_t>(arctrace_patched_begins);
    uintptr_t at_least = table_.code_low;
    uint32_t count = 0;
    PatchReport changed(ARCTRACE_PATCH_CHANGED);
    PatchReport without_stub(ARCTRACE_PATCH_NO_STUB);
    for (uint32_t i = 0; i < table_.function_count; ++i) {
      const PatchedFunction& function = functions_[i];
      slots_.entries[i] = 0;
      if (function.at < at_least || !is_as_in_file(function) ||
          is_change_noted({function.at, function.at + function.covered})) {
        changed.add(function.function);
        continue;
      }
      at_least = function.at + function.covered;
      if (!make_entry(function, slots_.entries[i])) without_stub.add(function.function);
      if (slots_.entries[i] == 0) continue;
      switch_on(i);
      ++count;
    }
    return count;
  }

  bool write() const {
    return TextWriter().write(functions_, table_.function_count,
                              [this](uint32_t i) { return slots_.entries[i] != 0; });
  }

  bool note() const {
    const NotedChanges noted(false);
    bool has_space = true;
    for (uint32_t i = 0; i < table_.function_count && has_space; ++i) {
      if (slots_.entries[i] == 0) continue;
      has_space = change_code(reinterpret_cast<unsigned char*>(functions_[i].at),
                              functions_[i].jump, kPatchJumpSize);
    }
    return has_space;
  }

  uint32_t drop_unwritten(uint32_t verdict) {
    const WritableSlots writable(table_);
    if (!writable) return 0;
    PatchReport report(verdict);
    uint32_t count = 0;
    for (uint32_t i = 0; i < table_.function_count; ++i) {
      if (slots_.entries[i] == 0) continue;
      if (is_written(functions_[i])) {
        ++count;
        continue;
      }
      slots_.entries[i] = 0;
      if (verdict != 0) report.add(functions_[i].function);
    }
    return count;
  }

  void switch_off() {
    for (uint32_t i = 0; i < table_.function_count; ++i) {
      IpcAtomics::store_relaxed(gates_[i], gate_when_off(functions_[i]));
    }
  }

  RecordedAgain again(const PatchAgain& wanted) {
    const uint32_t i = find(wanted.function);
    if (i == table_.function_count || slots_.entries[i] == 0 ||
        !is_written(functions_[i])) {
      return RecordedAgain::kNotPatched;
    }
    const KnownFunction known = known_by_filter(functions_[i]);
    if ((known.flags_at_start & ARCTRACE_SHIM_HIDDEN) != 0) {
      return RecordedAgain::kFilteredOut;
    }
    renew_function_call(*reinterpret_cast<LibraryCall*>(slots_.entries[i]), known);
    set_named(functions_[i], wanted.is_named != 0);
    switch_on(i);
    return RecordedAgain::kYes;
  }

  // The first of those that are patched.
  uint64_t first() const {
    uint32_t i = 0;
    while (i + 1 < table_.function_count && slots_.entries[i] == 0) ++i;
    return functions_[i].function;
  }

 private:
  bool is_as_in_file(const PatchedFunction& function) const {
    return function.covered >= kPatchJumpSize && function.covered <= kPatchCoveredMax &&
           function.at < table_.code_high &&
           table_.code_high - function.at >= function.covered &&
           starts_with(reinterpret_cast<const uint8_t*>(function.at), function.original,
                       function.covered);
  }

  // This replaces libc's memcmp, which a program can replace.
  static bool starts_with(const uint8_t* code, const uint8_t* original, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      if (code[i] != original[i]) return false;
    }
    return true;
  }

  static bool is_written(const PatchedFunction& function) {
    return starts_with(reinterpret_cast<const uint8_t*>(function.at), function.jump,
                       kPatchJumpSize);
  }

  uint32_t find(uint64_t address) const {
    uint32_t low = 0;
    uint32_t high = table_.function_count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (functions_[middle].function < address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < table_.function_count && functions_[low].function == address
               ? low
               : table_.function_count;
  }

  void switch_on(uint32_t i) {
    IpcAtomics::store_relaxed(gates_[i], gate_when_on(functions_[i]));
  }

  // Sets is_named in the image's data of the function, which are otherwise only read.
  static void set_named(const PatchedFunction& function, bool is_named) {
    if ((function.is_named != 0) == is_named) return;
    const auto page = reinterpret_cast<uintptr_t>(&function);
    if (!protect(page, sizeof function, PROT_READ | PROT_WRITE)) return;
    const_cast<PatchedFunction&>(function).is_named = is_named ? 1 : 0;
    protect(page, sizeof function, PROT_READ);
  }

  KnownFunction known_by_filter(const PatchedFunction& function) const {
    const char* name = "";
    if (function.name < table_.names_size) {
      name = reinterpret_cast<const char*>(table_.names + function.name);
    }
    KnownFunction known = {function.function, name, 0, 0};
    if (*name != '\0') {
      FileAddress at = module_.file;
      at.address = function.function - module_.image.bias;
      known.flags_at_start = filter_flags(name, module_.path, function.size);
      if (records_args()) known.arg_specs = arg_specs_of(name, &at);
    }
    if (function.entry_only != 0) known.flags_at_start |= ARCTRACE_SHIM_ENTRY_ONLY;
    return known;
  }

  // The entry stays 0 if the function is filtered out. False: no stub is free.
  bool make_entry(const PatchedFunction& function, uint64_t& entry) const {
    const KnownFunction known = known_by_filter(function);
    if ((known.flags_at_start & ARCTRACE_SHIM_HIDDEN) != 0) return true;
    const uint32_t number = stub_for_function(known, function.copy);
    if (number == kNoStub) return false;
    LibraryCall& call = library_calls[number];
    // The analysis has found out what the stub would check at the first call.
    if (call.kind == CallKind::kUnexamined) call.kind = CallKind::kWrapped;
    entry = reinterpret_cast<uintptr_t>(&call);
    return true;
  }

  // Has the next call apply the present filter.
  static void renew_function_call(LibraryCall& call, const KnownFunction& known) {
    const auto flags = static_cast<uint16_t>(known.flags_at_start);
    IpcAtomics::store_relaxed(call.plain.ready_at, ARCTRACE_SHIM_NOT_READY);
    call.arg_specs = static_cast<uint16_t>(known.arg_specs);
    call.kind = (flags & ARCTRACE_SHIM_ENTRY_ONLY) != 0 ? CallKind::kEntryOnly
                                                        : CallKind::kWrapped;
    call.plain.filter_at_start = flags;
    IpcAtomics::store_relaxed(call.plain.filter, flags);
    IpcAtomics::store_relaxed(call.generation, uint32_t{0});
  }

  const PatchedModule& module_;
  const PatchTable& table_;
  const PatchedFunction* const functions_;
  PatchSlots& slots_;
  uint64_t* const gates_;
};

}  // namespace

// An address in a library identifies the library.
void report_refused_module(const PatchedModule& module, uint32_t verdict) {
  const uint64_t listed = module.image.range.low;
  const uint32_t count = module.is_program ? 0 : 1;
  arctrace_shim_patches(verdict, count, &listed, count);
}

uint32_t prepare_patches(const PatchedModule& module, const PatchTable& table) {
  return Functions(module, table).prepare();
}

bool note_patches(const PatchedModule& module, const PatchTable& table) {
  return Functions(module, table).note();
}

uint32_t drop_unwritten_patches(const PatchedModule& module, const PatchTable& table,
                                uint32_t verdict) {
  return Functions(module, table).drop_unwritten(verdict);
}

void switch_off_patches(const PatchTable& table) {
  const PatchedModule none;
  Functions(none, table).switch_off();
}

RecordedAgain patch_again(const PatchedModule& module, const PatchTable& table,
                          const PatchAgain& again) {
  return Functions(module, table).again(again);
}

uint64_t first_patched(const PatchTable& table) {
  const PatchedModule none;
  return Functions(none, table).first();
}

void report_patched(const PatchedModule& module, uint32_t count, uint64_t first) {
  arctrace_shim_patches(ARCTRACE_PATCH_DONE, count, &first,
                        module.is_program || count == 0 ? 0 : 1);
}

void write_patches(const PatchedModule& module, const PatchTable& table, uint32_t count) {
  const Functions functions(module, table);
  if (!functions.write()) {
    report_refused_module(module, ARCTRACE_PATCH_NOT_WRITTEN);
    return;
  }
  report_patched(module, count, functions.first());
}

}  // namespace arctrace::shim
