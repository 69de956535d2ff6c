#include "reader/replay/interrupts.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "reader/replay/thread_stack.hpp"
#include "reader/trace/bytes.hpp"

namespace arctrace::reader {
namespace {

// A kernel's interrupts nest two deep.
constexpr size_t kNestedMax = 16;

// The duration is any number in a hostile trace.
int64_t end_of(int64_t begin_ns, uint64_t duration_ns) {
  const uint64_t left =
      static_cast<uint64_t>(INT64_MAX) - static_cast<uint64_t>(begin_ns);
  return static_cast<int64_t>(static_cast<uint64_t>(begin_ns) +
                              std::min(duration_ns, left));
}

}  // namespace

Interrupts::Interrupts(ReplayState& state,
                       const std::function<bool(ThreadIndex)>& wants_thread)
    : state_(state) {
  const std::span<const Thread> threads = state.definitions.threads();
  for (ThreadIndex i = 0; i < threads.size(); ++i) {
    const std::optional<uint32_t>& cpu = threads[i].interrupts_of;
    if (!cpu.has_value() || (wants_thread && !wants_thread(i))) continue;
    threads_.emplace(*cpu, i);
  }
}

Interrupts::Cpu& Interrupts::cpu_of(uint32_t cpu) {
  const auto [found, added] = cpus_.try_emplace(cpu);
  const auto thread = threads_.find(cpu);
  if (added && thread != threads_.end()) {
    found->second.thread = thread->second;
    found->second.frames = std::make_unique<FrameStack>(state_, thread->second);
  }
  return found->second;
}

void Interrupts::begin(const Record& record, ThreadStack* interrupted) {
  BodyReader reader(record.body);
  const auto body = reader.read<arctrace_interrupt_body>();
  const std::string_view name = reader.text(body.name_size);
  Cpu& cpu = cpu_of(body.cpu);
  // A CPU runs another thread only when it has served its interrupts.
  while (!cpu.ends_ns.empty() && cpu.interrupted != interrupted) {
    end_innermost(cpu, record.time_ns);
  }
  if (interrupted != nullptr) interrupted->begin_interrupt(record.time_ns, body.cpu);
  if (cpu.ends_ns.size() == kNestedMax) return;
  int64_t end_ns = end_of(record.time_ns, body.duration_ns);
  if (cpu.ends_ns.empty()) {
    cpu.interrupted = interrupted;
    serving_.push_back(&cpu);
  } else {
    end_ns = std::min(end_ns, cpu.ends_ns.back());
  }
  if (cpu.frames != nullptr) {
    FrameStack& frames = *cpu.frames;
    if (!frames.has_begun()) frames.begin(record.time_ns);
    if (cpu.ends_ns.empty()) {
      frames.skip(record.time_ns);
    } else {
      frames.advance(record.time_ns, RunState::kRunning);
    }
    frames.push_kernel(0, state_.kernel_functions.interrupt(body.kind, body.number, name),
                       0);
  }
  cpu.ends_ns.push_back(end_ns);
  next_end_ns_ = std::min(next_end_ns_, end_ns);
}

// Those that end first come first, on whatever CPU.
void Interrupts::end_due(int64_t time_ns) {
  while (!serving_.empty() && next_end_ns_ <= time_ns) {
    const auto next = std::min_element(
        serving_.begin(), serving_.end(),
        [](const Cpu* a, const Cpu* b) { return a->ends_ns.back() < b->ends_ns.back(); });
    end_innermost(**next, INT64_MAX);
  }
}

void Interrupts::end_innermost(Cpu& cpu, int64_t latest_ns) {
  const int64_t end_ns = std::min(cpu.ends_ns.back(), latest_ns);
  cpu.ends_ns.pop_back();
  if (cpu.frames != nullptr) {
    cpu.frames->advance(end_ns, RunState::kRunning);
    cpu.frames->leave_kernel(1, 0);
  }
  if (cpu.ends_ns.empty()) {
    if (cpu.interrupted != nullptr) cpu.interrupted->end_interrupt(end_ns);
    std::erase(serving_, &cpu);
  }
  find_next_end();
}

void Interrupts::find_next_end() {
  next_end_ns_ = INT64_MAX;
  for (const Cpu* cpu : serving_) {
    next_end_ns_ = std::min(next_end_ns_, cpu->ends_ns.back());
  }
}

void Interrupts::finish(int64_t time_ns) {
  while (!serving_.empty()) end_innermost(*serving_.front(), time_ns);
  for (auto& [number, cpu] : cpus_) {
    if (cpu.frames == nullptr) continue;
    FrameStack& frames = *cpu.frames;
    frames.finish();
    const CallNode& root = state_.tree[frames.root()];
    if (root.first_child == kNoNode && root.self_ns == 0) continue;
    trees_.push_back({cpu.thread, frames.root(), frames.start_ns(), frames.stop_ns(), 0});
  }
}

}  // namespace arctrace::reader
