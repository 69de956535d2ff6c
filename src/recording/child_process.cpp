// Starts the command, waits for it, and passes signals on.
#include "src/recording/child_process.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "src/buffer/clock.hpp"
#include "src/recording/patterns/program_functions.hpp"

namespace arctrace::recording {
namespace {

constexpr std::array kEnds = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

bool snapshot_was_ignored = false;  // SIGUSR2, when this process started

std::string variable_name(const std::string& assignment) {
  return assignment.substr(0, assignment.find('=') + 1);
}

// Whether the file looks like a script whose first line names no interpreter.
bool is_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 80> head;
  file.read(head.data(), head.size());
  const auto end = head.begin() + file.gcount();
  return std::find(head.begin(), std::find(head.begin(), end, '\n'), '\0') ==
         std::find(head.begin(), end, '\n');
}

// Adds the signals that glibc reserves for itself, unless this process ignores them:
// otherwise posix_spawn would have the command ignore them. libc's own functions refuse
// these signals.
void add_internal_signals(sigset_t& set) {
  constexpr int kFirst = 32;
  constexpr int kLast = 33;
  struct KernelAction {
    uintptr_t handler;
    uint64_t rest[3];
  };
  auto* words = reinterpret_cast<unsigned long*>(&set);
  for (int signal = kFirst; signal <= kLast; ++signal) {
    KernelAction action{};
    if (syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof(uint64_t)) == 0 &&
        action.handler == reinterpret_cast<uintptr_t>(SIG_IGN)) {
      continue;
    }
    words[0] |= 1UL << (signal - 1);
  }
}

absl::Status start_error(int error, const std::string& command) {
  const bool is_path = command.find('/') != std::string::npos;
  if (error == ENOENT && is_path && access(command.c_str(), F_OK) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("can't run ", command, ": its interpreter does not exist"));
  }
  return absl::ErrnoToStatus(error, absl::StrCat("can't run ", command));
}

}  // namespace

std::vector<char*> environment_with(const std::vector<std::string>& variables) {
  std::vector<char*> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const std::string& variable : variables) {
      const std::string name = variable_name(variable);
      replaced = replaced || std::strncmp(*entry, name.c_str(), name.size()) == 0;
    }
    if (!replaced) result.push_back(*entry);
  }
  for (const std::string& variable : variables) {
    result.push_back(const_cast<char*>(variable.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

int exit_status_of(const absl::Status& start_error) {
  constexpr int kNotExecutable = 126;
  constexpr int kNotFound = 127;
  if (absl::IsNotFound(start_error)) return kNotFound;
  const bool is_ours =
      absl::IsUnavailable(start_error) || absl::IsResourceExhausted(start_error);
  return is_ours ? 2 : kNotExecutable;
}

void ignore_snapshot_signal() {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGUSR2, &ignore, &before);
  snapshot_was_ignored = before.sa_handler == SIG_IGN;
}

SignalScope::SignalScope() {
  sigemptyset(&handled_);
  for (const int signal : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR2}) {
    sigaddset(&handled_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &handled_, &mask_before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_before_);
  sigaction(SIGXFSZ, &ignore, &size_limit_before_);
}

bool SignalScope::is_end_pending() const {
  sigset_t pending;
  sigpending(&pending);
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&](int signal) { return sigismember(&pending, signal) == 1; });
}

int SignalScope::take_end(uint64_t timeout_ns) const {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : kEnds) sigaddset(&ends, signal);
  const timespec timeout{0, static_cast<long>(timeout_ns)};
  return std::max(0, sigtimedwait(&ends, nullptr, &timeout));
}

