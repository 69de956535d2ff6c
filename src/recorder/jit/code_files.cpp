// Finds perf maps and jitdumps of the session's processes, and writes the records of
// their names.
#include "src/recorder/jit/code_files.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#include "src/base/untrusted_bytes.hpp"
#include "src/os/process_facts.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/perf_files.hpp"

namespace arctrace::recorder {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kFirstScanNs = 50 * kMs;
constexpr uint64_t kScanIntervalMaxNs = 60'000 * kMs;
// File systems stamp files with a clock that advances only at timer interrupts.
constexpr uint64_t kStampSlackNs = 20 * kMs;
constexpr int kScansMax = 8;  // living processes that are checked in one pass
constexpr size_t kProcessesMax = 65536;
constexpr size_t kDumpsMax = 4;  // dumps of one process
constexpr size_t kCodeFilesMax = 256;
constexpr size_t kProcTextMax = size_t{8} << 20;  // of a file in /proc/PID
constexpr size_t kFlushBytes = size_t{1} << 20;

uint64_t ns_of(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_nsec);
}

std::string dump_name(uint32_t pid) { return absl::StrCat("jit-", pid, ".dump"); }

bool is_dump_path(std::string_view path, uint32_t pid) {
  return path.starts_with('/') && path.substr(path.rfind('/') + 1) == dump_name(pid);
}

int open_directory(const std::string& path) {
  return open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

// The text of the file `name` in the directory `proc` of a process in /proc; empty: the
// process is gone.
std::string read_proc(int proc, const char* name) {
  std::string text;
  const int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  std::array<char, size_t{16} << 10> part;
  for (;;) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text.size() >= kProcTextMax) break;
    text.append(part.data(), static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

// The jitdump files that the process has mapped executable. The lines of /proc/PID/maps
// are "START-END rwxp OFFSET DEVICE INODE   PATH".
std::vector<std::string> executable_dumps(int proc, uint32_t own_pid) {
  std::vector<std::string> dumps;
  std::istringstream maps(read_proc(proc, "maps"));
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    const size_t modes = line.find(' ');
    if (path == std::string::npos || modes + 3 >= path || line[modes + 3] != 'x')
      continue;
    if (is_dump_path(std::string_view(line).substr(path), own_pid)) {
      dumps.push_back(line.substr(path));
    }
  }
  return dumps;
}

}  // namespace

CodeFiles::CodeFiles(const arctrace_session_header& header)
    : start_{header.start_ticks, header.start_monotonic_ns, header.start_realtime_ns},
      clock_(header.clock),
      pid_namespace_(read_pid_namespace()),
      now_(start_) {}

CodeFiles::~CodeFiles() {
  for (const auto& [id, process] : processes_) {
    for (const CodeFile& file : process.files) close(file.fd);
  }
}

void CodeFiles::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(
      block, [this](uint16_t type, uint64_t ticks, std::span<const std::byte> body) {
        note_record(type, ticks, body);
      });
}

void CodeFiles::note_record(uint16_t type, uint64_t ticks,
                            std::span<const std::byte> body) {
  switch (type) {
    case ARCTRACE_TYPE_PROCESS: {
      if (processes_.size() == kProcessesMax) return;
      const auto facts = load_part_untrusted<arctrace_process_body>(body);
      Process& process = processes_[uint32_t{facts.process}];
      process.is_noted = true;
      process.pid = facts.pid;
      process.uid = facts.uid;
      process.start_ticks = facts.start_ticks;
      return;
    }
    case ARCTRACE_TYPE_PID_NAMESPACE: {
      const auto facts = load_part_untrusted<arctrace_pid_namespace_body>(body);
      if (Process* process = find(facts.process)) process->pid_namespace = facts.inode;
      return;
    }
    case ARCTRACE_TYPE_PROCESS_END: {
      const auto facts = load_part_untrusted<arctrace_process_end_body>(body);
      if (Process* process = find(facts.process)) {
        process->end_ticks = facts.how == ARCTRACE_END_NONE ? 0 : ticks;
      }
      return;
    }
    case ARCTRACE_TYPE_JITDUMP:
      return note_dump(body);
    default:
      return;
  }
}

