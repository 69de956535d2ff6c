// Measures by how much a switch between two processes gets slower while the kernel
// writer, or ftrace, records it. Prints "NAME LEAST MEDIAN" for each way, in ns per
// switch; the ways take turns, in another order each time. Argument: how many turns.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"

namespace {

using arctrace::recorder::Buffer;
using arctrace::recorder::KernelWriter;

constexpr int kBatches = 20;  // of a turn, of which the least counts
constexpr int kRounds = 300;  // of a batch, two switches each

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "kernel_bench: %s\n", why.c_str());
  std::exit(1);
}

// Two processes on one CPU that hand a token over by pipes: each hand-over wakes the
// other one and is a switch.
class Pair {
 public:
  Pair() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN) - 1), &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    if (pipe(there_.data()) != 0 || pipe(back_.data()) != 0) fail("no pipe");
    child_ = fork();
    if (child_ != 0) return;
    for (;;) {
      wait_for(there_[0]);
      hand_over(back_[1]);
    }
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  uint32_t child() const { return static_cast<uint32_t>(child_); }

  // The least ns of a switch in some batches.
  double switch_ns() const {
    double least = 1e9;
    for (int batch = 0; batch < kBatches; ++batch) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kRounds; ++i) {
        hand_over(there_[1]);
        wait_for(back_[0]);
      }
      const std::chrono::duration<double, std::nano> passed =
          std::chrono::steady_clock::now() - start;
      least = std::min(least, passed.count() / (2 * kRounds));
    }
    return least;
  }

 private:
  static void hand_over(int to) {
    const char token = 0;
    if (write(to, &token, 1) != 1) _exit(1);
  }
  static void wait_for(int from) {
    char token = 0;
    if (read(from, &token, 1) != 1) _exit(1);
  }

  std::array<int, 2> there_{};
  std::array<int, 2> back_{};
  pid_t child_ = -1;
};

// Has the kernel itself (ftrace) record some events during its lifetime.
class Ftrace {
 public:
  explicit Ftrace(std::vector<std::string> events) : events_(std::move(events)) {
    for (const std::string& event : events_) set(event, '1');
  }
  Ftrace(const Ftrace&) = delete;
  Ftrace& operator=(const Ftrace&) = delete;
  ~Ftrace() {
    for (const std::string& event : events_) set(event, '0');
    std::ofstream(kRoot + "/trace", std::ios::trunc) << '\n';
  }

  // Whether ftrace is available; mounts tracefs at its usual place.
  static bool is_there() {
    struct stat status {};
    const std::string events = kRoot + "/events/sched/sched_switch/enable";
    if (stat(events.c_str(), &status) == 0) return true;
    return mount("nodev", kRoot.c_str(), "tracefs", 0, nullptr) == 0 &&
           stat(events.c_str(), &status) == 0;
  }

 private:
  static inline const std::string kRoot = "/sys/kernel/tracing";
  static void set(const std::string& event, char on) {
    std::ofstream(kRoot + "/events/sched/" + event + "/enable") << on << '\n';
  }
  std::vector<std::string> events_;
};

struct Way {
  const char* name;
  std::function<double()> measure;
  std::vector<double> ns{};
};

double recorded(const Pair& pair, const Buffer& buffer) {
  absl::StatusOr<KernelWriter> writer = KernelWriter::attach(buffer, 0);
  if (!writer.ok()) fail(std::string(writer.status().message()));
  writer->trace_process(static_cast<uint32_t>(getpid()), true);
  writer->trace_process(pair.child(), true);
  return pair.switch_ns();
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 21;
  if (const std::string reason = arctrace::recorder::kernel_writer_obstacle();
      !reason.empty()) {
    fail(reason);
  }
  arctrace::recorder::BufferOptions options;
  options.in_kernel = true;
  options.mode = ARCTRACE_MODE_STOP;
  options.buffer_size = uint64_t{256} << 20;
  options.cpu_count = arctrace::recorder::possible_cpus().value_or(1);
  absl::StatusOr<arctrace::recorder::Buffer> buffer =
      arctrace::recorder::Buffer::create(options);
  if (!buffer.ok()) fail(std::string(buffer.status().message()));
  arctrace::recorder::set_gate(buffer->view(), ARCTRACE_GATE_KERNEL);
  const Pair pair;
  std::vector<Way> ways{{"none", [&] { return pair.switch_ns(); }},
                        {"ours/switch+waking", [&] { return recorded(pair, *buffer); }}};
  if (Ftrace::is_there()) {
    ways.push_back({"ftrace/switch", [&] {
                      const Ftrace on({"sched_switch"});
                      return pair.switch_ns();
                    }});
    ways.push_back({"ftrace/switch+waking", [&] {
                      const Ftrace on({"sched_switch", "sched_waking"});
                      return pair.switch_ns();
                    }});
  }
  std::mt19937 random(std::random_device{}());
  std::vector<size_t> order(ways.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int turn = 0; turn < turns; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) ways[i].ns.push_back(ways[i].measure());
  }
  if (arctrace::recorder::cpu_losses(buffer->view()) != 0)
    fail("records were lost: too many turns");
  for (Way& way : ways) {
    std::sort(way.ns.begin(), way.ns.end());
    std::printf("%s %.1f %.1f\n", way.name, way.ns.front(), way.ns[way.ns.size() / 2]);
  }
}
