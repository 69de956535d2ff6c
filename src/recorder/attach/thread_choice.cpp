// Tries the threads of a process, and checks the frames of each for locks that it may
// hold.
#include "src/recorder/attach/thread_choice.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <elfutils/libdwfl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

namespace arctrace::recorder {

namespace {

int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                  GElf_Word, char**) {
  return -1;  // the file itself has unwind tables and the symbols that are needed
}

const Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                   .find_debuginfo = no_debug_file,
                                   .section_address = dwfl_offline_section_address,
                                   .debuginfo_path = nullptr};

}  // namespace

namespace {

// The lines of /proc/PID/maps with paths by which the recorder opens the files; empty:
// they have these already, as those of a process with the same root directory.
std::string maps_with_other_paths(pid_t pid) {
  std::string lines;
  bool are_other = false;
  std::map<std::string, std::string> paths;  // one for all parts of a file
  for (const Mapping& mapping : read_mappings(pid)) {
    const auto [known, is_new] = paths.try_emplace(mapping.path);
    if (is_new) known->second = path_to(pid, mapping);
    const std::string& path = known->second;
    if (path.empty()) continue;
    are_other = are_other || path != mapping.path;
    absl::StrAppendFormat(&lines, "%x-%x %s %08x %02x:%02x %u %s\n", mapping.low,
                          mapping.high, mapping.is_executable ? "r-xp" : "r--p",
                          mapping.offset, major(mapping.device), minor(mapping.device),
                          mapping.inode, path);
  }
  return are_other ? lines : "";
}

bool report_files(Dwfl* dwfl, pid_t pid) {
  std::string lines = maps_with_other_paths(pid);
  if (lines.empty()) return dwfl_linux_proc_report(dwfl, pid) == 0;
  FILE* file = fmemopen(lines.data(), lines.size(), "r");
  if (file == nullptr) return false;
  const int error = dwfl_linux_proc_maps_report(dwfl, file);
  std::fclose(file);
  return error == 0;
}

}  // namespace

UnwindModules report_modules(pid_t pid) {
  UnwindModules dwfl(dwfl_begin(&kCallbacks));
  if (dwfl == nullptr || !report_files(dwfl.get(), pid) ||
      dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0) {
    return nullptr;
  }
  return dwfl;
}

namespace {

namespace fs = std::filesystem;

// The system call in which a thread sleeps, as /proc has it; -1: it runs, or sleeps in
// none.
long sleeping_in(pid_t pid, pid_t tid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/task/", tid, "/syscall"));
  long number = -1;
  return file >> number ? number : -1;
}

// The order in which threads are tried: first those that sleep for long, in a call that
// the kernel makes again by itself.
int rank_of(long number) {
  switch (number) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_pause:
    case SYS_wait4:
    case SYS_waitid:
      return 0;
    case -1:
      return 2;
    default:
      return 1;
  }
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<std::pair<int, pid_t>> ranked;
  std::error_code error;
  fs::directory_iterator task(absl::StrCat("/proc/", pid, "/task"), error);
  for (; !error && task != fs::directory_iterator(); task.increment(error)) {
    pid_t tid = 0;
    if (!absl::SimpleAtoi(task->path().filename().native(), &tid)) continue;
    ranked.emplace_back(rank_of(sleeping_in(pid, tid)), tid);
  }
  std::stable_sort(ranked.begin(), ranked.end());
  std::vector<pid_t> threads;
  threads.reserve(ranked.size());
  for (const auto& [rank, tid] : ranked) threads.push_back(tid);
  return threads;
}

// Whether a function of this name, in a module of that name, may hold a lock that
// dlopen() needs.
bool may_hold_lock(std::string_view module, std::string_view function) {
  for (const char* name : {"ld-linux", "ld-2.", "jemalloc", "tcmalloc", "mimalloc"}) {
    if (module.find(name) != std::string_view::npos) return true;
  }
  for (const char* name : {"alloc", "free", "memalign", "dlopen", "dlclose", "dlsym",
                           "dl_iterate_phdr", "_dl_", "fork", "__restore_rt", "exit",
                           "pthread_create", "malloc_trim", "mallinfo"}) {
    if (function.find(name) != std::string_view::npos) return true;
  }
  return false;
}

struct Frames {
  size_t count = 0;
  bool are_harmless = true;
};