void CodeFiles::note_dump(std::span<const std::byte> body) {
  const auto facts = load_part_untrusted<arctrace_jitdump_body>(body);
  Process* process = find(facts.process);
  if (process == nullptr || body.size() <= sizeof facts) return;
  const std::span<const std::byte> path = body.subspan(sizeof facts);
  const std::string_view text(reinterpret_cast<const char*>(path.data()),
                              std::min<size_t>(facts.path_size, path.size()));
  process->is_noted = true;
  if (is_dump_path(text, process->pid) && process->dumps.size() < kDumpsMax) {
    process->dumps.emplace_back(text);
  }
}

CodeFiles::Process* CodeFiles::find(uint32_t id) {
  const auto found = processes_.find(id);
  return found == processes_.end() ? nullptr : &found->second;
}

// Interpolates between the session's start and now.
uint64_t CodeFiles::monotonic_ns(uint64_t ticks) const {
  if (now_.ticks <= start_.ticks) return start_.monotonic_ns;
  const double ns_per_tick =
      static_cast<double>(now_.monotonic_ns - start_.monotonic_ns) /
      static_cast<double>(now_.ticks - start_.ticks);
  const auto passed = static_cast<double>(static_cast<int64_t>(ticks - start_.ticks));
  return start_.monotonic_ns +
         static_cast<uint64_t>(static_cast<int64_t>(passed * ns_per_tick));
}

bool CodeFiles::has_our_numbers(const Process& process) const {
  return process.pid_namespace == 0 || process.pid_namespace == pid_namespace_;
}

// The process id, in the recorder's PID namespace, of a process that lives; 0: it has
// none.
uint32_t CodeFiles::find_system_pid(const Process& process) const {
  if (has_our_numbers(process)) return process.pid;
  const std::string wanted = absl::StrCat("pid:[", process.pid_namespace, "]");
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    uint32_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().native(), &pid) ||
        fs::read_symlink(entry.path() / "ns/pid", error).native() != wanted) {
      continue;
    }
    const int proc = open_directory(entry.path());
    if (proc < 0) continue;
    const auto status = parse_process_status(read_proc(proc, "status"));
    close(proc);
    if (status && status->innermost_pid == process.pid) return pid;
  }
  return 0;
}

void CodeFiles::scan(std::span<const uint32_t> living) {
  now_ = take_clock_sync(clock_);
  int scans = 0;
  for (auto at = processes_.begin(); at != processes_.end();) {
    Process& process = at->second;
    if (std::binary_search(living.begin(), living.end(), at->first)) {
      const bool is_due = now_.monotonic_ns >= process.next_scan_ns;
      if (process.next_scan_ns == 0) {
        process.scan_interval_ns = kFirstScanNs;
        process.next_scan_ns = now_.monotonic_ns + kFirstScanNs;
      } else if (is_due && scans++ < kScansMax) {
        process.next_scan_ns = now_.monotonic_ns + process.scan_interval_ns;
        process.scan_interval_ns =
            std::min(2 * process.scan_interval_ns, kScanIntervalMaxNs);
        scan_living(process);
      }
    } else if (process.is_noted || process.end_ticks == 0) {
      scan_gone(process);
      if (process.files.empty()) {
        at = processes_.erase(at);
        continue;
      }
    }
    ++at;
  }
}

void CodeFiles::scan_living(Process& process) {
  if (process.system_pid == 0) process.system_pid = find_system_pid(process);
  if (process.system_pid == 0) return;
  // All files are read through one descriptor, so that they belong to one process even if
  // its number is given to another one meanwhile.
  const int proc = open_directory(absl::StrCat("/proc/", process.system_pid));
  if (proc < 0) return;
  const absl::Cleanup proc_closer = [proc] { close(proc); };
  const auto status = parse_process_status(read_proc(proc, "status"));
  const int root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return;
  const absl::Cleanup root_closer = [root] { close(root); };
  if (!status || status->innermost_pid != process.pid) return;
  process.rights = status->rights;
  for (std::string& path : executable_dumps(proc, process.pid)) {
    if (process.dumps.size() == kDumpsMax) break;
    process.dumps.push_back(std::move(path));
  }
  open_files(process, root, status->rights);
}

void CodeFiles::scan_gone(Process& process) {
  process.is_noted = false;
  if (process.end_ticks == 0) process.end_ticks = now_.ticks;
  // A file that is named after a number of another PID namespace may belong to another
  // process here.
  if (!has_our_numbers(process)) return;
  const int root = open_directory("/");
  if (root < 0) return;
  // The user in the process' record grants no more than that user's files, to which the
  // process gave its own number.
  open_files(process, root, process.rights.value_or(rights_of_user(process.uid)));
  close(root);
}

