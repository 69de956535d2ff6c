// The files in which the session's processes name the code that they generate: found
// while the processes live or when they end, held open, and copied into a trace file at
// its end.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace {

// What all names of one trace file may take of it.
inline constexpr uint64_t kCodeNamesBytesMax = uint64_t{64} << 20;

class CodeFiles {
 public:
  // `header`: of the session's buffer.
  explicit CodeFiles(const arctrace_session_header& header);
  CodeFiles(const CodeFiles&) = delete;
  CodeFiles& operator=(const CodeFiles&) = delete;
  ~CodeFiles();

  // Notes the processes that a block of definitions tells of.
  void note_untrusted(std::span<const std::byte> block);

  // Looks at processes that are gone since the last look, and at some of those that live:
  // at each again when it has become twice as old. `living`: identities, sorted.
  void look(std::span<const uint32_t> living);

  // Looks at all that live, then writes CODE and CODE_FILE records of all files, which
  // take about `bytes_max` of `file`. May be called for several files.
  void write(std::span<const uint32_t> living, TraceFile& file,
             uint64_t bytes_max = kCodeNamesBytesMax);

 private:
  struct Held {
    std::string path;  // as the process sees it
    arctrace_code_file_kind kind;
    int fd;
  };
  struct Process {
    uint32_t pid = 0, uid = 0;   // as it sees itself
    uint32_t pid_namespace = 0;  // inode; 0: the first
    uint32_t system_pid = 0;     // by which we know it; 0: not found yet
    uint64_t start_ticks = 0;
    uint64_t end_ticks = 0;  // as it said, or when it was seen gone; 0: it lives
    uint64_t next_look_ns = 0, look_interval_ns = 0;
    bool is_noted = false;  // since it was looked at
    std::vector<std::string> dumps;
    std::vector<Held> files;
  };
  using Processes = std::map<uint32_t, Process>;

  void note_record(uint16_t type, uint64_t ticks, std::span<const std::byte> body);
  void note_dump(std::span<const std::byte> body);
  Process* find(uint32_t id);  // nullptr: it is not noted
  uint64_t monotonic_ns(uint64_t ticks) const;
  bool has_our_numbers(const Process& process) const;
  uint32_t find_system_pid(const Process& process) const;
  void look_at_living(Process& process);
  void look_at_gone(Process& process);
  void open_files(Process& process, int root, uint32_t uid);
  bool is_its_own(const Process& process, uint32_t uid, int fd) const;
  void hold(Process& process, Held file);

  const ClockSync start_;
  const uint32_t clock_;
  const uint32_t pid_namespace_;  // ours
  ClockSync now_;
  size_t held_ = 0;  // files, of all processes
  Processes processes_;
};

}  // namespace arctrace