int see_frame(Dwfl_Frame* frame, void* data) {
  auto& frames = *static_cast<Frames*>(data);
  constexpr size_t kFramesMax = 4096;
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  if (!is_activation) --pc;
  Dwfl_Module* module = dwfl_addrmodule(dwfl_thread_dwfl(dwfl_frame_thread(frame)), pc);
  const char* name = nullptr;
  if (module != nullptr) {
    name = dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                            nullptr);
  }
  const char* function = module == nullptr ? nullptr : dwfl_module_addrname(module, pc);
  const std::string_view path = name == nullptr ? "" : name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  // A thread that was joined before may be writing a record here. Further out, such a
  // frame is a call through a stub.
  const bool may_write = frames.count == 0 && file.substr(0, 11) == "libarctrace";
  if (may_write || may_hold_lock(file, function == nullptr ? "" : function)) {
    frames.are_harmless = false;
    return DWARF_CB_ABORT;
  }
  return ++frames.count < kFramesMax ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// Reads the tables that unwinding will need, so that no thread is stopped while they are
// read.
int read_tables(Dwfl_Module* module, void** /*data*/, const char* /*name*/,
                Dwarf_Addr /*low*/, void* /*argument*/) {
  Dwarf_Addr bias = 0;
  dwfl_module_eh_cfi(module, &bias);
  dwfl_module_getsymtab(module);
  return DWARF_CB_OK;
}

// Unwinds the stacks of the process' stopped threads; null: it cannot be read.
UnwindModules read_modules(pid_t pid) {
  UnwindModules dwfl = report_modules(pid);
  if (dwfl == nullptr || dwfl_linux_proc_attach(dwfl.get(), pid, true) != 0) {
    return nullptr;
  }
  dwfl_getmodules(dwfl.get(), read_tables, nullptr, 0);
  return dwfl;
}

// Whether the thread stands in a restartable sequence, which the kernel would forget if
// the thread went elsewhere.
bool is_in_restartable_sequence(const StoppedThread& thread) {
  struct {
    uint64_t address;
    uint32_t size, signature, flags, pad;
  } configuration{};
  constexpr auto kGetConfiguration = static_cast<__ptrace_request>(0x420f);
  if (ptrace(kGetConfiguration, thread.tid(), sizeof configuration, &configuration) <=
          0 ||
      configuration.address == 0) {
    return false;
  }
  constexpr uint64_t kSequence = 8;  // offset of its pointer, which is 0 outside
  const absl::StatusOr<int32_t> low = thread.read_word(configuration.address + kSequence);
  const absl::StatusOr<int32_t> high =
      thread.read_word(configuration.address + kSequence + 4);
  return !low.ok() || !high.ok() || *low != 0 || *high != 0;
}

bool is_harmless(const StoppedThread& thread, Dwfl* dwfl) {
  if (is_in_restartable_sequence(thread)) return false;
  Frames frames;
  dwfl_getthread_frames(dwfl, thread.tid(), see_frame, &frames);
  // If the thread was running, all its frames have to be known.
  return frames.are_harmless &&
         frames.count >= (rank_of(thread.system_call_number()) < 2 ? 1 : 2);
}

// Where many threads compute, a thread that waits for a CPU stops only at its next turn:
// with a higher priority it gets one at once.
absl::StatusOr<StoppedThread> stop_hurried(pid_t tid, HurriedThread& hurried) {
  absl::StatusOr<StoppedThread> thread = StoppedThread::ask_to_stop(tid);
  if (!thread.ok()) return thread;
  hurried.hurry(tid);
  if (absl::Status stopped = thread->await_stop(); !stopped.ok()) return stopped;
  return thread;
}

}  // namespace

absl::StatusOr<StoppedThread> stop_harmless_thread(const JoinTarget& target,
                                                   HurriedThread& hurried) {
  constexpr auto kPatience = std::chrono::seconds(3);
  constexpr auto kPause = std::chrono::milliseconds(5);
  const auto begin = std::chrono::steady_clock::now();
  const UnwindModules dwfl = read_modules(target.pid);
  if (dwfl == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no process ", target.pid, " any more"));
  }
  absl::Status last = absl::OkStatus();
  while (std::chrono::steady_clock::now() - begin < kPatience) {
    for (const pid_t tid : threads_of(target.pid)) {
      absl::StatusOr<StoppedThread> thread = stop_hurried(tid, hurried);
      if (!thread.ok()) {
        last = thread.status();
      } else if (is_harmless(*thread, dwfl.get())) {
        return thread;
      }
      hurried.calm();
    }
    if (absl::Status ended = ended_status(target.pid); !ended.ok()) return ended;
    std::this_thread::sleep_for(kPause);
  }
  if (!last.ok()) return last;
  return absl::UnavailableError(
      "each of its threads was in malloc or in the dynamic loader whenever one was "
      "stopped; try again");
}

}  // namespace arctrace::recorder