void CodeFiles::open_files(Process& process, int root, const ProcessRights& rights) {
  std::sort(process.dumps.begin(), process.dumps.end());
  process.dumps.erase(std::unique(process.dumps.begin(), process.dumps.end()),
                      process.dumps.end());
  std::vector<CodeFile> candidates = {
      {absl::StrCat("/tmp/perf-", process.pid, ".map"), ARCTRACE_CODE_PERF_MAP, -1}};
  for (const std::string& path : process.dumps) {
    candidates.push_back({path, ARCTRACE_CODE_JITDUMP, -1});
  }
  for (CodeFile& file : candidates) {
    file.fd = open_for_process_untrusted(root, file.path, rights);
    if (file.fd < 0) continue;
    if (is_written_meanwhile(process, file.fd)) {
      keep_open(process, std::move(file));
    } else {
      close(file.fd);
    }
  }
}

// Whether a file was last written while the process lived.
bool CodeFiles::is_written_meanwhile(const Process& process, int fd) const {
  struct stat status {};
  if (fstat(fd, &status) != 0) return false;
  const auto realtime_ns = [this](uint64_t ticks) {
    return now_.realtime_ns - (now_.monotonic_ns - monotonic_ns(ticks));
  };
  const uint64_t written_ns = ns_of(status.st_mtim);
  if (written_ns + kStampSlackNs < realtime_ns(process.start_ticks)) return false;
  return process.end_ticks == 0 ||
         written_ns <= realtime_ns(process.end_ticks) + kStampSlackNs;
}

// Keeps the file open, instead of one that an earlier check found at the same path.
void CodeFiles::keep_open(Process& process, CodeFile file) {
  for (CodeFile& known : process.files) {
    if (known.path != file.path) continue;
    close(std::exchange(known.fd, file.fd));
    return;
  }
  if (code_file_count_ == kCodeFilesMax) {
    close(file.fd);
    return;
  }
  ++code_file_count_;
  process.files.push_back(std::move(file));
}

void CodeFiles::write(std::span<const uint32_t> living, TraceFile& file,
                      uint64_t bytes_max) {
  scan(living);
  RecordBuilder records;
  uint64_t bytes = 0;
  const auto flush = [&] {
    bytes += records.bytes().size();
    file.write_records(now_.ticks, records.bytes());
    records.clear();
  };
  for (auto& [id, process] : processes_) {
    if (std::binary_search(living.begin(), living.end(), id)) scan_living(process);
    for (const CodeFile& source : process.files) {
      const auto add = [&, process_id = id](const NamedCode& code) {
        if (bytes + records.bytes().size() + code.name.size() > bytes_max) return false;
        records.begin(ARCTRACE_TYPE_CODE, ARCTRACE_WRITER_COLLECTOR, now_.ticks);
        records.body(
            arctrace_code_body{.process = process_id,
                               .name_size = static_cast<uint32_t>(code.name.size()),
                               .start = code.start,
                               .size = code.size,
                               .since_monotonic_ns = code.since_ns});
        records.text(code.name);
        if (records.bytes().size() >= kFlushBytes) flush();
        return true;
      };
      const CodeFileSummary summary =
          source.kind == ARCTRACE_CODE_PERF_MAP
              ? read_perf_map_untrusted(source.fd, add)
              : read_jit_dump_untrusted(
                    source.fd, {process.pid, monotonic_ns(process.start_ticks)}, add);
      if (summary.names + summary.left_out == 0) continue;
      records.begin(ARCTRACE_TYPE_CODE_FILE, ARCTRACE_WRITER_COLLECTOR, now_.ticks);
      const std::string_view path = std::string_view(source.path).substr(0, 4096);
      records.body(
          arctrace_code_file_body{.process = id,
                                  .kind = source.kind,
                                  .names = summary.names,
                                  .left_out = summary.left_out,
                                  .flags = summary.is_cut ? ARCTRACE_CODE_FILE_CUT : 0,
                                  .path_size = static_cast<uint32_t>(path.size())});
      records.text(path);
    }
  }
  flush();
}

}  // namespace arctrace::recorder
