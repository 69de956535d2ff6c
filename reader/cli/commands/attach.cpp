// arctrace attach: collects the records of an existing session into a file.
#include <absl/strings/str_cat.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_options.hpp"
#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/render/output.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/join_processes.hpp"
#include "src/recording/recording.hpp"

namespace arctrace::cli {
namespace {

using recording::Recording;

constexpr const char* kJoinedGroup = "Recording with --pid";

struct AttachOptions {
  // `session`: the session that is collected. Options of what is recorded of programs
  // apply to the programs of `pids`.
  recording::RecordOptions record;
  recording::AdoptOptions adopt;
  bool respawn = false;  // another one takes the place of a collector that dies
};

absl::StatusOr<int> attach(const AttachOptions& options) {
  recording::RecordOptions record = options.record;
  const recording::SignalScope signals;
  PrintedEvents events;
  record.flight.recorder = recording::recorder_facts();
  const absl::StatusOr<std::unique_ptr<Recording>> adopted =
      Recording::adopt(record, options.adopt, events);
  if (!adopted.ok()) return adopted.status();
  Recording& recording = **adopted;
  if (absl::Status joined = recording.join(); !joined.ok()) {
    if (absl::IsAborted(joined)) return 2;  // each failure was printed
    return joined;
  }
  const std::vector<pid_t>& joined = recording.joined();
  const std::string program = joined.empty() ? "" : recording::program_of(joined.front());
  const BufferView& view = recording.buffer().view();
  arctrace_control& control = view.control();
  reader::print_message(absl::StrCat("collecting session ", record.session, " into ",
                                     record.output.path, "; Ctrl-C ends it",
                                     IpcAtomics::load_relaxed(control.gate) == 0
                                         ? "; recording is off until arctrace start"
                                         : ""));
  recording.wait(signals);
  // Other programs of the session may have patterns of their own, whose bits are set too.
  // But a clear bit means that no function matched.
  warn_of_unmatched(record.filter, IpcAtomics::load_relaxed(control.patterns_matched),
                    program);
  const recorder::CollectorSummary& summary = recording.finish(signals);
  warn_of_missing_memory(view);
  warn_of_untraced(summary);
  warn_of_identities(summary);
  if (summary.overwritten != 0) tell_kept(record.output.path, record.keep_ns);
  reader::print_message(recording_summary_line(summary, record.output.path));
  return summary.file_error == 0 && joined.size() == record.pids.size() ? 0 : 2;
}

// The file of a collector that takes over from another one: FILE, FILE.1, FILE.2 ...
std::string nth_file(const std::string& file, uint32_t n) {
  return n == 0 ? file : absl::StrCat(file, ".", n);
}

// Waits until the collector in the process `pid` ends, and passes on the signals that end
// a recording. Returns its wait status.
int wait_for_collector(pid_t pid, const recording::SignalScope& signals,
                       bool& is_asked_to_end) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return status;
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals.handled(), &info);
    if (signal <= 0 || signal == SIGCHLD) continue;
    is_asked_to_end |= signal != SIGUSR2;
    if (info.si_code != SI_KERNEL) kill(pid, signal);  // else the terminal has sent it
  }
}

// Keeps a collector in a process of its own. Whatever kills it costs the session only the
// records that are lost until the next collector runs.
absl::StatusOr<int> supervise(AttachOptions options) {
  constexpr int kQuickDeathsMax = 5;
  constexpr uint64_t kQuickNs = 1'000'000'000;
  const std::string file = options.record.output.path;
  if (file == "-") {
    return absl::InvalidArgumentError("attach: --respawn needs a file, not -o -");
  }
  const recording::SignalScope signals;
  int quick_deaths = 0;
  for (uint32_t n = 0;; ++n) {
    options.record.output.path = nth_file(file, n);
    const uint64_t begin_ns = read_monotonic_ns();
    const pid_t supervisor = getpid();
    const pid_t pid = fork();
    if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
    if (pid == 0) {
      // If the supervisor dies, the collector gets SIGTERM and ends cleanly.
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != supervisor) return 0;
      return attach(options);
    }
    bool is_asked_to_end = false;
    const int status = wait_for_collector(pid, signals, is_asked_to_end);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (is_asked_to_end) return 128 + WTERMSIG(status);
    quick_deaths = read_monotonic_ns() - begin_ns < kQuickNs ? quick_deaths + 1 : 0;
    if (quick_deaths == kQuickDeathsMax) {
      return absl::AbortedError("attach: the collector dies again and again");
    }
    reader::print_warning(absl::StrCat("the collector was ended by signal ",
                                       WTERMSIG(status), "; another one goes on in ",
                                       nth_file(file, n + 1)));
    options.adopt.definitions = options.record.output.path;
    options.record.pids.clear();  // their processes have joined
  }
}

}  // namespace

Runner add_attach(CLI::App& root) {
  auto options = std::make_shared<AttachOptions>();
  CLI::App* app =
      root.add_subcommand("attach", "collect a session's records into a file");
  add_session_option(*app, options->record.session);
  add_output_option(*app, options->record.output);
  add_no_symbols_option(*app, options->record.output);
  add_definitions_option(*app, options->adopt.definitions);
  add_snapshot_options(*app, options->record.flight);
  add_duration_option(*app, options->record.duration_ns, "collecting");
  add_pin_option(*app, options->adopt.pin);
  add_collector_options(*app, options->record.flight.runs);
  app->add_flag("--respawn", options->respawn,
                "collect in a process of its own; if that is killed, another one goes on "
                "in FILE.1, FILE.2 ..., with the definitions of the one before");
  add_joined_option(*app, options->record.pids,
                    "first make these processes, which run already, join the session, of "
                    "which they are part until it is destroyed: x86-64 only");
  const size_t about_collecting = app->get_options().size();
  add_traced_options(*app, options->record);
  for (size_t i = about_collecting; i < app->get_options().size(); ++i) {
    app->get_options()[i]->group(kJoinedGroup);
  }
  app->footer(
      "Collecting ends at SIGINT or SIGTERM, after which the session goes on, or when\n"
      "the session is destroyed. If a collector died, attach takes its place. In\n"
      "overwrite mode the only output are snapshots, at SIGUSR2 or\n"
      "arctrace_snapshot(), and at the end what the buffer holds.");
  return [options, app]() -> absl::StatusOr<int> {
    for (const CLI::Option* option : app->get_options()) {
      if (!options->record.pids.empty() || option->count() == 0 ||
          option->get_group() != kJoinedGroup) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("attach: ", option->get_name(), " applies with --pid only"));
    }
    if (const auto problem = recording::find_problem(options->record.filter)) {
      reader::print_error("attach: " + problem->text());
      return 2;
    }
    return options->respawn ? supervise(*options) : attach(*options);
  };
}

}  // namespace arctrace::cli
