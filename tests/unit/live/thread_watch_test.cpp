// A thread's state and time on the CPU from /proc, whose files are valid, hostile or
// missing.
#include "reader/live/thread_watch.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace arctrace::testing {
namespace {

namespace fs = std::filesystem;
using reader::CpuSource;
using reader::LiveCpu;
using reader::parse_thread_stat_untrusted;
using reader::ThreadWatch;

constexpr uint32_t kOtherSpace = 4026532000, kFirstSpace = 4026531836;
constexpr int64_t kSecond = 1'000'000'000;

std::string stat_text(const std::string& name, char state, uint64_t user, uint64_t system,
                      uint64_t begin) {
  return "100 (" + name + ") " + state + " 1 1 1 0 -1 4194304 0 0 0 0 " +
         std::to_string(user) + " " + std::to_string(system) + " 0 0 20 0 1 0 " +
         std::to_string(begin) + " 0 0\n";
}

// A /proc with one thread, 100 of process 99.
class Proc {
 public:
  Proc() { fs::create_directories(directory()); }
  std::string path() const { return temporary_.path(); }
  fs::path directory() const { return fs::path(path()) / "99/task/100"; }
  void write(const std::string& text) const {
    std::ofstream(directory() / "stat", std::ios::trunc) << text;
  }
  // Writes the thread's files; `seconds`: its time on the CPU.
  void write(char state, uint64_t seconds, uint64_t begin = 7) const {
    const auto per_second = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
    write(stat_text("name", state, seconds * per_second, 0, begin));
  }

 private:
  const TemporaryDirectory temporary_;
};

TEST_CASE("a stat file is read behind the name, whatever that is") {
  for (const char* name : {"cat", "", ") R 9 9", "a b (c) d", "\xff\x1b[2J\n) "}) {
    const auto stat = parse_thread_stat_untrusted(stat_text(name, 'S', 30, 12, 77));
    REQUIRE(stat.has_value());
    CHECK(stat->state == 'S');
    CHECK(stat->cpu_ticks == 42);
    CHECK(stat->begin_ticks == 77);
  }
}

TEST_CASE("what is no stat file is refused") {
  const std::string right = stat_text("cat", 'R', 1, 2, 3);
  for (const std::string& text :
       {std::string(), std::string("100"), std::string(") "), std::string("100 (cat) "),
        right.substr(0, right.size() - 9), std::string(2000, ' '), std::string(2000, ')'),
        stat_text("cat", 'R', 1, 2, 3).replace(0, 9, "100 (cat) RS")}) {
    CHECK_FALSE(parse_thread_stat_untrusted(text).has_value());
  }
  std::string negative = right;
  negative.replace(negative.find(" 1 2 "), 5, " -1 2 ");
  CHECK_FALSE(parse_thread_stat_untrusted(negative).has_value());
}

TEST_CASE("the share of a window, by samples that are not taken too often") {
  const Proc proc;
  ThreadWatch watch(kFirstSpace, kFirstSpace, 5 * kSecond, proc.path());
  proc.write('R', 10);
  const LiveCpu first = watch.poll(99, 100, 0, 0);
  CHECK(first.source == CpuSource::kProc);
  CHECK(first.state == "running or ready");
  CHECK(first.wall_ns == 0);
  CHECK_FALSE(first.is_on_cpu);
  proc.write('S', 12);
  CHECK(watch.poll(99, 100, 0, ThreadWatch::kEveryNs / 2).state == "running or ready");
  const LiveCpu second = watch.poll(99, 100, 0, 4 * kSecond);
  CHECK(second.state == "sleeps");
  CHECK(second.wall_ns == 4 * kSecond);
  CHECK(second.cpu_ns == 2 * kSecond);
  CHECK(second.history == std::vector<uint64_t>{500});
  // The first second that the thread ran is no longer in the window.
  proc.write('D', 13);
  CHECK(watch.poll(99, 100, 0, 8 * kSecond).wall_ns == 8 * kSecond);
  const LiveCpu last = watch.poll(99, 100, 0, 9 * kSecond);
  CHECK(last.wall_ns == 5 * kSecond);
  CHECK(last.cpu_ns == kSecond);
  CHECK(last.history == std::vector<uint64_t>{250, 0});
}

TEST_CASE(
    "another thread, also with the same number, begins anew; one that is gone is not") {
  const Proc proc;
  ThreadWatch watch(kFirstSpace, kFirstSpace, 5 * kSecond, proc.path());
  proc.write('R', 10, 7);
  watch.poll(99, 100, 0, 0);
  proc.write('R', 1, 8);
  CHECK(watch.poll(99, 100, 0, kSecond).wall_ns == 0);
  proc.write('R', 2, 8);
  CHECK(watch.poll(99, 100, 0, 2 * kSecond).cpu_ns == kSecond);
  CHECK(watch.poll(99, 101, 0, 2 * kSecond).source == CpuSource::kNone);
  CHECK(watch.poll(99, 100, 0, 2 * kSecond).wall_ns == 0);
  // The CPU time exceeds the time that has passed.
  proc.write('R', 50, 8);
  CHECK(watch.poll(99, 100, 0, 3 * kSecond).cpu_ns == kSecond);
  fs::remove(proc.directory() / "stat");
  CHECK(watch.poll(99, 100, 0, 4 * kSecond).source == CpuSource::kNone);
}

TEST_CASE("only numbers of our PID namespace are looked for") {
  const Proc proc;
  proc.write('R', 10);
  const auto source = [&](uint32_t ours, uint32_t theirs) {
    ThreadWatch watch(ours, kFirstSpace, kSecond, proc.path());
    return watch.poll(99, 100, theirs, 0).source;
  };
  CHECK(source(kFirstSpace, 0) == CpuSource::kProc);
  CHECK(source(kOtherSpace, kOtherSpace) == CpuSource::kProc);
  CHECK(source(kFirstSpace, kOtherSpace) == CpuSource::kNone);
  CHECK(source(kOtherSpace, 0) == CpuSource::kNone);
  CHECK(source(kOtherSpace, kOtherSpace + 1) == CpuSource::kNone);
  CHECK(source(0, 0) == CpuSource::kNone);
}

TEST_CASE("a file that does not end or never comes does no harm") {
  const Proc proc;
  proc.write(std::string(1 << 20, 'x'));
  ThreadWatch watch(kFirstSpace, kFirstSpace, kSecond, proc.path());
  CHECK(watch.poll(99, 100, 0, 0).source == CpuSource::kNone);
  fs::remove(proc.directory() / "stat");
  fs::create_symlink("/dev/zero", proc.directory() / "stat");
  CHECK(watch.poll(99, 100, 0, kSecond).source == CpuSource::kNone);
  fs::remove(proc.directory() / "stat");
  REQUIRE(::mkfifo((proc.directory() / "stat").c_str(), 0600) == 0);
  CHECK(watch.poll(99, 100, 0, 2 * kSecond).source == CpuSource::kNone);
}

}  // namespace
}  // namespace arctrace::testing
