// The thread that carries out requests to the kernel writer, and the functions that make
// requests.
#include "src/recorder/kernel/kernel_requests.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/os/process_facts.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/control_events.hpp"

namespace arctrace::recorder {
namespace {

// A session's processes are to be recorded soon after they join; requests to a recording
// of its own may take longer.
constexpr auto kJoinStep = std::chrono::milliseconds(5);
constexpr auto kChosenStep = std::chrono::milliseconds(20);
// A process that may write to the buffer could have programs attached and detached all
// the time, for which the kernel interrupts all CPUs.
constexpr uint64_t kChangeNs = 50'000'000;
// Loading programs takes long on a busy machine.
constexpr uint64_t kEventsNs = 10'000'000'000;
constexpr uint64_t kParentNs = 500'000'000;

// Whether the process has mapped a BPF map of the buffer's size. A process that may write
// to the buffer may ask for any process, but only the buffer's writers may be traced for
// it.
bool has_mapped(uint32_t pid, uint64_t size) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    if (!absl::StrContains(line, "bpf-map")) continue;
    uint64_t begin = 0, end = 0;
    const char* const text_end = line.data() + line.size();
    const auto [dash, error] = std::from_chars(line.data(), text_end, begin, 16);
    if (error != std::errc() || dash == text_end) continue;
    std::from_chars(dash + 1, text_end, end, 16);
    if (end - begin == (size + page - 1) / page * page) return true;
  }
  return false;
}

// Whether there is a loader that lives: it is the collector, too.
bool has_loader(const BufferView& view) {
  return IpcAtomics::load_relaxed(view.control().kernel_loader) != 0 &&
         is_live(IpcAtomics::load_acquire(view.control().collector_lock));
}

}  // namespace

KernelRequests::KernelRequests(const BufferView& view, KernelWriter& writer,
                               uint32_t events, Processes processes,
                               std::function<void(const std::string&)> warn)
    : view_(view), writer_(writer), processes_(processes), warn_(std::move(warn)) {
  arctrace_control& control = view_.control();
  // Relaxed, like all of these words: no other memory depends on them
  // (docs/memory_ordering.md).
  IpcAtomics::store_relaxed(control.kernel_parent, uint32_t{0});
  IpcAtomics::store_relaxed(control.kernel_wanted, events);
  tell_recorded(events);
  IpcAtomics::store_relaxed(control.kernel_loader, static_cast<uint32_t>(getpid()));
  tell_missing();
  add_writers();
  thread_ = std::thread([this] { run(); });
}

KernelRequests::~KernelRequests() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ends_.notify_one();
  thread_.join();
  arctrace_control& control = view_.control();
  IpcAtomics::store_relaxed(control.kernel_loader, uint32_t{0});
  IpcAtomics::store_relaxed(control.kernel_recorded, uint32_t{0});
}

// Notes the kernel's events that are recorded. If recording is off, that is noted when it
// is switched on.
void KernelRequests::tell_recorded(uint32_t events) {
  arctrace_control& control = view_.control();
  IpcAtomics::store_relaxed(control.kernel_recorded, events);
  if ((IpcAtomics::load_relaxed(control.gate) & ARCTRACE_GATE_KERNEL) != 0) {
    note_gate_change(view_, read_ticks(view_));
  }
}

void KernelRequests::run() {
  uint64_t next_change_ns = 0;
  const auto step = processes_ == Processes::kChosen ? kChosenStep : kJoinStep;
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    const uint64_t now_ns = read_monotonic_ns();
    if (now_ns >= next_change_ns && set_events()) next_change_ns = now_ns + kChangeNs;
    add_parent();
    add_writers();
    lock.lock();
  } while (!ends_.wait_for(lock, step, [this] { return is_over_; }));
}

void KernelRequests::tell_missing() {
  if (writer_.missing().empty()) return;
  warn_(absl::StrCat("this kernel has no tracepoints for interrupts of the kinds ",
                     absl::StrJoin(writer_.missing(), ", "), ", which are not recorded"));
}

