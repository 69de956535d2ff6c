// The files in which the session's processes name the code that they generate (perf maps
// and jitdumps). The recorder finds them while a process lives or when it ends, keeps
// them open, and copies their names into a trace file at the file's end.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/process_rights.hpp"

namespace arctrace::recorder {

// How many bytes of one trace file all names together may take.
inline constexpr uint64_t kCodeNamesBytesMax = uint64_t{64} << 20;

class CodeFiles {
 public:
  // `header`: the header of the session's buffer.
  explicit CodeFiles(const arctrace_session_header& header);
  CodeFiles(const CodeFiles&) = delete;
  CodeFiles& operator=(const CodeFiles&) = delete;
  ~CodeFiles();

  // Notes the processes and their jitdumps by the records of a block of definitions.
  void note_untrusted(std::span<const std::byte> block);

  // Searches for files of the processes that are gone since the last call, and of some of
  // those that live, at intervals that double up to a minute. `living`: identities,
  // sorted.
  void scan(std::span<const uint32_t> living);

  // Checks all processes that live, then writes the CODE and CODE_FILE records of all
  // files, which take about `bytes_max` of `file` at most. May be called for several
  // files.
  void write(std::span<const uint32_t> living, TraceFile& file,
             uint64_t bytes_max = kCodeNamesBytesMax);

 private:
  struct CodeFile {
    std::string path;  // as the process sees it
    arctrace_code_file_kind kind;
    int fd;
  };
  struct Process {
    uint32_t pid = 0, uid = 0;   // as the process sees itself
    uint32_t pid_namespace = 0;  // inode; 0: the first namespace
    uint32_t system_pid = 0;     // its number in our PID namespace; 0: not found yet
    std::optional<ProcessRights> rights;  // as the kernel had them when last seen
    uint64_t start_ticks = 0;
    uint64_t end_ticks = 0;  // of its PROCESS_END, or when it was seen gone; 0: it lives
    uint64_t next_scan_ns = 0, scan_interval_ns = 0;
    bool is_noted = false;  // there were definitions since the last check
    std::vector<std::string> dumps;
    std::vector<CodeFile> files;
  };
  using Processes = std::map<uint32_t, Process>;

  void note_record(uint16_t type, uint64_t ticks, std::span<const std::byte> body);
  void note_dump(std::span<const std::byte> body);
  Process* find(uint32_t id);  // nullptr: it is not noted
  uint64_t monotonic_ns(uint64_t ticks) const;
  bool has_our_numbers(const Process& process) const;
  uint32_t find_system_pid(const Process& process) const;
  void scan_living(Process& process);
  void scan_gone(Process& process);
  void open_files(Process& process, int root, const ProcessRights& rights);
  bool is_written_meanwhile(const Process& process, int fd) const;
  void keep_open(Process& process, CodeFile file);

  const ClockSync start_;
  const uint32_t clock_;
  const uint32_t pid_namespace_;  // the recorder's
  ClockSync now_;
  size_t code_file_count_ = 0;  // open files, of all processes
  Processes processes_;
};

}  // namespace arctrace::recorder
