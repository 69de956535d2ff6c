#include "src/recorder/attach/join_process.hpp"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "src/recorder/attach/join_target.hpp"
#include "src/recorder/attach/stopped_thread.hpp"
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
  uint64_t error;  // dlerror(); 0: there is none
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
                      find("dlerror")};
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

// Why arctrace_join_session() did not join.
std::string join_error(int error, const JoinRequest& request) {
  switch (error) {
    case ENOSYS:
      return "its glibc is older than 2.28";
    case EALREADY:
      return "it has been in a recording already";
    case EACCES:
      return absl::StrCat("its user may not write into ", request.session);
    default:
      return absl::StrCat(std::strerror(error), " (", request.session, ")");
  }
}

absl::Status load_and_join(const JoinTarget& target, const JoinRequest& request,
                           const Functions& functions, StoppedThread& thread,
                           Scratch& scratch) {
  const absl::StatusOr<uint64_t> shim = scratch.put(request.shim);
  const absl::StatusOr<uint64_t> session = scratch.put(request.session);
  const absl::StatusOr<uint64_t> options = scratch.put(request.options);
  if (!options.ok()) return options.status();
  const absl::StatusOr<uint64_t> handle =
      thread.call(functions.open, {*shim, functions.open_flags}, scratch.stack());
  if (!handle.ok()) return handle.status();
  if (*handle == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it cannot load the shim: ", loader_error(thread, functions, scratch.stack())));
  }
  const std::string name = request.shim.substr(request.shim.rfind('/') + 1);
  const uint64_t join =
      find_function(target.pid, find_library(target.pid, name), "arctrace_join_session");
  if (join == 0) return absl::InternalError("the shim that it has loaded cannot join");
  const absl::StatusOr<uint64_t> result =
      thread.call(join, {*session, *options}, scratch.stack());
  if (!result.ok()) return result.status();
  const int error = static_cast<int32_t>(*result) - shim::kJoinResult;
  return error == 0 ? absl::OkStatus()
                    : absl::FailedPreconditionError(join_error(error, request));
}

absl::Status join_by(StoppedThread& thread, const JoinTarget& target,
                     const JoinRequest& request, const Functions& functions) {
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
  absl::Status joined = load_and_join(target, request, functions, thread, scratch);
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
  using Clock = std::chrono::steady_clock;
  Joined result{target->name};
  Clock::time_point begin;
  {
    absl::StatusOr<StoppedThread> thread = stop_harmless_thread(*target);
    if (!thread.ok()) return refused(thread.status());
    begin = thread->stopped_at();
    absl::Status joined = join_by(*thread, *target, request, *functions);
    if (!joined.ok()) return refused(joined);
  }
  result.stopped_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  return result;
}

}  // namespace arctrace
