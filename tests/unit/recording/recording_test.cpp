// The course of a recording: messages and their order, and the outcome of the buffer and
// the file. The test plays the child: the shell runs this program.
#include "src/recording/recording.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recording/events.hpp"
#include "tests/support/temporary_directory.hpp"

namespace arctrace::recording {
namespace {

using testing::TemporaryDirectory;

class HeardEvents : public Events {
 public:
  void warn(const std::string& line) override { add("warning: " + line); }
  void tell(const std::string& line) override { add(line); }

  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  bool has(const std::string& part) {
    for (const std::string& line : lines()) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }

 private:
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

struct Made {
  explicit Made(std::vector<std::string> command) {
    options.command = std::move(command);
    options.output.path = directory.path() + "/a.data";
    options.output.has_symbols = false;
    options.buffer.buffer_size = 1 << 20;
    options.buffer.pin = recorder::PinPolicy::kNo;
  }
  Recording& create(Recording::Collecting collecting = Recording::Collecting::kIntoFile) {
    absl::StatusOr<std::unique_ptr<Recording>> made =
        Recording::create(options, collecting, events);
    REQUIRE_MESSAGE(made.ok(), made.status().ToString());
    recording = *std::move(made);
    return *recording;
  }

  TemporaryDirectory directory;
  RecordOptions options;
  HeardEvents events;
  const SignalScope signals;
  std::unique_ptr<Recording> recording;
};

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST_CASE("a command's recording has its calls, and its buffer is gone afterwards") {
  Made made({"sh", "-c", "exit 3"});
  Recording& recording = made.create();
  const std::string buffer = recording.buffer().path();
  CHECK(exists(buffer));
  CHECK(IpcAtomics::load_relaxed(recording.buffer().view().control().gate) == 0);
  REQUIRE(recording.start(false, made.signals).ok());
  CHECK(recording.is_published());
  CHECK(exists(made.options.output.path));
  const int status = recording.wait_for_command(made.signals, [] {});
  CHECK(WEXITSTATUS(status) == 3);
  CHECK_FALSE(recording.is_finished());
  const recorder::CollectorSummary& summary = recording.finish(made.signals);
  CHECK(summary.processes == 1);
  CHECK(summary.living == 0);
  CHECK(summary.totals.records > 10);
  CHECK_FALSE(is_cut_off(summary));
  made.recording.reset();
  CHECK_FALSE(exists(buffer));
  for (const std::string& line : made.events.lines()) FAIL_CHECK(line);

  absl::StatusOr<reader::Trace> trace = reader::Trace::open(made.options.output.path);
  REQUIRE(trace.ok());
  CHECK(trace->session().finished);
  CHECK(trace->session().child_wait_status == 3 << 8);
}

TEST_CASE("a command that can't be started leaves neither buffer nor file") {
  Made made({"./there-is-no-such-program"});
  Recording& recording = made.create();
  const std::string buffer = recording.buffer().path();
  const absl::Status started = recording.start(false, made.signals);
  CHECK(exit_status_of(started) == 127);
  CHECK_FALSE(recording.has_child());
  made.recording.reset();
  CHECK_FALSE(exists(buffer));
  CHECK(std::filesystem::is_empty(made.directory.path()));
}

TEST_CASE("after its duration a recording has ended, and the command goes on") {
  Made made({"sh", "-c", "read line; exit 5"});
  made.options.duration_ns = 50'000'000;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int input = dup(STDIN_FILENO);
  REQUIRE(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
  Recording& recording = made.create();
  REQUIRE(recording.start(false, made.signals).ok());
  dup2(input, STDIN_FILENO);
  bool has_ended = false;
  const int status = recording.wait_for_command(made.signals, [&] {
    has_ended = recording.is_finished();
    CHECK(recording.summary().living == 1);
    CHECK(IpcAtomics::load_relaxed(recording.buffer().view().control().gate) == 0);
    CHECK(write(ends[1], "x\n", 2) == 2);
  });
  CHECK(has_ended);
  CHECK(WEXITSTATUS(status) == 5);
  for (const int end : {ends[0], ends[1], input}) close(end);
}

TEST_CASE("a recording that nobody collects is a ring, and says how its command ended") {
  Made made({"sh", "-c", "exit 4"});
  Recording& recording = made.create(Recording::Collecting::kNot);
  CHECK(recording.buffer().view().geometry().mode == ARCTRACE_MODE_OVERWRITE);
  REQUIRE(recording.start(true, made.signals).ok());
  std::optional<Recording::End> end;
  while (!end) {
    recording.poll();
    end = recording.wait_for_end(made.signals, 10'000'000);
  }
  CHECK(WEXITSTATUS(end->wait_status) == 4);
  CHECK_FALSE(end->is_interrupted);
  CHECK(IpcAtomics::load_relaxed(recording.buffer().view().control().gate) != 0);
  recording.close();
  CHECK(IpcAtomics::load_relaxed(recording.buffer().view().control().gate) == 0);
  CHECK_FALSE(exists(made.options.output.path));
}

TEST_CASE("classes that are off stay off") {
  Made made({"true"});
  made.options.off = ARCTRACE_GATE_FUNCTIONS;
  Recording& recording = made.create();
  REQUIRE(recording.start(false, made.signals).ok());
  CHECK(IpcAtomics::load_relaxed(recording.buffer().view().control().gate) ==
        (ARCTRACE_GATE_ALL & ~uint32_t{ARCTRACE_GATE_FUNCTIONS}));
  recording.wait_for_command(made.signals, [] {});
  CHECK(recording.finish(made.signals).totals.records == 0);
}

TEST_CASE("a session is adopted once, and goes on when its collector ends") {
  Made made({"true"});
  recorder::BufferOptions buffer = made.options.buffer;
  buffer.file = made.directory.path() + "/session";
  absl::StatusOr<recorder::Buffer> session = recorder::Buffer::create(buffer);
  REQUIRE(session.ok());
  recorder::set_gate(session->view(), ARCTRACE_GATE_ALL);
  made.options.command.clear();
  made.options.session = session->path();
  made.options.duration_ns = 1;
  AdoptOptions how;
  how.pin = recorder::PinPolicy::kNo;
  absl::StatusOr<std::unique_ptr<Recording>> adopted =
      Recording::adopt(made.options, how, made.events);
  REQUIRE_MESSAGE(adopted.ok(), adopted.status().ToString());
  CHECK(Recording::adopt(made.options, how, made.events)
            .status()
            .message()
            .find("already has a collector, pid ") != std::string::npos);
  REQUIRE((*adopted)->join().ok());
  (*adopted)->wait(made.signals);
  CHECK((*adopted)->finish(made.signals).file_error == 0);
  CHECK(IpcAtomics::load_relaxed(session->view().control().gate) == ARCTRACE_GATE_ALL);
  adopted->reset();
  CHECK(exists(session->path()));
  CHECK(exists(made.options.output.path));
  CHECK(Recording::adopt(made.options, how, made.events).ok());
}

TEST_CASE("what a recording goes on without is told") {
  Made made({"true"});
  made.options.kernel.use = KernelRecording::kPerf;
  made.options.kernel.events = ARCTRACE_KERNEL_SYSCALLS;
  absl::StatusOr<std::unique_ptr<Recording>> recording =
      Recording::create(made.options, Recording::Collecting::kIntoFile, made.events);
  if (!recording.ok()) {  // perf events are not permitted here
    CHECK(recording.status().message().find("--kernel=perf: ") == 0);
    return;
  }
  CHECK(made.events.has(
      "warning: --kernel=perf: recording without --syscalls, which need BPF"));
}

TEST_CASE("no process joins: each has its line") {
  Made made({});
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  made.options.pids = {child};
  Recording& recording = made.create();
  const absl::Status joined = recording.join();
  CHECK_FALSE(joined.ok());
  CHECK(recording.joined().empty());
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace arctrace::recording
