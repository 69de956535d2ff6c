// The steps by which a process joins: a borrowed thread opens the shim and calls its
// functions.
#include "src/recorder/attach/join_process.hpp"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "src/recorder/attach/handed_files.hpp"
#include "src/recorder/attach/join_target.hpp"
#include "src/recorder/attach/shim_calls.hpp"
#include "src/recorder/attach/stopped_thread.hpp"
#include "src/recorder/attach/stopped_threads.hpp"
#include "src/recorder/attach/thread_choice.hpp"

namespace arctrace::recorder {

// Delays Ctrl-Z in the recorder's terminal while threads of another process are stopped.
//
// While the object exists SIGTSTP does not stop this process; if it came meanwhile, it
// does afterwards. There is at most one such object at a time.
class TerminalStopDelayed {
 public:
  TerminalStopDelayed();
  ~TerminalStopDelayed();
  TerminalStopDelayed(const TerminalStopDelayed&) = delete;
  TerminalStopDelayed& operator=(const TerminalStopDelayed&) = delete;

 private:
  struct sigaction before_ {};
};

namespace {

volatile std::sig_atomic_t stop_has_come = 0;

void note_stop(int) { stop_has_come = 1; }

}  // namespace

TerminalStopDelayed::TerminalStopDelayed() {
  struct sigaction noted {};
  noted.sa_handler = note_stop;
  noted.sa_flags = SA_RESTART;
  sigaction(SIGTSTP, &noted, &before_);
  if (before_.sa_handler == SIG_IGN) sigaction(SIGTSTP, &before_, nullptr);
}

TerminalStopDelayed::~TerminalStopDelayed() {
  sigaction(SIGTSTP, &before_, nullptr);
  if (stop_has_come == 0) return;
  stop_has_come = 0;
  std::raise(SIGTSTP);
}

namespace {

// The memory that the thread uses for us: a stack, and above it the texts that are passed
// to functions.
constexpr uint64_t kMemory = uint64_t{1} << 20;

// The functions of the process that are called.
struct Functions {
  ReturnCode code;
  uint64_t map;    // mmap()
  uint64_t unmap;  // munmap()
  uint64_t errno_location;
  uint64_t open;  // dlopen()
  uint64_t open_flags;
  uint64_t error;   // dlerror(); 0: there is none
  uint64_t symbol;  // dlsym(); 0: not before libdl is loaded
  ShimSymbols shim;
  HandFunctions hand;
};

absl::StatusOr<Functions> find_functions(const JoinTarget& target,
                                         const JoinRequest& request) {
  constexpr uint64_t kInternalOpen = 0x80000000;  // __RTLD_DLOPEN of libc's own function
  const auto find = [&](const char* name) {
    const uint64_t found = find_function(target.libc, name);
    return found != 0 ? found : find_function(target.libdl, name);
  };
  Functions functions{{find_system_call(target.pid, target.libc),
                       find_signal_return(target.pid, target.libc)},
                      find("mmap"),
                      find("munmap"),
                      find("__errno_location"),
                      find("dlopen"),
                      RTLD_NOW,
                      find("dlerror"),
                      find("dlsym"),
                      find_shim_symbols(request.shim),
                      {find("socketpair"), find("recvmsg"), find("close")}};
  if (functions.open == 0) {
    functions.open = find("__libc_dlopen_mode");
    functions.open_flags |= kInternalOpen;
  }
  if (functions.code.system_call == 0 || functions.code.signal_return == 0 ||
      functions.map == 0 || functions.unmap == 0 || functions.open == 0 ||
      functions.errno_location == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("its libc (", target.libc.path, ") has no dlopen"));
  }
  return functions;
}

// Memory of the process that the thread uses for us.
class Scratch {
 public:
  Scratch(StoppedThread& thread, uint64_t address, uint64_t unmap)
      : thread_(thread), address_(address), unmap_(unmap) {}
  ~Scratch() { (void)thread_.call(unmap_, {address_, kMemory}, 0); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  uint64_t stack() const { return address_ + kMemory; }
  // The address of memory of this size, which nothing else uses.
  uint64_t take(uint64_t size) {
    constexpr uint64_t kAlignment = 16;
    return address_ + std::exchange(used_, (used_ + size + kAlignment - 1) & -kAlignment);
  }
  // The address of a copy of `text`.
  absl::StatusOr<uint64_t> put(const std::string& text) {
    const uint64_t at = take(text.size() + 1);
    absl::Status status = thread_.write(at, {text.c_str(), text.size() + 1});
    if (!status.ok()) return status;
    return at;
  }

 private:
  StoppedThread& thread_;
  uint64_t address_;
  uint64_t unmap_;
  uint64_t used_ = 0;
};

std::string loader_error(StoppedThread& thread, const Functions& functions,
                         uint64_t stack) {
  if (functions.error == 0) return "no reason is known";
  const absl::StatusOr<uint64_t> address = thread.call(functions.error, {}, stack);
  if (!address.ok() || *address == 0) return "no reason is known";
  const absl::StatusOr<std::string> text = thread.read_text(*address);
  return text.ok() ? *text : "no reason is known";
}

// Why the shim did not join.
std::string join_error(int error, const JoinRequest& request) {
  switch (error) {
    case ENOSYS:
      return "its glibc is older than 2.28";
    case EALREADY:
    case EBUSY:
      return "it is in a recording that goes on, or in a session (arctrace list)";
    case EPERM:
      return "it began in a recording, whose hooks belong to that one";
    case EAGAIN:
      return "a signal handler interrupts what records its thread; try again";
    case EACCES:
      return absl::StrCat("its user may not write into ", request.session);
    default:
      return absl::StrCat(std::strerror(error), " (", request.session, ")");
  }
}

// Finds dlsym() of the process, which before glibc 2.34 is in a library that it may lack.
absl::StatusOr<uint64_t> find_symbol_function(const JoinTarget& target,
                                              const Functions& functions,
                                              StoppedThread& thread, Scratch& scratch) {
  if (functions.symbol != 0) return functions.symbol;
  const absl::StatusOr<uint64_t> name = scratch.put("libdl.so.2");
  if (!name.ok()) return name.status();
  const absl::StatusOr<uint64_t> handle =
      thread.call(functions.open, {*name, functions.open_flags}, scratch.stack());
  if (!handle.ok()) return handle.status();
  const uint64_t found = find_function(find_library(target.pid, "libdl.so.2"), "dlsym");
  if (found == 0) return absl::FailedPreconditionError("its libc has no dlsym");
  return found;
}

// Has the shim map the images of the modules whose functions are to be patched.
absl::Status patch_functions(ShimCalls& calls, PatchImages& images, pid_t pid,
                             const Functions& functions, StoppedThread& thread,
                             Scratch& scratch) {
  return hand_over_patches(
      thread, pid, calls.wanted_modules(), images,
      {[&](uint64_t size) {
         return thread.call(functions.map,
                            {0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             ~uint64_t{0}, 0},
                            scratch.stack());
       },
       [&](uint64_t address, uint64_t size) {
         (void)thread.call(functions.unmap, {address, size}, scratch.stack());
       },
       [&](uint64_t address) { return calls.take_patches(address); }});
}

// Has the thread load the library at `path`, as the process sees it. Returns dlopen()'s
// result.
absl::StatusOr<uint64_t> load_library(StoppedThread& thread, const Functions& functions,
                                      Scratch& scratch, const std::string& path) {
  if (absl::Status status = thread.check_time(); !status.ok()) return status;
  const absl::StatusOr<uint64_t> text = scratch.put(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<uint64_t> handle =
      thread.call(functions.open, {*text, functions.open_flags}, scratch.stack());
  if (handle.ok() && *handle == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it cannot load the shim: ", loader_error(thread, functions, scratch.stack())));
  }
  return handle;
}

absl::Status load_and_join(const JoinTarget& target, const JoinRequest& request,
                           const Functions& functions, StoppedThread& thread,
                           HurriedThread& others, Scratch& scratch, Joined& result) {
  const absl::StatusOr<uint64_t> options = scratch.put(request.options);
  const absl::StatusOr<uint64_t> name = scratch.put("arctrace_wanted_step");
  if (!name.ok()) return name.status();
  std::optional<HandedFiles> handed;
  std::string shim = request.shim;
  absl::StatusOr<uint64_t> session;
  if (target.sees_files) {
    session = scratch.put(request.session);
    if (!session.ok()) return session.status();
  } else {
    const absl::StatusOr<FilesToHand> files =
        FilesToHand::open(request.library, request.shim, request.session);
    if (!files.ok()) return files.status();
    absl::StatusOr<HandedFiles> there = HandedFiles::hand_over(
        thread, target.pid, functions.hand, {scratch.take(kHandBytes), scratch.stack()},
        files->descriptors());
    if (!there.ok()) return there.status();
    handed.emplace(*std::move(there));
    session = static_cast<uint64_t>((*handed)[FilesToHand::kBuffer]);
    // The shim needs the library, which the loader then finds by its name.
    const absl::StatusOr<uint64_t> library = load_library(
        thread, functions, scratch,
        path_of_handed(thread.tid(), kLibrarySpelling, (*handed)[FilesToHand::kLibrary]));
    if (!library.ok()) return library.status();
    shim = path_of_handed(thread.tid(), kShimSpelling, (*handed)[FilesToHand::kShim]);
  }
  const absl::StatusOr<uint64_t> handle = load_library(thread, functions, scratch, shim);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<uint64_t> dlsym =
      find_symbol_function(target, functions, thread, scratch);
  if (!dlsym.ok()) return dlsym.status();
  const uint64_t low =
      find_library(target.pid, request.shim.substr(request.shim.rfind('/') + 1)).low;
  if (low == 0 || !functions.shim.are_complete()) {
    return absl::InternalError("the shim that it has loaded cannot join");
  }
  ShimCalls calls(thread, others, target.pid, functions.shim,
                  {low, *dlsym, *handle, *name, scratch.stack()});
  const auto join = [&] { return calls.join(*session, handed.has_value(), *options); };
  absl::StatusOr<int> error = join();
  if (error.ok() && *error == EALREADY) {
    error = calls.leave(result.all_stopped_ns);
    if (error.ok() && *error == 0) error = join();
  }
  if (!error.ok()) return error.status();
  if (*error != 0) return absl::FailedPreconditionError(join_error(*error, request));
  // The process stays joined, whatever becomes of its hooks.
  if (request.patches != nullptr) {
    result.code_status =
        patch_functions(calls, *request.patches, target.pid, functions, thread, scratch);
  }
  absl::Status changed = calls.change_code(result.changes_skipped, result.all_stopped_ns);
  if (request.patches != nullptr) {
    const absl::StatusOr<int> reported = calls.report_patches();
    if (changed.ok()) changed = reported.status();
  }
  if (result.code_status.ok()) result.code_status = changed;
  return absl::OkStatus();
}

absl::Status join_by(StoppedThread& thread, HurriedThread& others,
                     const JoinTarget& target, const JoinRequest& request,
                     const Functions& functions, Joined& result) {
  if (absl::Status status = thread.borrow(functions.code); !status.ok()) return status;
  const absl::StatusOr<uint64_t> memory = thread.call(
      functions.map,
      {0, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0},
      0);
  if (!memory.ok()) return memory.status();
  if (*memory == reinterpret_cast<uint64_t>(MAP_FAILED)) {
    return absl::ResourceExhaustedError("it has no memory left");
  }
  Scratch scratch(thread, *memory, functions.unmap);
  // The thread may be in a call that has just set errno.
  const absl::StatusOr<uint64_t> location =
      thread.call(functions.errno_location, {}, scratch.stack());
  if (!location.ok()) return location.status();
  const absl::StatusOr<int32_t> error = thread.read_word(*location);
  if (!error.ok()) return error.status();
  absl::Status joined =
      load_and_join(target, request, functions, thread, others, scratch, result);
  const char* bytes = reinterpret_cast<const char*>(&*error);
  absl::Status restored = thread.write(*location, {bytes, sizeof *error});
  return joined.ok() ? restored : joined;
}

absl::Status borrow_and_join(const JoinTarget& target, const JoinRequest& request,
                             const Functions& functions, HurriedThread& hurried,
                             HurriedThread& others, Joined& result) {
  std::chrono::steady_clock::time_point begin;
  absl::Status joined;
  {
    absl::StatusOr<StoppedThread> thread = stop_harmless_thread(target, hurried);
    if (!thread.ok()) return thread.status();
    begin = thread->stopped_at();
    joined = join_by(*thread, others, target, request, functions, result);
  }
  // The thread has gone on. Later the recorder has no real-time priority, and may wait
  // for a CPU.
  result.stopped_ns =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                std::chrono::steady_clock::now() - begin)
                                .count());
  return joined;
}

// Reads the file beforehand, so that the thread that loads it does not wait for a disk.
void read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 65536> bytes{};
  while (file.read(bytes.data(), bytes.size())) {
  }
}

}  // namespace

absl::Status can_join_process(pid_t pid, const JoinRequest& request) {
  return examine_process(pid, request.shim, request.session).status();
}

absl::StatusOr<Joined> join_process(pid_t pid, const JoinRequest& request) {
  const absl::StatusOr<JoinTarget> target =
      examine_process(pid, request.shim, request.session);
  if (!target.ok()) return target.status();
  const auto refused = [pid](const absl::Status& why) {
    if (absl::Status ended = ended_status(pid); !ended.ok()) return ended;
    return absl::Status(why.code(),
                        absl::StrCat("cannot join process ", pid, ": ", why.message()));
  };
  const absl::StatusOr<Functions> functions = find_functions(*target, request);
  if (!functions.ok()) return refused(functions.status());
  if (request.patches != nullptr) request.patches->prepare(pid);
  read_whole(request.shim);
  Joined result;
  result.name = target->name;
  const TerminalStopDelayed until_all_go_on;
  const RealTimePriority priority;
  HurriedThread hurried(priority);  // until the thread goes on
  HurriedThread others(priority);   // until each has stopped
  absl::Status joined =
      borrow_and_join(*target, request, *functions, hurried, others, result);
  if (!joined.ok()) return refused(joined);
  return result;
}

}  // namespace arctrace::recorder
