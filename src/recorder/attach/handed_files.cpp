// Passes descriptors with SCM_RIGHTS through a socket of the process, which
// pidfd_getfd() opens here.
#include "src/recorder/attach/handed_files.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/buffer/open_buffer.hpp"
#include "src/recorder/attach/process_status.hpp"

namespace arctrace::recorder {
namespace {

constexpr size_t kFilesMax = 4;

// What recvmsg() is given in the process' memory. Pointers are addresses there.
struct Received {
  msghdr message;
  iovec part;
  int ends[2];  // socketpair()'s
  char byte;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFilesMax * sizeof(int))> control;
};
static_assert(sizeof(Received) <= kHandBytes);

template <class T>
T* pointer_there(uint64_t base, size_t offset) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(base + offset));
}

absl::Status write_received(const StoppedThread& thread, uint64_t at,
                            const Received& received) {
  return thread.write(at, {reinterpret_cast<const char*>(&received), sizeof received});
}

absl::StatusOr<int> take_descriptor(pid_t pid, int number) {
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return absl::ErrnoToStatus(errno, "pidfd_open");
  const absl::Cleanup closer = [process] { close(process); };
  const auto taken = static_cast<int>(syscall(SYS_pidfd_getfd, process, number, 0));
  if (taken < 0) return absl::ErrnoToStatus(errno, "taking a socket of it");
  return taken;
}

absl::Status send_descriptors(int socket, absl::Span<const int> files) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFilesMax * sizeof(int))> control{};
  char byte = 0;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(head), files.data(), files.size() * sizeof(int));
  // The number came from the process: it may be another socket, for which nobody waits.
  if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
    return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "sending descriptors to it");
}

}  // namespace

absl::StatusOr<HandedFiles> HandedFiles::hand_over(StoppedThread& thread, pid_t pid,
                                                   const HandFunctions& functions,
                                                   const HandMemory& memory,
                                                   absl::Span<const int> files) {
  if (functions.socketpair == 0 || functions.recvmsg == 0 || functions.close == 0 ||
      files.size() > kFilesMax) {
    return absl::FailedPreconditionError("its libc has no socketpair");
  }
  Received received{};
  const auto call = [&](uint64_t function, const std::array<uint64_t, 6>& args) {
    return thread.call(function, args, memory.stack);
  };
  const uint64_t ends = memory.data + offsetof(Received, ends);
  const absl::StatusOr<uint64_t> made =
      call(functions.socketpair, {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends});
  if (!made.ok()) return made.status();
  const absl::StatusOr<int32_t> first = thread.read_word(ends);
  const absl::StatusOr<int32_t> second = thread.read_word(ends + sizeof(int));
  if (!second.ok()) return second.status();
  if (static_cast<int32_t>(*made) != 0) {
    return absl::ResourceExhaustedError("it can make no socket");
  }
  // Their ends are closed as descriptors are, when they are not needed any more.
  HandedFiles sockets(thread, functions.close, memory.stack);
  sockets.add(*first);
  sockets.add(*second);
  const absl::StatusOr<int> ours = take_descriptor(pid, *first);
  if (!ours.ok()) return ours.status();
  const absl::Cleanup closer = [&ours] { close(*ours); };
  if (absl::Status sent = send_descriptors(*ours, files); !sent.ok()) return sent;

  received.part = {pointer_there<void>(memory.data, offsetof(Received, byte)), 1};
  received.message.msg_iov = pointer_there<iovec>(memory.data, offsetof(Received, part));
  received.message.msg_iovlen = 1;
  received.message.msg_control =
      pointer_there<void>(memory.data, offsetof(Received, control));
  received.message.msg_controllen = received.control.size();
  if (absl::Status put = write_received(thread, memory.data, received); !put.ok()) {
    return put;
  }
  const absl::StatusOr<uint64_t> got = call(
      functions.recvmsg,
      {static_cast<uint64_t>(*second), memory.data, MSG_CMSG_CLOEXEC | MSG_DONTWAIT});
  if (!got.ok()) return got.status();
  const uint64_t control = memory.data + offsetof(Received, control);
  const absl::StatusOr<int32_t> length =
      thread.read_word(control + offsetof(cmsghdr, cmsg_len));
  if (!length.ok()) return length.status();
  const size_t arrived = static_cast<int64_t>(*got) != 1 || *length < 0 ||
                                 static_cast<size_t>(*length) < CMSG_LEN(0)
                             ? 0
                             : (static_cast<size_t>(*length) - CMSG_LEN(0)) / sizeof(int);
  HandedFiles handed(thread, functions.close, memory.stack);
  for (size_t i = 0; i < std::min(arrived, files.size()); ++i) {
    const absl::StatusOr<int32_t> number =
        thread.read_word(control + CMSG_LEN(0) + i * sizeof(int));
    if (!number.ok()) return number.status();
    handed.add(*number);
  }
  if (handed.numbers_.size() != files.size()) {
    return absl::ResourceExhaustedError(
        "it takes no more descriptors (its limit of open files)");
  }
  return handed;
}

absl::StatusOr<FilesToHand> FilesToHand::open(const std::string& library,
                                              const std::string& shim,
                                              const std::string& buffer) {
  FilesToHand files;
  for (const std::string& path : {library, shim}) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return absl::ErrnoToStatus(errno, path);
    files.descriptors_.push_back(fd);
  }
  uint64_t size = 0;
  const int fd = is_pinned_map(buffer.c_str())
                     ? open_pinned_map(buffer.c_str(), size)
                     : ::open(buffer.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, buffer);
  files.descriptors_.push_back(fd);
  return files;
}

FilesToHand::FilesToHand(FilesToHand&& other) noexcept
    : descriptors_(std::exchange(other.descriptors_, {})) {}

FilesToHand::~FilesToHand() {
  for (const int fd : descriptors_) close(fd);
}

std::string path_of_handed(pid_t tid, const char* spelling, int number) {
  const std::string numbers = text_of(read_status(tid), "NSpid");
  return absl::StrCat("/proc/self/task/", numbers.substr(numbers.rfind('\t') + 1),
                      spelling, number);
}

HandedFiles::HandedFiles(HandedFiles&& other) noexcept
    : thread_(other.thread_),
      close_(other.close_),
      stack_(other.stack_),
      numbers_(std::exchange(other.numbers_, {})) {}

HandedFiles::~HandedFiles() {
  for (const int number : numbers_) {
    (void)thread_->call(close_, {static_cast<uint64_t>(number)}, stack_);
  }
}

}  // namespace arctrace::recorder
