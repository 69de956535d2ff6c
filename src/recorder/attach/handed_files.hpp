// Hands descriptors of files to a process that does not see these files, such as one in a
// container. They go through a pair of sockets that a borrowed thread makes: the recorder
// takes one end of it, so that no name and no namespace is involved.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "src/recorder/attach/stopped_thread.hpp"

namespace arctrace::recorder {

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