SignalScope::~SignalScope() {
  while (take_end() != 0) {
  }
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigaction(SIGXFSZ, &size_limit_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

Deadline::Deadline(uint64_t after_ns, std::function<void()> action)
    : due_ns_(after_ns == 0 ? 0 : read_monotonic_ns() + after_ns),
      action_(std::move(action)) {}

int Deadline::wait_signal(const sigset_t& signals, siginfo_t* info) {
  if (due_ns_ == 0) return sigwaitinfo(&signals, info);
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t now = read_monotonic_ns();
  const uint64_t left = due_ns_ > now ? due_ns_ - now : 0;
  const timespec timeout{static_cast<time_t>(left / kSecond),
                         static_cast<long>(left % kSecond)};
  const int signal = sigtimedwait(&signals, info, &timeout);
  if (signal < 0 && errno == EAGAIN) {
    due_ns_ = 0;
    action_();
  }
  return signal;
}

absl::StatusOr<ChildProcess> ChildProcess::start(
    const std::vector<std::string>& command, const std::vector<std::string>& variables,
    bool output_to_error, const SignalScope& signals) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  std::vector<char*> environment = environment_with(variables);

  // The command starts with the signal mask and dispositions that this process started
  // with.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  short flags = POSIX_SPAWN_SETSIGMASK;
  posix_spawnattr_setsigmask(&attributes, &signals.mask_before());
  sigset_t defaults;
  sigemptyset(&defaults);
  if (!signals.pipe_was_ignored()) sigaddset(&defaults, SIGPIPE);
  if (!signals.size_limit_was_ignored()) sigaddset(&defaults, SIGXFSZ);
  if (!snapshot_was_ignored) sigaddset(&defaults, SIGUSR2);
  add_internal_signals(defaults);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  flags |= POSIX_SPAWN_SETSIGDEF;
  posix_spawnattr_setflags(&attributes, flags);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output_to_error) {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  }
  pid_t pid = 0;
  int error = posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(),
                           environment.data());
  std::string file = error == ENOEXEC ? find_program(command.front()) : "";
  if (!file.empty() && is_text(file)) {  // run by sh, as a shell would
    std::string shell = "/bin/sh";
    arguments.front() = file.data();
    arguments.insert(arguments.begin(), shell.data());
    error = posix_spawn(&pid, shell.c_str(), &actions, &attributes, arguments.data(),
                        environment.data());
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return start_error(error, command.front());
  }
  return ChildProcess(pid);
}

bool ChildProcess::pass_on(int signal, const siginfo_t& info) {
  constexpr int kInterruptsToLeave = 3;
  const bool from_terminal = info.si_code == SI_KERNEL;
  if (!from_terminal) kill(pid_, signal);
  return signal != SIGINT || ++interrupts_ < kInterruptsToLeave;
}

int ChildProcess::wait(const SignalScope& signals,
                       const std::function<void()>& on_snapshot, Deadline deadline) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) return status;
    if (ended < 0 && errno != EINTR) return -1;
    siginfo_t info{};
    const int signal = deadline.wait_signal(signals.handled(), &info);
    if (signal <= 0 || signal == SIGCHLD) continue;
    if (signal == SIGUSR2) {
      on_snapshot();
      continue;
    }
    if (!pass_on(signal, info)) return -1;
  }
}

std::optional<int> ChildProcess::wait_for(const SignalScope& signals,
                                          uint64_t timeout_ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const timespec timeout{static_cast<time_t>(timeout_ns / kSecond),
                         static_cast<long>(timeout_ns % kSecond)};
  siginfo_t info{};
  const int signal = sigtimedwait(&signals.handled(), &info, &timeout);
  if (signal > 0 && signal != SIGCHLD && signal != SIGUSR2 && !pass_on(signal, info)) {
    return -1;
  }
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == pid_) return status;
  if (ended < 0 && errno != EINTR) return -1;
  return std::nullopt;
}

int exit_like(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  prctl(PR_SET_DUMPABLE, 0);  // the core file of the command is enough
  std::fflush(nullptr);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  raise(signal);
  return 128 + signal;  // by default, this signal does not end a process
}

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void wait_for_descendants(const SignalScope& signals,
                          const std::function<void()>& on_snapshot) {
  for (;;) {
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return;  // ECHILD
    if (ended > 0) continue;
    const int signal = sigwaitinfo(&signals.handled(), nullptr);
    if (signal == SIGINT) return;
    if (signal == SIGUSR2) on_snapshot();
  }
}

}  // namespace arctrace::recording
