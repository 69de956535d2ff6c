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
#include "reader/cli/options/buffer_options.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/traced_options.hpp"
#include "reader/cli/record/child_process.hpp"
#include "reader/cli/record/file_symbols.hpp"
#include "reader/cli/record/join_processes.hpp"
#include "reader/cli/record/kernel_part.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/cli/record/recording_warnings.hpp"
#include "reader/render/output.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recorder/drain/collector_lock.hpp"

namespace arctrace::cli {
namespace {

constexpr const char* kJoinedGroup = "Recording with --pid";

struct AttachOptions {
  std::string name;
  OutputFile output;
  std::string definitions;   // an earlier collector's file; empty: none
  uint64_t duration_ns = 0;  // 0: without end
  PinPolicy pin = PinPolicy::kAuto;
  bool respawn = false;  // another one takes the place of a collector that dies
  FlightOptions flight;
  RecordOptions traced;  // of processes that join; its pids: these
};

absl::StatusOr<ResumedSession> earlier_collector(const AttachOptions& options,
                                                 const Buffer& buffer) {
  ResumedSession resumed{true};
  if (options.definitions.empty()) return resumed;
  auto definitions = read_chunks_untrusted(options.definitions, buffer.header(), false);
  if (!definitions.ok()) return definitions.status();
  resumed.definitions = *std::move(definitions);
  return resumed;
}

// The programs for the kernel's records, if the session was made for these. Without the
// rights for that the session is collected without them, with a warning.
KernelPart kernel_part(const Buffer& buffer) {
  const BufferView& view = buffer.view();
  if (buffer.map() < 0 || view.geometry().cpu_count == 0) return {};
  std::string why = kernel_writer_obstacle();
  if (why.empty()) {
    const uint32_t events = IpcAtomics::load_relaxed(view.control().kernel_wanted) &
                            ARCTRACE_KERNEL_EVENTS_ALL;
    absl::StatusOr<KernelPart> part =
        load_kernel_part(buffer, events, KernelRequests::Processes::kThatJoin);
    if (part.ok()) return *std::move(part);
    why = std::string(part.status().message());
  }
  reader::print_warning(absl::StrCat("collecting without the kernel's records: ", why));
  return {};
}

absl::StatusOr<int> attach(const AttachOptions& options) {
  absl::StatusOr<Buffer> buffer = open_session(options.name);
  if (!buffer.ok()) return buffer.status();
  arctrace_control& control = buffer->view().control();
  const CollectorLock lock(buffer->view());
  if (!lock.is_held()) {
    return absl::FailedPreconditionError(
        absl::StrCat("session ", options.name, " already has a collector, pid ",
                     IpcAtomics::load_relaxed(control.collector_pid)));
  }
  const std::vector<pid_t>& pids = options.traced.pids;
  JoinRequest request;
  if (!pids.empty()) {
    absl::StatusOr<JoinRequest> made = join_request(options.traced, *buffer);
    if (!made.ok()) return made.status();
    request = *std::move(made);
  }
  absl::StatusOr<ResumedSession> resumed = earlier_collector(options, *buffer);
  if (!resumed.ok()) return resumed.status();
  if (absl::Status pinned = buffer->pin(options.pin); !pinned.ok()) return pinned;
  if (!buffer->warning().empty()) reader::print_warning(buffer->warning());
  reclaim_blocks(*buffer);
  KernelPart kernel = kernel_part(*buffer);
  // Definitions that were written so far may be in the file of another collector:
  // programs repeat them.
  demand_definitions(buffer->view());

  CollectorSummary summary;
  size_t joined = 0;
  {
    const SignalScope signals;
    FlightOptions flight = options.flight;
    flight.recorder = recorder_facts();
    const absl::StatusOr<std::unique_ptr<Recorder>> made =
        make_recorder(*buffer, std::move(flight), options.output, *std::move(resumed));
    if (!made.ok()) return made.status();
    Recorder* const recorder = made->get();
    const std::vector<pid_t> joining = join_processes(pids, request, kernel.writer.get());
    joined = joining.size();
    if (joined == 0 && !pids.empty()) return 2;
    const std::string program = joined == 0 ? "" : program_of(joining.front());
    if (absl::Status published = recorder->publish(); !published.ok()) return published;
    reader::print_message(absl::StrCat("collecting session ", options.name, " into ",
                                       options.output.path, "; Ctrl-C ends it",
                                       IpcAtomics::load_relaxed(control.gate) == 0
                                           ? "; recording is off until arctrace start"
                                           : ""));
    // A session is also destroyed by cutting off its file.
    wait_for_end(signals, options.duration_ns, *recorder, [&buffer] {
      return buffer->is_cut_off() || access(buffer->path().c_str(), F_OK) != 0;
    });
    // Other programs of the session may have patterns of their own, whose bits are set
    // too; one that is clear is of no function.
    warn_of_unmatched(options.traced.filter,
                      IpcAtomics::load_relaxed(control.patterns_matched), program);
    const uint32_t gate = IpcAtomics::load_relaxed(control.gate);
    if (kernel.writer != nullptr) {
      close_gate(buffer->view());
      kernel.detach();
    }
    summary = recorder->finish();
    set_gate(buffer->view(), gate);  // the session goes on
    store_symbols(*recorder, options.output, signals, summary);
  }
  warn_of_missing_room(buffer->view());
  warn_of_untraced(summary);
  warn_of_identities(summary);
  reader::print_message(recording_summary_line(summary, options.output.path));
  return summary.file_error == 0 && joined == pids.size() ? 0 : 2;
}

// The file of a collector that takes another one's place: FILE, FILE.1, FILE.2 ...
std::string nth_file(const std::string& file, uint32_t n) {
  return n == 0 ? file : absl::StrCat(file, ".", n);
}

// Waits until the collector in the process `pid` ends, and passes on the signals that end
// a recording. Returns its wait status.
int wait_for_collector(pid_t pid, const SignalScope& signals, bool& is_asked_to_end) {
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

// Keeps a collector in a process of its own, so that whatever kills it costs the session
// no more than what is lost until the next one is there.
absl::StatusOr<int> supervise(AttachOptions options) {
  constexpr int kQuickDeathsMax = 5;
  constexpr uint64_t kQuickNs = 1'000'000'000;
  const std::string file = options.output.path;
  if (file == "-") {
    return absl::InvalidArgumentError("attach: --respawn needs a file, not -o -");
  }
  const SignalScope signals;
  int quick_deaths = 0;
  for (uint32_t n = 0;; ++n) {
    options.output.path = nth_file(file, n);
    const uint64_t begin_ns = read_monotonic_ns();
    const pid_t supervisor = getpid();
    const pid_t pid = fork();
    if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
    if (pid == 0) {
      // So that it ends as if it were told to if nobody would tell it any more.
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
    options.definitions = options.output.path;
    options.traced.pids.clear();  // they have joined
  }
}

}  // namespace

Runner add_attach(CLI::App& root) {
  auto options = std::make_shared<AttachOptions>();
  CLI::App* app =
      root.add_subcommand("attach", "collect a session's records into a file");
  add_session_option(*app, options->name);
  add_output_option(*app, options->output);
  add_no_symbols_option(*app, options->output);
  add_definitions_option(*app, options->definitions);
  add_snapshot_options(*app, options->flight);
  add_duration_option(*app, options->duration_ns, "collecting");
  add_pin_option(*app, options->pin);
  app->add_flag("--respawn", options->respawn,
                "collect in a process of its own; if that is killed, another one goes on "
                "in FILE.1, FILE.2 ..., with the definitions of the one before");
  add_joined_option(*app, options->traced.pids,
                    "first make these processes, which run already, join the session, of "
                    "which they are part until it is destroyed: x86-64 only");
  const size_t about_collecting = app->get_options().size();
  add_traced_options(*app, options->traced);
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
      if (!options->traced.pids.empty() || option->count() == 0 ||
          option->get_group() != kJoinedGroup) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("attach: ", option->get_name(), " applies with --pid only"));
    }
    if (const auto problem = find_problem(options->traced.filter)) {
      reader::print_message("attach: " + problem->text());
      return 2;
    }
    return options->respawn ? supervise(*options) : attach(*options);
  };
}

}  // namespace arctrace::cli
