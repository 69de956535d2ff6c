// Runs the programs of src/cost_probe/ with and without a recording, and compares their
// times (hook_costs.hpp).
#include <absl/cleanup/cleanup.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <utility>

#include "reader/replay/hook_costs.hpp"
#include "reader/trace/trace.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/events.hpp"
#include "src/recording/hook_costs.hpp"
#include "src/recording/session_variables.hpp"

namespace arctrace::recording {
namespace {

// The limit is far more than a program takes; on a machine that is so busy nothing can be
// measured.
constexpr int kTimeoutMs = 2000;
constexpr uint64_t kBufferSize = uint64_t{4} << 20;
// A program's calls are taken in groups of so many, and the fastest quarter of the groups
// counts: the others were disturbed, or waited for memory that was touched for the first
// time.
constexpr size_t kGroupCalls = 64;
constexpr size_t kFastestShare = 4;
constexpr double kPsPerSecond = 1e12;

// The time of one call in ps, by enum arctrace_hook_kind.
using CallTimes = std::map<uint32_t, double>;

// Runs the program with `variables` in its environment, and returns what it prints; empty
// if it cannot be run, or does not end in time.
std::string output_of(const std::string& program,
                      const std::vector<std::string>& variables) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return {};
  const absl::Cleanup close_read = [&] { close(pipe[0]); };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name = program;
  std::array<char*, 2> arguments = {name.data(), nullptr};
  std::vector<char*> environment = environment_with(variables);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr,
                                arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe[1]);
  if (error != 0) return {};
  std::string text;
  bool has_ended = false;
  std::array<char, 512> bytes{};
  pollfd readable{pipe[0], POLLIN, 0};
  while (poll(&readable, 1, kTimeoutMs) > 0) {
    const ssize_t got = read(pipe[0], bytes.data(), bytes.size());
    has_ended = got == 0;
    if (got <= 0) break;
    text.append(bytes.data(), static_cast<size_t>(got));
  }
  if (!has_ended) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return has_ended && status == 0 ? text : std::string();
}

CallTimes times_printed(const std::string& text) {
  CallTimes times;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    uint32_t kind = 0;
    double ps = 0;
    if (absl::SimpleAtoi(words.first, &kind) && absl::SimpleAtod(words.second, &ps)) {
      times[kind] = ps;
    }
  }
  return times;
}

// The calls of one kind, in order.
struct Calls {
  std::vector<std::pair<uint64_t, uint64_t>> ticks;  // of their entries and exits
};

// The kind of the call with this frame key; 0: it is not measured.
uint32_t kind_of(uint64_t key, bool is_patched, const reader::Definitions& definitions,
                 reader::ProcessIndex process, int64_t time_ns) {
  if ((key & ARCTRACE_FRAME_NAME_BIT) == 0) {
    const reader::Module* module = definitions.module_at(process, key, time_ns);
    return reader::HookCosts::kind_of_call(key, module == nullptr ? 0 : module->hook_kind,
                                           is_patched);
  }
  const auto name = definitions.name(process, static_cast<uint32_t>(key));
  if ((key & ARCTRACE_FRAME_LIBRARY_BIT) == 0) {
    return name == "scope" ? ARCTRACE_HOOK_API : 0;
  }
  return name == "labs" ? ARCTRACE_HOOK_LIBRARY_CALL : 0;
}

std::map<uint32_t, Calls> calls_of(reader::Trace& trace, bool is_patched) {
  std::map<uint32_t, Calls> calls;
  uint32_t kind = 0;  // of the open call
  uint64_t entered = 0;
  const absl::Status read = trace.read([&](const reader::Record& record) {
    if (record.type == ARCTRACE_TYPE_ENTER) {
      const uint64_t key = load_part_untrusted<arctrace_frame_body>(record.body).key;
      const reader::Thread* thread = trace.definitions().thread(record.thread);
      kind = thread == nullptr ? 0
                               : kind_of(key, is_patched, trace.definitions(),
                                         thread->process, record.time_ns);
      entered = record.ticks;
    } else if (record.type == ARCTRACE_TYPE_EXIT && kind != 0) {
      calls[kind].ticks.emplace_back(entered, record.ticks);
      kind = 0;
    }
    return true;
  });
  return read.ok() ? calls : std::map<uint32_t, Calls>();
}

// The times of one recorded call of a kind, in ps: from its entry to its exit, and to the
// next one's entry.
struct RecordedCall {
  double inside_ps, period_ps;
};

std::optional<RecordedCall> recorded_call(const Calls& calls, double ps_per_tick) {
  struct Group {
    uint64_t inside, period;
  };
  std::vector<Group> groups;
  for (size_t i = 0; i + kGroupCalls < calls.ticks.size(); i += kGroupCalls) {
    Group group{0, calls.ticks[i + kGroupCalls].first - calls.ticks[i].first};
    for (size_t j = i; j < i + kGroupCalls; ++j) {
      group.inside += calls.ticks[j].second - calls.ticks[j].first;
    }
    groups.push_back(group);
  }
  const size_t counted = groups.size() / kFastestShare;
  if (counted == 0) return std::nullopt;
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.period < b.period; });
  double inside = 0, period = 0;
  for (size_t i = 0; i < counted; ++i) {
    inside += static_cast<double>(groups[i].inside);
    period += static_cast<double>(groups[i].period);
  }
  const double scale = ps_per_tick / static_cast<double>(counted * kGroupCalls);
  return RecordedCall{inside * scale, period * scale};
}

