// Finds the threads of a process that wait, and unwinds them (join_process.hpp).
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/recorder/attach/join_process.hpp"
#include "src/recorder/attach/stopped_thread.hpp"
#include "src/recorder/attach/thread_choice.hpp"

namespace arctrace::recorder {
namespace {

constexpr size_t kFramesMax = 512;

// How often the thread was switched off a CPU, voluntarily or not; nullopt: it is gone.
std::optional<uint64_t> switches_of(const std::string& directory) {
  std::ifstream file(directory + "/status");
  std::optional<uint64_t> sum;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find("ctxt_switches:");
    uint64_t count = 0;
    if (colon == std::string::npos ||
        !absl::SimpleAtoi(line.substr(line.find(':') + 1), &count)) {
      continue;
    }
    sum = sum.value_or(0) + count;
  }
  return sum;
}

// The thread, if it waits in a system call: then /proc says "NUMBER ARGUMENT... STACK
// CODE". It says "running" of one that runs, and "-1 STACK CODE" of one that waits
// elsewhere.
std::optional<WaitingThread> find_waiting(pid_t pid, pid_t tid) {
  const std::string directory = absl::StrCat("/proc/", pid, "/task/", tid);
  const std::optional<uint64_t> switches = switches_of(directory);
  std::ifstream file(directory + "/syscall");
  constexpr int kArguments = 6;
  std::array<std::string, 1 + kArguments + 2> words;
  for (std::string& word : words) file >> word;
  WaitingThread thread{.tid = tid, .switches = switches.value_or(0)};
  if (!switches.has_value() || file.fail() ||
      !absl::SimpleHexAtoi(words[kArguments + 1], &thread.stack_pointer) ||
      !absl::SimpleHexAtoi(words[kArguments + 2], &thread.code)) {
    return std::nullopt;
  }
  return thread;
}

// ---- Where a function begins -------------------------------------------------

struct CodeOfModule {
  uint64_t low = 0;
  std::vector<uint64_t> functions;  // where they begin, ascending
};

// The beginnings of functions by the table in which unwinders search, of a module whose
// program header for the table is at `address`. All of it is untrusted.
std::vector<uint64_t> read_function_begins(pid_t pid, uint64_t address, uint64_t size) {
  constexpr uint8_t kVersion = 1;
  constexpr uint8_t kCountEncoding = 0x03;  // DW_EH_PE_udata4
  constexpr uint8_t kTableEncoding = 0x3b;  // DW_EH_PE_datarel | DW_EH_PE_sdata4
  struct {
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t frame;
    uint32_t count;
  } header{};
  if (!read_memory(pid, address, &header, sizeof header) || header.version != kVersion ||
      header.count_encoding != kCountEncoding ||
      header.table_encoding != kTableEncoding) {
    return {};
  }
  struct Entry {
    int32_t function, rule;
  };
  // The limit is more than any program has: the file's sizes are as untrusted as the
  // table's.
  constexpr uint32_t kFunctionsMax = 1u << 22;
  if (size < sizeof header || header.count > (size - sizeof header) / sizeof(Entry) ||
      header.count > kFunctionsMax) {
    return {};
  }
  std::vector<Entry> entries(header.count);
  if (!read_memory(pid, address + sizeof header, entries.data(),
                   entries.size() * sizeof(Entry))) {
    return {};
  }
  std::vector<uint64_t> begins;
  begins.reserve(entries.size());
  for (const Entry& entry : entries) {
    begins.push_back(address + static_cast<uint64_t>(int64_t{entry.function}));
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

// ---- Unwinding ---------------------------------------------------------------

class Unwinder {
 public:
  explicit Unwinder(pid_t pid) : pid_(pid), modules_(report_modules(pid)) {
    static const Dwfl_Thread_Callbacks callbacks = {
        .next_thread = next_thread,
        .get_thread = nullptr,
        .memory_read = read_word,
        .set_initial_registers = set_registers,
        .detach = nullptr,
        .thread_detach = nullptr};
    is_attached_ = modules_ != nullptr &&
                   dwfl_attach_state(modules_.get(), nullptr, pid, &callbacks, this);
  }
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  WaitingStack unwind(const WaitingThread& thread) {
    thread_ = &thread;
    stack_ = {.tid = thread.tid, .functions = {}, .is_whole = false};
    if (!is_attached_) return stack_;
    // Unwinding also ends without an error where a register is missing.
    outermost_code_ = 0;
    dwfl_getthreads(modules_.get(), see_thread, this);
    stack_.is_whole = returns_to_nowhere(outermost_code_);
    while (stack_.is_whole && !stack_.functions.empty() &&
           leads_to_program(stack_.functions.back())) {
      stack_.functions.pop_back();
    }
    std::reverse(stack_.functions.begin(), stack_.functions.end());
    return stack_;
  }

 private:
  static Unwinder& self(void* data) { return *static_cast<Unwinder*>(data); }

  // Gives libdw the only thread there is.
  static pid_t next_thread(Dwfl*, void* data, void** place) {
    if (*place != nullptr) return 0;
    *place = data;
    return self(data).thread_->tid;
  }
  static bool read_word(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* data) {
    return read_memory(self(data).pid_, address, word, sizeof *word);
  }
  // The kernel tells no other registers: unwinding ends where a frame is found by another
  // one that no frame further in has saved.
  static bool set_registers(Dwfl_Thread* thread, void* data) {
    constexpr int kStackPointer = 7;
    const Dwarf_Word stack_pointer = self(data).thread_->stack_pointer;
    dwfl_thread_state_register_pc(thread, self(data).thread_->code);
    return dwfl_thread_state_registers(thread, kStackPointer, 1, &stack_pointer);
  }
  static int see_thread(Dwfl_Thread* thread, void* data) {
    return dwfl_thread_getframes(thread, see_frame, data) == 0 ? DWARF_CB_OK
                                                               : DWARF_CB_ABORT;
  }
  static int see_frame(Dwfl_Frame* frame, void* data) {
    Unwinder& unwinder = self(data);
    Dwarf_Addr code = 0;
    bool is_activation = false;
    if (unwinder.stack_.functions.size() == kFramesMax ||
        !dwfl_frame_pc(frame, &code, &is_activation)) {
      unwinder.outermost_code_ = 0;
      return DWARF_CB_ABORT;
    }
    unwinder.outermost_code_ = is_activation ? code : code - 1;
    const uint64_t begin = unwinder.function_at(unwinder.outermost_code_);
    if (begin == 0) {
      unwinder.outermost_code_ = 0;
      return DWARF_CB_ABORT;
    }
    unwinder.stack_.functions.push_back(begin);
    return DWARF_CB_OK;
  }

  // Whether the code's unwind rule says that it has no caller.
  bool returns_to_nowhere(uint64_t code) const {
    Dwfl_Module* module = dwfl_addrmodule(modules_.get(), code);
    Dwarf_Addr bias = 0;
    Dwarf_CFI* rules = module == nullptr ? nullptr : dwfl_module_eh_cfi(module, &bias);
    Dwarf_Frame* rule = nullptr;
    if (rules == nullptr || dwarf_cfi_addrframe(rules, code - bias, &rule) != 0) {
      return false;
    }
    const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> owner(rule, std::free);
    const int return_address = dwarf_frame_info(rule, nullptr, nullptr, nullptr);
    Dwarf_Op memory[3];
    Dwarf_Op* operations = nullptr;
    size_t count = 0;
    return return_address >= 0 &&
           dwarf_frame_register(rule, return_address, memory, &operations, &count) == 0 &&
           operations == memory && count == 0;
  }

  // Whether the function is libc's or the program's entry point, which call main and the
  // threads' functions.
  bool leads_to_program(uint64_t function) const {
    Dwfl_Module* module = dwfl_addrmodule(modules_.get(), function);
    const char* path = dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr,
                                        nullptr, nullptr, nullptr);
    const std::string_view whole = path == nullptr ? "" : path;
    const std::string_view file = whole.substr(whole.rfind('/') + 1);
    for (const char* name : {"libc.so", "libc-2.", "libpthread", "ld-linux"}) {
      if (file.starts_with(name)) return true;
    }
    GElf_Addr bias = 0;
    GElf_Ehdr header;
    Elf* elf = dwfl_module_getelf(module, &bias);
    return elf != nullptr && gelf_getehdr(elf, &header) != nullptr &&
           bias + header.e_entry == function;
  }

  // The beginning of the function that contains the address; 0: not known.
  uint64_t function_at(uint64_t address) {
    Dwfl_Module* module = dwfl_addrmodule(modules_.get(), address);
    if (module == nullptr) return 0;
    Dwarf_Addr low = 0;
    dwfl_module_info(module, nullptr, &low, nullptr, nullptr, nullptr, nullptr, nullptr);
    auto known =
        std::find_if(code_.begin(), code_.end(),
                     [low](const CodeOfModule& code) { return code.low == low; });
    if (known == code_.end()) {
      code_.push_back({low, begins_of(module)});
      known = std::prev(code_.end());
    }
    const auto next =
        std::upper_bound(known->functions.begin(), known->functions.end(), address);
    return next == known->functions.begin() ? 0 : *std::prev(next);
  }
  std::vector<uint64_t> begins_of(Dwfl_Module* module) const {
    GElf_Addr bias = 0;
    Elf* elf = dwfl_module_getelf(module, &bias);
    size_t count = 0;
    if (elf == nullptr || elf_getphdrnum(elf, &count) != 0) return {};
    for (size_t i = 0; i < count; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr ||
          header.p_type != PT_GNU_EH_FRAME) {
        continue;
      }
      return read_function_begins(pid_, bias + header.p_vaddr, header.p_memsz);
    }
    return {};
  }

  const pid_t pid_;
  const UnwindModules modules_;
  bool is_attached_ = false;
  const WaitingThread* thread_ = nullptr;
  WaitingStack stack_;
  uint64_t outermost_code_ = 0;  // in the last function that was seen
  std::vector<CodeOfModule> code_;
};

}  // namespace

std::vector<WaitingThread> find_waiting_threads(pid_t pid) {
  namespace fs = std::filesystem;
  std::vector<WaitingThread> threads;
  std::error_code error;
  fs::directory_iterator task(absl::StrCat("/proc/", pid, "/task"), error);
  for (; !error && task != fs::directory_iterator(); task.increment(error)) {
    pid_t tid = 0;
    if (!absl::SimpleAtoi(task->path().filename().native(), &tid)) continue;
    const std::optional<WaitingThread> waiting = find_waiting(pid, tid);
    if (waiting.has_value()) threads.push_back(*waiting);
  }
  return threads;
}

std::vector<WaitingStack> unwind_waiting_threads(
    pid_t pid, const std::vector<WaitingThread>& since) {
  std::vector<WaitingStack> stacks;
  Unwinder unwinder(pid);
  for (const WaitingThread& thread : since) {
    // The thread is checked after its stack was read, because it may have run meanwhile.
    WaitingStack stack = unwinder.unwind(thread);
    if (stack.functions.empty() || find_waiting(pid, thread.tid) != thread) continue;
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

}  // namespace arctrace::recorder
