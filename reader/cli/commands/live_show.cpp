#include "reader/cli/commands/live_show.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/record/trace_owner.hpp"
#include "reader/live/live_model.hpp"
#include "reader/live/live_reader.hpp"
#include "reader/live/thread_watch.hpp"
#include "reader/streams/nameless_file.hpp"
#include "reader/terminal/live_screen.hpp"
#include "src/buffer/clock.hpp"
#include "src/os/process_facts.hpp"
#include "src/recording/snapshot_file.hpp"

namespace arctrace::cli {
namespace {

constexpr uint64_t kShowEveryNs = 500'000'000;
constexpr int64_t kWindowNs = 5'000'000'000;

// A name that no file has yet.
std::string snapshot_name() {
  for (int i = 1;; ++i) {
    std::string name = absl::StrCat("arctrace.live.", i);
    if (access(name.c_str(), F_OK) != 0) return name;
  }
}

std::string take_live_snapshot(const Buffer& buffer) {
  recording::SnapshotFileOptions file;
  file.output.path = snapshot_name();
  file.command_line = {"arctrace", "live"};
  file.is_live = true;
  recording::Events nobody;
  const auto written = recording::write_buffer_to_file(buffer, file, nobody);
  return written.ok()
             ? absl::StrCat("snapshot: ", file.output.path)
             : absl::StrCat("no snapshot: ", std::string(written.status().message()));
}

// Where the session does not say what the thread in that row does, /proc may.
void look_at_thread(reader::ThreadWatch& watch, size_t row, reader::LiveModel& model) {
  if (row >= model.threads().size() || model.is_paused()) return;
  const reader::LiveThreadRow& thread = model.threads()[row];
  if (thread.cpu.source == reader::CpuSource::kKernel) return;
  model.set_cpu(row, watch.look(thread.pid, thread.tid, thread.pid_namespace,
                                static_cast<int64_t>(read_monotonic_ns())));
}

}  // namespace

void KeptOutput::redirect() {
  input_ = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  error_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  kept_ = ::open(reader::temporary_directory().c_str(),
                 O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(kept_ >= 0 ? kept_ : nothing, STDERR_FILENO);
  ::close(nothing);
}

void KeptOutput::restore() {
  if (error_ < 0) return;
  ::dup2(input_, STDIN_FILENO);
  ::dup2(error_, STDERR_FILENO);
  ::close(std::exchange(input_, -1));
  ::close(std::exchange(error_, -1));
}

KeptOutput::~KeptOutput() {
  restore();
  if (kept_ < 0) return;
  std::array<char, 4096> piece;
  off_t at = 0;
  for (ssize_t got = 0; (got = ::pread(kept_, piece.data(), piece.size(), at)) > 0;) {
    const ssize_t written =
        ::write(STDERR_FILENO, piece.data(), static_cast<size_t>(got));
    if (written <= 0) break;
    at += written;
  }
  ::close(kept_);
}

absl::StatusOr<std::unique_ptr<terminal::Screen>> open_live_screen() {
  absl::StatusOr<std::unique_ptr<terminal::Screen>> screen = terminal::Screen::open();
  if (screen.ok()) return screen;
  return absl::FailedPreconditionError(
      absl::StrCat("live: ", std::string(screen.status().message()),
                   "; --plain prints lines instead"));
}

absl::StatusOr<int> show_session(terminal::Screen& screen, const std::string& title,
                                 WatchedSession& session, recording::Recording* own,
                                 const recording::SignalScope& signals,
                                 std::optional<recording::Recording::End>& ended) {
  absl::StatusOr<reader::SessionCopy> copy = session.make_copy();
  if (!copy.ok()) return copy.status();
  const std::unique_ptr<ActingWithRights> rights = act_as_owner(session.buffer().path());
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, own != nullptr);
  reader::LiveModel model(kWindowNs);
  terminal::LiveScreen shown(screen, model, title,
                             [&] { return take_live_snapshot(session.buffer()); });
  reader::ThreadWatch watch(read_pid_namespace(), kFirstPidNamespace, kWindowNs);
  uint64_t next_ns = 0;
  for (bool is_over = false;;) {
    const uint64_t now_ns = read_monotonic_ns();
    if (!is_over && now_ns >= next_ns) {
      if (own != nullptr) {
        own->poll();
        ended = own->wait_for_end(signals, 0);
        is_over = ended.has_value();
        if (is_over) own->close();
        if (is_over && ended->is_interrupted) return kStatusInterrupted;
      } else {
        is_over = session.is_over();
        if (!is_over) session.follow_files(reader.copy());
      }
      if (absl::Status s = reader.tick(model, is_over); !s.ok()) return s;
      if (is_over) shown.set_over();
      model.set_buffer(reader.copy().buffer(), reader.copy().session().block_count);
      next_ns = read_monotonic_ns() + kShowEveryNs;
    }
    if (!is_over) look_at_thread(watch, shown.thread(), model);
    shown.draw();
    const uint64_t left_ns = next_ns - std::min(next_ns, read_monotonic_ns());
    const int key = screen.key(static_cast<int>(left_ns / 1'000'000) + 1);
    if (!shown.handle(key)) return 0;
    const bool passes_signals_on =
        own != nullptr && own->has_child() && !ended.has_value();
    if (!passes_signals_on && signals.take_end() != 0) return kStatusInterrupted;
  }
}

}  // namespace arctrace::cli