// Events that are switched on count as recorded from when the programs run; those that
// are switched off, until before they stop.
bool KernelRequests::set_events() {
  arctrace_control& control = view_.control();
  uint32_t asked = IpcAtomics::load_relaxed(control.kernel_wanted);
  const uint32_t wanted = asked & ARCTRACE_KERNEL_EVENTS_ALL;
  const uint32_t before = IpcAtomics::load_relaxed(control.kernel_recorded);
  if (wanted == before) return false;
  const uint32_t kept = before & wanted;
  if (kept != before) tell_recorded(kept);
  absl::Status set = writer_.set_events(wanted);
  if (set.ok()) {
    if (kept != wanted) tell_recorded(wanted);
    tell_missing();
    return true;
  }
  warn_(absl::StrCat("what arctrace ctl switched on is not recorded: ",
                     std::string(set.message())));
  writer_.set_events(kept).IgnoreError();
  // A process that waits for this sees that it was refused, unless another one has asked
  // meanwhile.
  IpcAtomics::compare_exchange_acq_rel(control.kernel_wanted, asked, kept);
  return true;
}

void KernelRequests::add_parent() {
  arctrace_control& control = view_.control();
  const uint32_t pid = IpcAtomics::load_relaxed(control.kernel_parent);
  if (pid == 0) return;
  if (has_mapped(pid, view_.geometry().total_size)) writer_.trace_children(pid, true);
  IpcAtomics::store_relaxed(control.kernel_parent, uint32_t{0});
}

void KernelRequests::add_writers() {
  if (processes_ != Processes::kThatJoin) return;
  std::vector<std::pair<uint32_t, uint32_t>> living;
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view_);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view_.slot(i);
    if (!is_live(IpcAtomics::load_acquire(slot.lock))) continue;
    living.emplace_back(IpcAtomics::load_relaxed(slot.process),
                        IpcAtomics::load_relaxed(slot.pid));
  }
  std::sort(living.begin(), living.end());
  living.erase(std::unique(living.begin(), living.end()), living.end());
  for (const auto& process : living) {
    if (!std::binary_search(joined_.begin(), joined_.end(), process) &&
        has_mapped(process.second, view_.geometry().total_size)) {
      writer_.trace_process(process.second, true);
    }
  }
  joined_ = std::move(living);
}

void ask_for_kernel_events(const BufferView& view, uint32_t on, uint32_t off) {
  uint32_t& wanted = view.control().kernel_wanted;
  uint32_t before = IpcAtomics::load_relaxed(wanted);
  // Other processes may ask at the same time.
  while (!IpcAtomics::compare_exchange_acq_rel(wanted, before, (before | on) & ~off)) {
  }
}

absl::Status wait_for_kernel_events(const BufferView& view, uint32_t on, uint32_t off) {
  arctrace_control& control = view.control();
  const auto is_so = [&](uint32_t events) {
    return (events & on) == on && (events & off) == 0;
  };
  if (!has_loader(view)) {
    return absl::FailedPreconditionError(
        "whoever collects it has not loaded the kernel's programs, as its output says");
  }
  const uint64_t end_ns = read_monotonic_ns() + kEventsNs;
  while (read_monotonic_ns() < end_ns && has_loader(view)) {
    if (is_so(IpcAtomics::load_relaxed(control.kernel_recorded))) return absl::OkStatus();
    if (!is_so(IpcAtomics::load_relaxed(control.kernel_wanted))) {
      return absl::UnavailableError(
          "the kernel refuses the programs, as the recorder's output says, or another "
          "arctrace ctl has taken that back");
    }
    std::this_thread::sleep_for(kJoinStep);
  }
  return absl::DeadlineExceededError("the recorder does not answer");
}

void ask_for_kernel_records_of_children(const BufferView& view) {
  if (!has_loader(view) || read_pid_namespace() != kFirstPidNamespace) return;
  arctrace_control& control = view.control();
  const auto self = static_cast<uint32_t>(getpid());
  const uint64_t end_ns = read_monotonic_ns() + kParentNs;
  bool is_asked = false;
  while (read_monotonic_ns() < end_ns) {
    uint32_t asked = 0;
    if (!is_asked) {
      is_asked = IpcAtomics::compare_exchange_acq_rel(control.kernel_parent, asked, self);
    } else if (IpcAtomics::load_relaxed(control.kernel_parent) != self) {
      return;
    }
    std::this_thread::sleep_for(kJoinStep);
  }
}

}  // namespace arctrace::recorder
