// The process that keeps a buffer's memory pinned, and how the command starts it.
#include "src/recorder/buffer/memory_keeper.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "src/buffer/open_buffer.hpp"

namespace arctrace::recorder {
namespace {

// The keeper's message to the command that has started it.
struct Answer {
  bool is_kept;
  uint64_t size;  // how many bytes are pinned
  std::array<char, 512> text;
};

// Whether the file still has the buffer's path, its only name.
bool is_there(int fd, const Buffer& buffer) {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_nlink != 0 && status.st_size != 0 &&
         !buffer.is_cut_off();
}

void wait_until_removed(int fd, const Buffer& buffer) {
  // The interval of checks, in case that the kernel gives no watch.
  constexpr int kCheckMs = 10'000;
  const int watch = inotify_init1(IN_CLOEXEC);
  if (watch >= 0) {
    inotify_add_watch(watch, buffer.path().c_str(), IN_ATTRIB | IN_MODIFY);
  }
  while (is_there(fd, buffer)) {
    pollfd waiting{watch, POLLIN, 0};
    poll(&waiting, 1, kCheckMs);
    std::array<char, 4096> events{};
    if ((waiting.revents & POLLIN) != 0 &&
        read(watch, events.data(), events.size()) < 0) {
      return;
    }
  }
}

// From here on the process belongs to no terminal, and has no open files but these.
void leave_command(int fd, int answers) {
  setsid();
  prctl(PR_SET_NAME, "arctrace-keeper");
  if (chdir("/") != 0) return;
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(signal, &ignored, nullptr);
  }
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard <= 2 && nothing >= 0; ++standard) {
    dup2(nothing, standard);
  }
  const auto first = static_cast<unsigned>(std::min(fd, answers));
  const auto last = static_cast<unsigned>(std::max(fd, answers));
  if (first > 3) close_range(3, first - 1, 0);
  if (last > first + 1) close_range(first + 1, last - 1, 0);
  close_range(last + 1, ~0U, 0);
}

// The lock comes first, because two keepers would not know of each other.
absl::StatusOr<uint64_t> pin_here(Buffer& buffer, PinPolicy policy, int fd) {
  int error = take_keeper_lock(fd, 1);
  absl::StatusOr<uint64_t> size = uint64_t{0};
  if (error == 0) size = buffer.lock(policy);
  if (size.ok() && *size != 0) error = take_keeper_lock(fd, *size);
  if (error != 0) return absl::ErrnoToStatus(-error, "locking the buffer's file");
  return size;
}

[[noreturn]] void keep(Buffer& buffer, PinPolicy policy, int fd, int answers) {
  leave_command(fd, answers);
  const absl::StatusOr<uint64_t> size = pin_here(buffer, policy, fd);
  Answer answer{size.ok(), size.value_or(0), {}};
  const std::string text =
      size.ok() ? buffer.warning() : std::string(size.status().message());
  std::strncpy(answer.text.data(), text.c_str(), answer.text.size() - 1);
  const bool is_told = write(answers, &answer, sizeof answer) == sizeof answer;
  close(answers);
  if (is_told && answer.size != 0) wait_until_removed(fd, buffer);
  _exit(0);
}

}  // namespace

absl::StatusOr<std::string> keep_pinned(Buffer& buffer, PinPolicy policy) {
  const int fd = open(buffer.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", buffer.path()));
  const absl::Cleanup closer = [fd] { close(fd); };
  std::array<int, 2> answers{};
  if (pipe2(answers.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  // The process forks twice, so that the keeper is the child of no process that would
  // have to wait for it.
  const pid_t between = fork();
  if (between == 0) {
    const pid_t keeper = fork();
    if (keeper == 0) keep(buffer, policy, fd, answers[1]);
    _exit(0);
  }
  const int fork_error = errno;
  close(answers[1]);
  Answer answer{};
  const bool is_answered =
      between > 0 && read(answers[0], &answer, sizeof answer) == sizeof answer;
  close(answers[0]);
  if (between < 0) return absl::ErrnoToStatus(fork_error, "fork");
  waitpid(between, nullptr, 0);
  if (!is_answered) return absl::InternalError("no process could keep the memory pinned");
  answer.text.back() = '\0';
  if (!answer.is_kept) return absl::ResourceExhaustedError(answer.text.data());
  return std::string(answer.text.data());
}

}  // namespace arctrace::recorder
