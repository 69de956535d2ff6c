// Runs the search for names in a process of its own, and appends its answer to the file.
#include "src/recording/file_symbols.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/replay/used_symbols.hpp"
#include "reader/trace/key_scan.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/buffer/clock.hpp"
#include "src/recorder/jit/process_rights.hpp"
#include "src/recording/events.hpp"

namespace arctrace::recording {
namespace {

using Payloads = std::vector<std::vector<std::byte>>;

// The limits of CPU time, which does not depend on the machine's other load: until the
// file is no longer searched, until no further module is opened, and until the search is
// ended from outside. The last limit is for files that are slow to read.
constexpr uint64_t kScanCpuNs = 400'000'000;
constexpr uint64_t kSoftCpuNs = 1'000'000'000;
constexpr uint64_t kHardCpuNs = 2'000'000'000;
constexpr uint64_t kWallNs = 15'000'000'000;
constexpr size_t kAnswerBytesMax = size_t{64} << 20;

uint64_t time_on(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

bool write_whole(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

// The head of the search's answer, before its payloads; each of these follows its size.
struct AnswerHead {
  uint32_t payloads = 0;
  uint32_t is_partial = 0;
};

// The root directories of processes that may be in containers.
std::vector<std::string> roots_of(const std::vector<pid_t>& pids) {
  constexpr size_t kRootsMax = 8;
  std::vector<std::string> roots;
  for (const pid_t pid : pids) {
    if (roots.size() < kRootsMax) roots.push_back(absl::StrCat("/proc/", pid, "/root"));
  }
  return roots;
}

// The search, in its own process. Returns whether it is done.
bool search(const std::string& path, const Recorded& recorded, int answer) {
  const auto within = [](uint64_t limit_ns) {
    return [limit_ns] { return time_on(CLOCK_PROCESS_CPUTIME_ID) < limit_ns; };
  };
  const absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return false;
  const absl::StatusOr<std::unique_ptr<reader::Input>> input = reader::open_file(path);
  if (!input.ok()) return false;
  reader::UsedKeys keys, locks;
  // The paths of modules come from the processes: root reads for them only what their
  // user may read.
  std::optional<recorder::ActingWithRights> as_user;
  if (recorded.owner >= 0) {
    as_user.emplace(recorder::rights_of_user(static_cast<uid_t>(recorded.owner)));
    if (!as_user->is_acting()) return false;
  }
  const absl::StatusOr<bool> all =
      reader::scan_keys_untrusted(**input, *trace, within(kScanCpuNs), keys, &locks);
  if (!all.ok()) return false;
  const reader::SymbolOptions options{.other_roots = roots_of(recorded.pids)};
  reader::UsedSymbols used = reader::find_used_symbols(
      trace->definitions(), keys, reader::WithSource::kNo, options, within(kSoftCpuNs));
  reader::add_lock_symbols(trace->definitions(), locks, reader::WithSource::kNo, options,
                           within(kSoftCpuNs), used);
  const bool is_partial = !*all || used.is_partial;
  const Payloads payloads =
      reader::encode_symbols(used.modules, is_partial ? ARCTRACE_SYMBOLS_PARTIAL : 0);
  const AnswerHead head{static_cast<uint32_t>(payloads.size()), is_partial};
  if (!write_whole(answer, std::as_bytes(std::span(&head, 1)))) return false;
  for (const std::vector<std::byte>& payload : payloads) {
    const auto size = static_cast<uint32_t>(payload.size());
    if (!write_whole(answer, std::as_bytes(std::span(&size, 1))) ||
        !write_whole(answer, payload)) {
      return false;
    }
  }
  return true;
}

struct Answer {
  Payloads payloads;
  bool is_partial = false;
};

// The answer; nullopt: it is not whole.
std::optional<Answer> parse(std::span<const std::byte> bytes) {
  AnswerHead head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  Answer answer;
  answer.is_partial = head.is_partial != 0;
  for (uint32_t i = 0; i < head.payloads; ++i) {
    uint32_t size = 0;
    if (bytes.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    if (bytes.size() < size) return std::nullopt;
    answer.payloads.emplace_back(bytes.begin(), bytes.begin() + size);
    bytes = bytes.subspan(size);
  }
  return answer;
}

// The process that searches, and the pipe that its answer comes from.
class Search {
 public:
  Search(const std::string& path, const Recorded& recorded) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      const bool is_done = getppid() == parent && search(path, recorded, ends[1]);
      _exit(is_done ? 0 : 1);
    }
    close(ends[1]);
    answer_ = ends[0];
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  ~Search() {
    if (answer_ >= 0) close(answer_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  // Waits for the answer. Returns why there is none; else empty.
  std::string wait(const SignalScope& signals, std::vector<std::byte>& bytes) const {
    constexpr int kPauseMs = 20;
    constexpr size_t kPiece = size_t{64} << 10;
    if (pid_ <= 0 || answer_ < 0) return "there is no process to find them";
    clockid_t cpu{};
    if (clock_getcpuclockid(pid_, &cpu) != 0) cpu = CLOCK_MONOTONIC;
    const uint64_t begin_ns = read_monotonic_ns();
    const uint64_t cpu_limit_ns =
        cpu == CLOCK_MONOTONIC ? begin_ns + kHardCpuNs : kHardCpuNs;
    const bool was_asked = signals.is_end_pending();
    for (;;) {
      pollfd file{answer_, POLLIN, 0};
      const int ready = poll(&file, 1, kPauseMs);
      if (ready > 0) {
        const size_t size = bytes.size();
        bytes.resize(size + kPiece);
        const ssize_t n = read(answer_, bytes.data() + size, kPiece);
        bytes.resize(size + static_cast<size_t>(std::max<ssize_t>(n, 0)));
        if (n == 0) return "";
        if (n < 0 && errno != EINTR) return std::strerror(errno);
        if (bytes.size() > kAnswerBytesMax) return "there are too many";
      }
      if (!was_asked && signals.is_end_pending()) return "interrupted";
      if (time_on(cpu) > cpu_limit_ns || read_monotonic_ns() - begin_ns > kWallNs) {
        return "it would have taken too long";
      }
    }
  }

 private:
  pid_t pid_ = -1;
  int answer_ = -1;
};

// Whether the path is still that of the file which was written.
bool is_file_of(const std::string& path, uint64_t bytes) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         static_cast<uint64_t>(facts.st_size) == bytes;
}

void tell(const std::string& what, const OutputFile& output, Events& events) {
  events.tell(absl::StrCat(what, "; arctrace archive ", reader::escaped(output.path),
                           " makes a file that has all"));
}

void tell_left_out(const std::string& why, const OutputFile& output, Events& events) {
  tell(absl::StrCat("the names of functions are not in ", reader::escaped(output.path),
                    ": ", why),
       output, events);
}

}  // namespace

void store_symbols(recorder::Recorder& recorder, const OutputFile& output,
                   const Recorded& recorded, const SignalScope& signals,
                   recorder::CollectorSummary& summary, Events& events) {
  if (!output.has_symbols || summary.file_error != 0 || summary.totals.records == 0 ||
      !is_file_of(output.path, summary.file_bytes)) {
    return;
  }
  std::vector<std::byte> bytes;
  std::string problem;
  std::optional<Answer> answer;
  {
    const Search search(output.path, recorded);
    problem = search.wait(signals, bytes);
    if (problem.empty()) answer = parse(bytes);
  }
  if (problem.empty() && !answer) problem = "they could not be found";
  if (!problem.empty()) return tell_left_out(problem, output, events);
  if (const int error = recorder.write_symbols(answer->payloads); error != 0) {
    return tell_left_out(std::strerror(error), output, events);
  }
  for (const std::vector<std::byte>& payload : answer->payloads) {
    summary.file_bytes += sizeof(arctrace_chunk_header) + payload.size();
  }
  if (answer->is_partial) {
    tell(
        "names of functions may be missing in the file: there was no time to search all "
        "of it",
        output, events);
  }
}

}  // namespace arctrace::recording
