// Reads the files in which programs name their generated code for perf: the perf map and
// the jitdump.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace arctrace::recorder {

// Reads a file in which a runtime names the code that it generates, front to back, for
// the parsers of perf maps and jitdumps. The file is untrusted, and its owner may write
// to it or cut it off meanwhile.

// Code that a process generated, as one of its files describes it.
struct NamedCode {
  uint64_t start = 0, size = 0;  // run-time addresses; not empty, without overflow
  uint64_t since_ns = 0;         // CLOCK_MONOTONIC; 0: the file has no times
  std::string_view name;         // at most kCodeNameMax bytes; valid during the call
};

// Takes one name. False: there is no space for it.
using CodeSink = std::function<bool(const NamedCode&)>;

// The counts of CODE_FILE for one file.
struct CodeFileSummary {
  uint64_t names = 0;     // names that the sink took
  uint64_t left_out = 0;  // malformed lines or records, and names that were refused
  bool is_cut = false;    // the file was too large to be read to its end

  void count(bool taken) { ++(taken ? names : left_out); }
};

// Longer names are cut.
inline constexpr size_t kCodeNameMax = 1024;

// Whether the range is not empty and does not wrap around.
inline bool is_code_range(uint64_t start, uint64_t size) {
  return size != 0 && start <= UINT64_MAX - size;
}

class CodeStream {
 public:
  // Reads at most `limit` bytes of `fd`, from its beginning.
  CodeStream(int fd, uint64_t limit);

  // The next bytes, at most `size` of them, fewer at the file's end; valid until the next
  // call. REQUIRES: size <= kPeekMax.
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
  uint64_t start_ = 0;  // the offset in the file of bytes_
  size_t filled_ = 0;
  bool is_cut_ = false;
  std::vector<char> bytes_;
};

// Reads perf-PID.map, in which a runtime names generated code in lines `START SIZE NAME`,
// with hexadecimal numbers. CodeFiles calls this.

// Passes the code of each line to the sink, in the order of the file: later code replaces
// code that it overlaps. There are no times. A last line without a newline counts as
// skipped, because it may be half written.
CodeFileSummary read_perf_map_untrusted(int fd, const CodeSink& sink);

// Reads jit-PID.dump, in which a runtime records the code that it loads and moves, with
// times (Linux, tools/perf/Documentation/jitdump-specification.txt). CodeFiles calls
// this.

// The process to which the dump must belong.
struct JitDumpOwner {
  uint32_t pid = 0;       // as the process sees itself
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC; a dump that was begun earlier is not its own
};

// Passes to the sink the code that was loaded, and moved code at its new address, in the
// order of the file. Times of another clock than CLOCK_MONOTONIC are dropped. A file that
// is not a dump of this byte order and version and of that process counts as one skipped
// entry.
CodeFileSummary read_jit_dump_untrusted(int fd, const JitDumpOwner& owner,
                                        const CodeSink& sink);

}  // namespace arctrace::recorder
