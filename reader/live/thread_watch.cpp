#include "reader/live/thread_watch.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace arctrace::reader {
namespace {

// Numbers of proc_pid_stat(5), counted from the field after the name, which is the third.
constexpr size_t kUserTicks = 14 - 3, kSystemTicks = 15 - 3, kBeginTicks = 22 - 3;

std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  for (size_t from = 0, end = 0; end != std::string_view::npos; from = end + 1) {
    end = text.find(' ', from);
    fields.push_back(text.substr(from, end == std::string_view::npos ? end : end - from));
  }
  return fields;
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

uint64_t ticks_to_ns(uint64_t ticks) {
  const long per_second = ::sysconf(_SC_CLK_TCK);
  return per_second <= 0 ? 0
                         : ticks * (1'000'000'000 / static_cast<uint64_t>(per_second));
}

uint64_t since(uint64_t now, uint64_t before) { return now - std::min(now, before); }

}  // namespace

std::optional<ThreadStat> parse_thread_stat_untrusted(std::string_view text) {
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> fields = fields_of(text.substr(name_end + 2));
  if (fields.size() <= kBeginTicks || fields[0].size() != 1) return std::nullopt;
  const std::optional<uint64_t> user = number(fields[kUserTicks]),
                                system = number(fields[kSystemTicks]),
                                begin = number(fields[kBeginTicks]);
  if (!user.has_value() || !system.has_value() || !begin.has_value()) return std::nullopt;
  return ThreadStat{fields[0][0], *user + *system, *begin};
}

std::string_view thread_state_text(char state) {
  switch (state) {
    case 'R':
      return "running or ready";
    case 'S':
    case 'I':
      return "sleeps";
    case 'D':
      return "sleeps uninterruptibly, as for a disk";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a debugger";
    case 'Z':
    case 'X':
      return "gone";
    default:
      return "in a state that is not known";
  }
}

std::optional<ThreadStat> ThreadWatch::read_stat(uint32_t pid, uint32_t tid) const {
  const std::string path = absl::StrCat(proc_, "/", pid, "/task/", tid, "/stat");
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t got = ::read(file, text.data(), text.size());
  ::close(file);
  if (got <= 0) return std::nullopt;
  return parse_thread_stat_untrusted({text.data(), static_cast<size_t>(got)});
}

const LiveCpu& ThreadWatch::poll(uint32_t pid, uint32_t tid, uint32_t pid_namespace,
                                 int64_t now_ns) {
  const bool is_same = pid == pid_ && tid == tid_;
  if (is_same && now_ns - polled_ns_ < kEveryNs) return cpu_;
  if (!is_same) samples_.clear();
  pid_ = pid;
  tid_ = tid;
  polled_ns_ = now_ns;
  cpu_ = {};
  const bool has_our_numbers = can_read_ && pid_namespace == pid_namespace_;
  const std::optional<ThreadStat> stat =
      has_our_numbers ? read_stat(pid, tid) : std::nullopt;
  if (stat.has_value()) {
    add(*stat, now_ns);
  } else {
    samples_.clear();
  }
  return cpu_;
}

void ThreadWatch::add(const ThreadStat& stat, int64_t now_ns) {
  // Another thread may have got the number.
  if (stat.begin_ticks != begin_ticks_) samples_.clear();
  begin_ticks_ = stat.begin_ticks;
  samples_.push_back({now_ns, ticks_to_ns(stat.cpu_ticks)});
  while (samples_.size() > 2 && now_ns - samples_[1].time_ns >= window_ns_) {
    samples_.pop_front();
  }
  cpu_.source = CpuSource::kProc;
  cpu_.state = std::string(thread_state_text(stat.state));
  const Sample& first = samples_.front();
  cpu_.wall_ns = static_cast<uint64_t>(now_ns - first.time_ns);
  // A tick of the CPU clock that began before the first sample may be counted after it.
  cpu_.cpu_ns = std::min(since(samples_.back().cpu_ns, first.cpu_ns), cpu_.wall_ns);
  for (size_t i = 1; i < samples_.size(); ++i) {
    const auto wall =
        static_cast<uint64_t>(samples_[i].time_ns - samples_[i - 1].time_ns);
    const uint64_t cpu = since(samples_[i].cpu_ns, samples_[i - 1].cpu_ns);
    cpu_.history.push_back(wall == 0 ? 0 : std::min<uint64_t>(cpu * 1000 / wall, 1000));
  }
}

}  // namespace arctrace::reader
