// Hands descriptors of files to a process that does not see these files, such as one in a
// container. They go through a pair of sockets that a borrowed thread makes: the recorder
// takes one end of it, so that no name and no namespace is involved.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/attach/stopped_thread.hpp"

namespace arctrace::recorder {

// The files that a process needs to join, open in this process. They are closed with this
// object.
class FilesToHand {
 public:
  // Error: one of them cannot be opened.
  static absl::StatusOr<FilesToHand> open(const std::string& library,
                                          const std::string& shim,
                                          const std::string& buffer);
  FilesToHand(FilesToHand&& other) noexcept;
  FilesToHand& operator=(FilesToHand&&) = delete;
  FilesToHand(const FilesToHand&) = delete;
  FilesToHand& operator=(const FilesToHand&) = delete;
  ~FilesToHand();

  // Their order.
  static constexpr size_t kLibrary = 0;
  static constexpr size_t kShim = 1;
  static constexpr size_t kBuffer = 2;
  absl::Span<const int> descriptors() const { return descriptors_; }

 private:
  FilesToHand() = default;
  std::vector<int> descriptors_;
};

// The path by which the thread `tid` opens a descriptor that it has. The loader takes an
// object that was loaded by the same path for the same file, and a number is used for
// many: so each of our files has a `spelling` of its own. Later a debugger looks for the
// file at that path, where its own process has no such thread; at /proc/self/fd/N it
// might find a pipe, and wait.
std::string path_of_handed(pid_t tid, const char* spelling, int number);
inline constexpr char kLibrarySpelling[] = "/fd/";
inline constexpr char kShimSpelling[] = "/./fd/";

// Addresses of functions of the process; 0: it has none.
struct HandFunctions {
  uint64_t socketpair = 0;
  uint64_t recvmsg = 0;
  uint64_t close = 0;
};

// Memory of the process for the calls.
struct HandMemory {
  uint64_t data = 0;   // kHandBytes, which may be written
  uint64_t stack = 0;  // the end of a stack
};
inline constexpr uint64_t kHandBytes = 256;

// Descriptors of the process, which are closed with this object.
class HandedFiles {
 public:
  // Hands over `files`, descriptors of this process, at most four. Error: nothing was
  // handed over.
  static absl::StatusOr<HandedFiles> hand_over(StoppedThread& thread, pid_t pid,
                                               const HandFunctions& functions,
                                               const HandMemory& memory,
                                               absl::Span<const int> files);
  HandedFiles(HandedFiles&& other) noexcept;
  HandedFiles& operator=(HandedFiles&&) = delete;
  HandedFiles(const HandedFiles&) = delete;
  HandedFiles& operator=(const HandedFiles&) = delete;
  ~HandedFiles();

  int operator[](size_t index) const { return numbers_[index]; }

 private:
  HandedFiles(StoppedThread& thread, uint64_t close, uint64_t stack)
      : thread_(&thread), close_(close), stack_(stack) {}
  void add(int number) { numbers_.push_back(number); }

  StoppedThread* thread_;
  uint64_t close_;
  uint64_t stack_;
  std::vector<int> numbers_;
};

}  // namespace arctrace::recorder
