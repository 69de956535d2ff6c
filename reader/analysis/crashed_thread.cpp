#include "reader/analysis/crashed_thread.hpp"

#include <arctrace/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <vector>

#include "reader/analysis/function_kinds.hpp"

namespace arctrace::reader {
namespace {

struct Candidate {
  ThreadIndex thread;
  const ThreadEnd* end;
};

bool was_signalled(const Process& process) {
  return process.wait_status.has_value() && WIFSIGNALED(*process.wait_status);
}

// The threads that made calls and lived to the end of the process that was killed; where
// a shell tells the signal, of those that recorded no end.
std::vector<Candidate> candidates(const ThreadEnds& ends, const Replay& replay) {
  const Definitions& definitions = replay.definitions();
  const auto processes = definitions.processes();
  const bool is_command = std::any_of(processes.begin(), processes.end(), was_signalled);
  std::vector<Candidate> found;
  for (const ThreadTree& tree : replay.threads()) {
    const Thread& thread = definitions.threads()[tree.thread];
    const ThreadEnd* end = ends.find(tree.thread);
    if (thread.process == kNoIndex || thread.announced_ns != INT64_MIN ||
        end == nullptr || (end->open.empty() && end->last_function == kRootFunction)) {
      continue;
    }
    const Process& process = processes[thread.process];
    if (is_command ? was_signalled(process) : process.end_how == ARCTRACE_END_NONE) {
      found.push_back({tree.thread, end});
    }
  }
  return found;
}

bool is_in(const ThreadEnd& end, const Functions& functions,
           bool (*is)(const Function&)) {
  return std::any_of(end.open.begin(), end.open.end(),
                     [&](FunctionId function) { return is(functions[function]); });
}

bool sends_abort(const Function& function) {
  constexpr std::string_view kNames[] = {
      "abort",           "raise", "__assert_fail", "__fortify_fail", "__stack_chk_fail",
      "std::terminate()"};
  return std::find(std::begin(kNames), std::end(kNames), function.name) !=
         std::end(kNames);
}

// Whether a thread in this call most likely waits in the kernel. Functions for I/O also
// work on what they are given, as printf() does.
bool waits(const Function& function) {
  const std::optional<FunctionKind> kind = function_kind(function);
  return kind.has_value() && may_wait(*kind) && *kind != FunctionKind::kIo;
}

// Returns the only one of them for which `is` is true.
template <class Is>
std::optional<LikelyThread> only(const std::vector<Candidate>& all, LikelyBecause because,
                                 Is is) {
  std::optional<LikelyThread> found;
  for (const Candidate& candidate : all) {
    if (!is(*candidate.end)) continue;
    if (found.has_value()) return std::nullopt;
    found = LikelyThread{candidate.thread, because, all.size()};
  }
  return found;
}

}  // namespace

bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGTRAP || signal == SIGSYS;
}

std::optional<LikelyThread> likely_thread(int signal, const ThreadEnds& ends,
                                          const Replay& replay) {
  if (!is_fault(signal) && signal != SIGABRT) return std::nullopt;
  const Functions& functions = replay.functions();
  const std::vector<Candidate> all = candidates(ends, replay);
  if (all.size() == 1) return LikelyThread{all.front().thread, LikelyBecause::kOnly, 1};
  if (signal == SIGABRT) {
    return only(all, LikelyBecause::kAborts,
                [&](const ThreadEnd& end) { return is_in(end, functions, sends_abort); });
  }
  return only(all, LikelyBecause::kNotWaiting,
              [&](const ThreadEnd& end) { return !is_in(end, functions, waits); });
}

std::vector<ThreadIndex> possible_threads(int signal, const ThreadEnds& ends,
                                          const Replay& replay) {
  std::vector<ThreadIndex> found;
  if (!is_fault(signal)) return found;
  for (const Candidate& candidate : candidates(ends, replay)) {
    if (!is_in(*candidate.end, replay.functions(), waits)) {
      found.push_back(candidate.thread);
    }
  }
  if (found.size() < 2) found.clear();
  return found;
}

}  // namespace arctrace::reader
