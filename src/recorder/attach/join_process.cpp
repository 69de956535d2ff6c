#include "src/recorder/attach/join_process.hpp"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "src/recorder/attach/join_target.hpp"
#include "src/recorder/attach/stopped_thread.hpp"
#include "src/recorder/attach/stopped_threads.hpp"
#include "src/recorder/attach/thread_choice.hpp"
#include "src/shim_protocol/join_result.hpp"

namespace arctrace {
namespace {

// Where the thread runs for us: a stack, above the texts that the functions are passed.
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
};

absl::StatusOr<Functions> find_functions(const JoinTarget& target) {
  constexpr uint64_t kInternalOpen = 0x80000000;  // __RTLD_DLOPEN of libc's own function
  const auto find = [&](const char* name) {
    const uint64_t found = find_function(target.pid, target.libc, name);
    return found != 0 ? found : find_function(target.pid, target.libdl, name);
  };
  Functions functions{{find_system_call(target), find_signal_return(target)},
                      find("mmap"),
                      find("munmap"),
                      find("__errno_location"),
                      find("dlopen"),
                      RTLD_NOW,
                      find("dlerror"),
                      find("dlsym")};
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
  // The address of a copy of `text`.
  absl::StatusOr<uint64_t> put(const std::string& text) {
    const uint64_t at = address_ + used_;
    used_ += text.size() + 1;
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

using Clock = std::chrono::steady_clock;

uint64_t ns_since(Clock::time_point begin) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

// The shim's functions, as the thread calls them.
class ShimCalls {
 public:
  // `dlsym`, `handle`: that function, and dlopen()'s result.
  ShimCalls(StoppedThread& thread, const JoinTarget& target, const JoinRequest& request,
            uint64_t stack, uint64_t dlsym, uint64_t handle)
      : thread_(thread), pid_(target.pid), stack_(stack), dlsym_(dlsym), handle_(handle) {
    const std::string name = request.shim.substr(request.shim.rfind('/') + 1);
    const LoadedLibrary shim = find_library(target.pid, name);
    want_ = find_function(target.pid, shim, "arctrace_want_session");
    end_ = find_function(target.pid, shim, "arctrace_end_session");
    forget_ = find_function(target.pid, shim, "arctrace_forget_session");
  }

  bool are_complete() const { return want_ != 0 && end_ != 0 && forget_ != 0; }

  // These return an error number, 0 for none.

  // `name`: the address of that of the shim's function whose resolver joins.
  absl::StatusOr<int> join(uint64_t session, uint64_t options, uint64_t name) {
    absl::StatusOr<int> error = call(want_, session, options);
    if (!error.ok() || *error != 0) return error;
    return call(dlsym_, handle_, name);
  }
  // Has the process leave a session that is over. All threads stand still for a moment,
  // to be seen outside of what records. If we are killed meanwhile, nothing is recorded
  // any more, so that they may also run.
  absl::StatusOr<int> leave(uint64_t& all_stopped_ns) {
    constexpr int kTries = 50;
    constexpr auto kPause = std::chrono::milliseconds(2);
    absl::StatusOr<int> error = call(end_, 0, 0);
    if (!error.ok() || *error != 0) return error;
    const std::vector<CodeRange> code = find_own_code(pid_);
    for (int i = 0; i < kTries; ++i) {
      if (i != 0) std::this_thread::sleep_for(kPause);
      const Clock::time_point begin = Clock::now();
      error = forget(code);
      all_stopped_ns = std::max(all_stopped_ns, ns_since(begin));
      const bool may_work_later =
          error.ok() ? *error == EAGAIN : absl::IsUnavailable(error.status());
      if (!may_work_later) break;
    }
    return error;
  }

 private:
  absl::StatusOr<int> forget(const std::vector<CodeRange>& code) {
    const RealTimePriority priority;
    absl::StatusOr<StoppedThreads> others =
        StoppedThreads::stop_all_but(pid_, thread_.tid());
    if (!others.ok()) return others.status();
    if (absl::Status left = others->leave_code(code); !left.ok()) return left;
    return call(forget_, 0, 0);
  }

  absl::StatusOr<int> call(uint64_t function, uint64_t a, uint64_t b) {
    const absl::StatusOr<uint64_t> result = thread_.call(function, {a, b}, stack_);
    if (!result.ok()) return result.status();
    return static_cast<int32_t>(*result) - shim::kJoinResult;
  }

  StoppedThread& thread_;
  pid_t pid_;
  uint64_t stack_;
  uint64_t dlsym_;
  uint64_t handle_;
  uint64_t want_;
  uint64_t end_;
  uint64_t forget_;
};

// dlsym() of the process, which before glibc 2.34 is in a library that it may lack.
absl::StatusOr<uint64_t> find_symbol_function(const JoinTarget& target,
                                              const Functions& functions,
                                              StoppedThread& thread, Scratch& scratch) {
  if (functions.symbol != 0) return functions.symbol;
  const absl::StatusOr<uint64_t> name = scratch.put("libdl.so.2");
  if (!name.ok()) return name.status();
  const absl::StatusOr<uint64_t> handle =
      thread.call(functions.open, {*name, functions.open_flags}, scratch.stack());
  if (!handle.ok()) return handle.status();
  const uint64_t found =
      find_function(target.pid, find_library(target.pid, "libdl.so.2"), "dlsym");
  if (found == 0) return absl::FailedPreconditionError("its libc has no dlsym");
  return found;
}

absl::Status load_and_join(const JoinTarget& target, const JoinRequest& request,
                           const Functions& functions, StoppedThread& thread,
                           Scratch& scratch, uint64_t& all_stopped_ns) {
  const absl::StatusOr<uint64_t> shim = scratch.put(request.shim);
  const absl::StatusOr<uint64_t> session = scratch.put(request.session);
  const absl::StatusOr<uint64_t> options = scratch.put(request.options);
  const absl::StatusOr<uint64_t> name = scratch.put("arctrace_joined_session");
  if (!name.ok()) return name.status();
  const absl::StatusOr<uint64_t> handle =
      thread.call(functions.open, {*shim, functions.open_flags}, scratch.stack());
  if (!handle.ok()) return handle.status();
  if (*handle == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it cannot load the shim: ", loader_error(thread, functions, scratch.stack())));
  }
  const absl::StatusOr<uint64_t> dlsym =
      find_symbol_function(target, functions, thread, scratch);
  if (!dlsym.ok()) return dlsym.status();
  ShimCalls calls(thread, target, request, scratch.stack(), *dlsym, *handle);
  if (!calls.are_complete()) {
    return absl::InternalError("the shim that it has loaded cannot join");
  }
  absl::StatusOr<int> error = calls.join(*session, *options, *name);
  if (error.ok() && *error == EALREADY) {
    error = calls.leave(all_stopped_ns);
    if (error.ok() && *error == 0) error = calls.join(*session, *options, *name);
  }
  if (!error.ok()) return error.status();
  return *error == 0 ? absl::OkStatus()
                     : absl::FailedPreconditionError(join_error(*error, request));
}

absl::Status join_by(StoppedThread& thread, const JoinTarget& target,
                     const JoinRequest& request, const Functions& functions,
                     uint64_t& all_stopped_ns) {
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
  // A call that this thread is in may have failed just now.
  const absl::StatusOr<uint64_t> location =
      thread.call(functions.errno_location, {}, scratch.stack());
  if (!location.ok()) return location.status();
  const absl::StatusOr<int32_t> error = thread.read_word(*location);
  if (!error.ok()) return error.status();
  absl::Status joined =
      load_and_join(target, request, functions, thread, scratch, all_stopped_ns);
  const char* bytes = reinterpret_cast<const char*>(&*error);
  absl::Status restored = thread.write(*location, {bytes, sizeof *error});
  return joined.ok() ? restored : joined;
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
    return absl::Status(why.code(),
                        absl::StrCat("cannot join process ", pid, ": ", why.message()));
  };
  const absl::StatusOr<Functions> functions = find_functions(*target);
  if (!functions.ok()) return refused(functions.status());
  Joined result{target->name};
  Clock::time_point begin;
  {
    absl::StatusOr<StoppedThread> thread = stop_harmless_thread(*target);
    if (!thread.ok()) return refused(thread.status());
    begin = thread->stopped_at();
    absl::Status joined =
        join_by(*thread, *target, request, *functions, result.all_stopped_ns);
    if (!joined.ok()) return refused(joined);
  }
  result.stopped_ns = ns_since(begin);
  return result;
}

}  // namespace arctrace