using RecordedCalls = std::map<uint32_t, RecordedCall>;

// Records the program as `options` say.
RecordedCalls recorded_calls(const std::string& shim, const RecordOptions& options) {
  recorder::BufferOptions small;
  small.buffer_size = kBufferSize;
  small.pin = recorder::PinPolicy::kNo;
  absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::create(small);
  if (!buffer.ok()) return {};
  Events nobody;
  const auto variables = session_variables(shim, buffer->path(), options, nobody);
  if (!variables.ok()) return {};
  recorder::set_gate(buffer->view(), ARCTRACE_GATE_ALL);
  if (output_of(options.command.front(), *variables).empty()) return {};
  absl::StatusOr<reader::Trace> trace = reader::Trace::open(buffer->path());
  if (!trace.ok() || trace->session().ticks_per_second == 0) return {};
  const double ps_per_tick =
      kPsPerSecond / static_cast<double>(trace->session().ticks_per_second);
  RecordedCalls recorded;
  for (const auto& [kind, calls] : calls_of(*trace, !options.filter.patch.empty())) {
    if (const auto call = recorded_call(calls, ps_per_tick)) recorded[kind] = *call;
  }
  return recorded;
}

arctrace_hook_cost cost_of(uint32_t kind, double inside_ps, double whole_ps) {
  const auto as_ps = [](double ps) {
    return static_cast<uint32_t>(std::clamp(ps, 0.0, 1e9));
  };
  const double inside = std::min(inside_ps, whole_ps);
  return {
      .kind = kind, .inside_ps = as_ps(inside), .outside_ps = as_ps(whole_ps - inside)};
}

// Adds the cost of recording to the calls; `untraced` is the time of each call without
// it. If a program's functions could not be hooked in its way, its calls are of a kind
// that it does not measure.
void add_costs(const RecordedCalls& recorded, const CallTimes& untraced,
               std::vector<arctrace_hook_cost>& costs) {
  for (const auto& [kind, call] : recorded) {
    const auto found = untraced.find(kind);
    if (found == untraced.end()) continue;
    const double whole_ps = std::max(call.period_ps - found->second, 0.0);
    // The functions themselves take next to no time.
    costs.push_back(cost_of(kind, call.inside_ps, whole_ps));
  }
}

}  // namespace

std::optional<std::vector<arctrace_hook_cost>> measure_hook_costs(
    const std::string& shim_path) {
  const std::string directory = shim_path.substr(0, shim_path.rfind('/') + 1);
  const std::string calls = directory + "arctrace-cost-probe-calls";
  RecordOptions plain, with_args;
  plain.command = with_args.command = {calls};
#if defined(__x86_64__)
  plain.filter.patch = {"arctrace_cost_probe_patched"};
#endif
  with_args.filter.args = {"labs@arg1"};
  with_args.filter.retvals = {"labs@retval"};

  std::vector<arctrace_hook_cost> costs;
  const RecordedCalls bare = recorded_calls(shim_path, plain);
  if (bare.empty()) return std::nullopt;
  // Programs with scopes, or with calls of __return__, load the library without a
  // recorder, too.
  const std::vector<std::string> with_library = {
      "LD_PRELOAD=libarctrace.so.0",
      "LD_LIBRARY_PATH=" + directory + ":" + directory + ".."};
  add_costs(bare, times_printed(output_of(calls, with_library)), costs);
  const RecordedCalls with = recorded_calls(shim_path, with_args);
  const auto bare_call = bare.find(ARCTRACE_HOOK_LIBRARY_CALL);
  const auto call = with.find(ARCTRACE_HOOK_LIBRARY_CALL);
  if (bare_call != bare.end() && call != with.end()) {
    // These costs are of two records, ARGUMENTS and RESULT.
    costs.push_back(
        cost_of(ARCTRACE_HOOK_ARGUMENTS,
                std::max(call->second.inside_ps - bare_call->second.inside_ps, 0.0) / 2,
                std::max(call->second.period_ps - bare_call->second.period_ps, 0.0) / 2));
  }
  for (const char* const hooks : {"hooked", "xray", "returning"}) {
    RecordOptions compiled_in;
    compiled_in.command = {
        absl::StrCat(directory, "arctrace-cost-probe-", hooks, "-calls")};
    const std::string& program = compiled_in.command.front();
    add_costs(recorded_calls(shim_path, compiled_in),
              times_printed(output_of(program, with_library)), costs);
  }
  return costs;
}

}  // namespace arctrace::recording
