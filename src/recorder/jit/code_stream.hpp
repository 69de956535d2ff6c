// The files in which runtimes name the code that they generate, read front to back.
// Somebody may be writing or cutting them meanwhile, and may have put anything into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace arctrace {

// Code that a process generated, as one of its files says.
struct NamedCode {
  uint64_t start = 0, size = 0;  // run-time addresses; not empty, without overflow
  uint64_t since_ns = 0;         // CLOCK_MONOTONIC; 0: no time is told
  std::string_view name;         // at most kCodeNameMax bytes; valid during the call
};

// Takes one; false: there is no room for it.
using CodeSink = std::function<bool(const NamedCode&)>;

// What has been read of such a file.
struct CodeFileSummary {
  uint64_t names = 0;     // that the sink took
  uint64_t left_out = 0;  // lines or records that are no name, or that it did not take
  bool is_cut = false;    // the file is larger than is read

  void count(bool taken) { ++(taken ? names : left_out); }
};

// Longer names are cut.
inline constexpr size_t kCodeNameMax = 1024;

// Whether these bytes are not none, and end within the address space.
inline bool is_code_range(uint64_t start, uint64_t size) {
  return size != 0 && start <= UINT64_MAX - size;
}

class CodeStream {
 public:
  // Reads at most `limit` bytes of `fd`, from its beginning.
  CodeStream(int fd, uint64_t limit);

  // The next bytes, as many of `size` as there are, valid until the next call. REQUIRES:
  // size <= kPeekMax.
  std::string_view peek(size_t size);
  void skip(uint64_t size);

  uint64_t offset() const { return offset_; }
  // Whether the limit, not the file, ended the reading.
  bool is_cut() const { return is_cut_; }

  static constexpr size_t kPeekMax = size_t{64} << 10;

 private:
  void fill();

  const int fd_;
  const uint64_t limit_;
  uint64_t offset_ = 0;
  uint64_t start_ = 0;  // of what is held
  size_t held_ = 0;
  bool is_cut_ = false;
  std::vector<char> bytes_;
};

}  // namespace arctrace
