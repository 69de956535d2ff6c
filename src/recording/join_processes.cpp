// Joins processes one by one, and checks beforehand whether patterns can match.
#include "src/recording/join_processes.hpp"

#include <absl/strings/str_cat.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "reader/trace/text_escape.hpp"
#include "src/buffer/clock.hpp"
#include "src/recorder/attach/process_status.hpp"
#include "src/recording/events.hpp"
#include "src/recording/older_children.hpp"
#include "src/recording/patching/joined_patches.hpp"
#include "src/recording/patching/patch_check.hpp"
#include "src/recording/session_variables.hpp"

namespace arctrace::recording {

ProcessThreads::ProcessThreads(pid_t pid, const BufferView& view)
    : pid_(pid),
      view_(view),
      all_(recorder::read_joined_threads(pid, read_ticks(view))) {}

void ProcessThreads::scan() {
  constexpr int kScansMax = 2;
  constexpr auto kWhile = std::chrono::milliseconds(50);
  const auto scan_time = std::chrono::steady_clock::now();
  if (scans_ == kScansMax || (scans_ != 0 && scan_time - first_scan_ < kWhile)) return;
  if (scans_++ == 0) first_scan_ = scan_time;
  std::vector<Waiting> now;
  const uint64_t ticks = read_ticks(view_);
  for (const recorder::WaitingThread& thread : recorder::find_waiting_threads(pid_)) {
    const auto same =
        std::find_if(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& before) { return before.thread == thread; });
    now.push_back({thread, same == waiting_.end() ? ticks : same->since_ticks});
  }
  waiting_ = std::move(now);
}

recorder::JoinedThreads ProcessThreads::finish(bool with_functions) {
  if (!with_functions) return std::move(all_);
  std::vector<recorder::WaitingThread> waiting;
  waiting.reserve(waiting_.size());
  for (const Waiting& one : waiting_) waiting.push_back(one.thread);
  for (recorder::WaitingStack& stack : recorder::unwind_waiting_threads(pid_, waiting)) {
    const auto since =
        std::find_if(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& one) { return one.thread.tid == stack.tid; });
    for (recorder::JoinedThreads::Thread& thread : all_.threads) {
      if (thread.task != stack.tid) continue;
      thread.waits_in = std::move(stack.functions);
      thread.is_whole = stack.is_whole;
      thread.waits_from_ticks = since->since_ticks;
    }
  }
  return std::move(all_);
}

namespace {

uint64_t in_ms(uint64_t ns) { return (ns + 500'000) / 1'000'000; }

// Error: a pattern of -P matches a function of none of the programs.
absl::Status can_match(const RecordOptions& options) {
  std::string first;
  for (const pid_t pid : options.pids) {
    const std::vector<std::string> problems =
        patch_problems(options.filter, program_of(pid));
    if (problems.empty()) return absl::OkStatus();
    if (first.empty()) first = problems.front();
  }
  return absl::NotFoundError(first);
}

// Tells of the children of processes that have joined, if they neither joined nor map the
// buffer. Returns whether there are any.
bool tell_of_children(const std::vector<pid_t>& joined,
                      std::map<pid_t, std::vector<pid_t>> older,
                      const std::string& buffer_path, bool is_map, Events& events) {
  bool found = false;
  for (const pid_t pid : joined) {
    std::vector<pid_t>& children = older[pid];
    std::erase_if(children, [&](pid_t child) {
      return std::find(joined.begin(), joined.end(), child) != joined.end() ||
             maps_buffer(child, buffer_path, is_map);
    });
    if (children.empty()) continue;
    found = true;
    events.tell(unrecorded_children_text(pid, children));
  }
  return found;
}

// Whether all threads of the process have ended, also if it is a zombie. A process whose
// first thread alone has ended goes on.
bool has_ended(pid_t pid) {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return errno == ESRCH;
  pollfd ended{fd, POLLIN, 0};
  const bool is_readable = poll(&ended, 1, 0) > 0;
  close(fd);
  return is_readable;
}

}  // namespace

std::string program_of(pid_t pid) {
  namespace fs = std::filesystem;
  const std::string link = absl::StrCat("/proc/", pid, "/exe");
  std::error_code error;
  const fs::path path = fs::read_symlink(link, error);
  return !error && fs::equivalent(path, link, error) ? path.native() : link;
}

absl::StatusOr<recorder::JoinRequest> join_request(const RecordOptions& options,
                                                   const recorder::Buffer& buffer,
                                                   Events& events) {
  absl::StatusOr<std::string> shim = find_shim();
  if (!shim.ok()) return shim.status();
  absl::StatusOr<std::string> encoded = encoded_options(options, events);
  if (!encoded.ok()) return encoded.status();
  std::shared_ptr<recorder::PatchImages> patches;
  if (!options.filter.patch.empty()) patches = std::make_shared<JoinedPatches>(*encoded);
  std::string library = library_of_shim(*shim);
  recorder::JoinRequest request{*std::move(shim), std::move(library), buffer.path(),
                                *std::move(encoded), std::move(patches)};
  for (const pid_t pid : options.pids) {
    if (absl::Status status = recorder::can_join_process(pid, request); !status.ok())
      return status;
    const bool has_kernel = buffer.view().geometry().cpu_count != 0;
    if (has_kernel && recorder::has_own_numbers(recorder::read_status(pid))) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot join process ", pid,
          " with --kernel: it is in another PID namespace, and its threads have other "
          "numbers in the kernel's records; record it without --kernel"));
    }
  }
  if (absl::Status status = can_match(options); !status.ok()) return status;
  return request;
}

JoinedProcesses join_processes(const std::vector<pid_t>& pids,
                               const recorder::JoinRequest& request,
                               recorder::KernelWriter* bpf, Events& events) {
  // Those that begin when their parent has joined are recorded.
  std::map<pid_t, std::vector<pid_t>> older = children_of(pids);
  std::vector<pid_t> joined;
  for (const pid_t pid : pids) {
    // The process is traced before it joins, so that it is known what the thread did
    // until then.
    if (bpf != nullptr) bpf->trace_process(static_cast<uint32_t>(pid), true);
    const absl::StatusOr<recorder::Joined> result = recorder::join_process(pid, request);
    if (!result.ok()) {
      if (bpf != nullptr) bpf->trace_process(static_cast<uint32_t>(pid), false);
      events.tell(std::string(result.status().message()));
      continue;
    }
    events.tell(absl::StrCat(
        "joined process ", pid, " (", reader::escaped(result->name),
        "), of which a thread stood still for ", in_ms(result->stopped_ns), " ms",
        result->all_stopped_ns == 0
            ? ""
            : absl::StrCat(", all of them for ", in_ms(result->all_stopped_ns), " ms")));
    if (!result->code_status.ok()) {
      events.warn(absl::StrCat(
          "functions of process ", pid,
          " with hooks that are code are not recorded: ", result->code_status.message()));
    } else if (result->changes_skipped != 0) {
      events.warn(absl::StrCat(
          "functions of process ", pid,
          " that are not recorded, because a thread was in the bytes of their hooks, or "
          "these lie across two pages: ",
          result->changes_skipped));
    }
    joined.push_back(pid);
  }
  const bool leaves_children =
      tell_of_children(joined, std::move(older), request.session, bpf != nullptr, events);
  return {std::move(joined), leaves_children};
}

bool have_ended(const std::vector<pid_t>& pids) {
  return std::all_of(pids.begin(), pids.end(), has_ended);
}

}  // namespace arctrace::recording
