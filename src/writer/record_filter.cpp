// Judges threads, events and names by the record filter, and stores the verdicts.
#include "src/writer/record_filter.hpp"

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/kernel_use.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/record_filter.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {
namespace {

// A verdict is the generation of the filter, which is even and not 0, shifted to the left
// by two, and these bits.
constexpr uint64_t kAdmitted = 1;
constexpr uint64_t kByThread = 2;  // of a process: it depends on the thread
constexpr uint64_t kByFields = 2;  // of an event: it depends on its fields
constexpr uint32_t kGenerationShift = 2;

// Verdicts are stored by id. Events and names with higher ids are judged each time.
constexpr uint32_t kVerdictsKept = 1024;
ARCTRACE_LARGE_TABLE uint64_t event_verdicts[kVerdictsKept];
ARCTRACE_LARGE_TABLE uint64_t instant_verdicts[kVerdictsKept];
ARCTRACE_LARGE_TABLE uint64_t
    event_layouts[kVerdictsKept];  // addresses of bodies; 0: not searched for yet

// Relaxed: a caller that has the event's id got it after the definition was made.
EventFacts facts_of_event(uint32_t event) {
  if (event >= kVerdictsKept) return EventFacts(find_event(event));
  const uint64_t seen = IpcAtomics::load_relaxed(event_layouts[event]);
  const auto* layout = reinterpret_cast<const arctrace_event_layout_body*>(seen);
  if (layout == nullptr) layout = find_event(event);
  IpcAtomics::store_relaxed(event_layouts[event], reinterpret_cast<uint64_t>(layout));
  return EventFacts(layout);
}

// At this count, a thread adds what it has counted to the session's count.
constexpr uint32_t kFilteredOutMax = uint32_t{1} << 31;

// Counts a record that the filter has excluded. Relaxed: the counts publish nothing. If
// the process is killed while it adds 2^31 of them to the session's count, these are
// counted twice.
void count_filtered_out() {
  arctrace_control& control = session.view.control();
  ThreadState* state = thread_local_state.state;
  if (state == nullptr || !state->attached) {
    IpcAtomics::fetch_add_relaxed(control.filtered_out, uint64_t{1});
    return;
  }
  uint32_t& count = state->slot.slot().filtered_out;
  if (IpcAtomics::fetch_add_relaxed(count, uint32_t{1}) + 1 != kFilteredOutMax) return;
  IpcAtomics::fetch_add_relaxed(control.filtered_out, uint64_t{kFilteredOutMax});
  IpcAtomics::fetch_add_relaxed(count, ~kFilteredOutMax + 1);
}

bool is_of_generation(uint64_t verdict, uint32_t generation) {
  return verdict >> kGenerationShift == generation;
}

// Stores the result of judge(text) in `verdict`; while the filter is being changed,
// everything is admitted, and nothing is stored.
template <class Judge>
uint64_t verdict_now(uint64_t& verdict, const Judge& judge) {
  const uint32_t generation =
      IpcAtomics::load_acquire(record_filter_area(session.view).round);
  const uint64_t stored = IpcAtomics::load_relaxed(verdict);
  if (is_of_generation(stored, generation)) return stored;
  RecordFilterCopy filter;
  copy_record_filter_untrusted(session.view, filter);
  if (filter.size < 0) return kAdmitted;
  const uint64_t made =
      uint64_t{filter.generation} << kGenerationShift | judge(filter.text());
  IpcAtomics::store_relaxed(verdict, made);
  return made;
}

// The verdict on the event or name with this id.
template <class Judge>
uint64_t verdict_of(uint64_t (&verdicts)[kVerdictsKept], uint32_t id,
                    const Judge& judge) {
  uint64_t unknown = 0;
  return verdict_now(id < kVerdictsKept ? verdicts[id] : unknown, judge);
}

}  // namespace

bool thread_is_admitted() {
  ProcessState* process = process_state_of_session();
  if (process == nullptr) return true;
  const uint64_t of_process =
      verdict_now(process->filter_verdict, [](std::string_view text) {
        const ThreadFilter threads(text, process_id(), 0);
        if (threads.by_tid && !threads.has_pid) return kByThread;
        return threads.admits() ? kAdmitted : uint64_t{0};
      });
  if ((of_process & kByThread) == 0) return (of_process & kAdmitted) != 0;
  ThreadState* state = thread_local_state.state;
  const bool is_attached = state != nullptr && state->attached;
  uint64_t unknown = 0;
  const uint64_t of_thread = verdict_now(
      is_attached ? state->filter_verdict : unknown, [&](std::string_view text) {
        const uint32_t tid = is_attached ? state->slot.tid : thread_id();
        return ThreadFilter(text, 0, tid).has_tid ? kAdmitted : uint64_t{0};
      });
  return (of_thread & kAdmitted) != 0;
}

void forget_verdicts() {
  fill_zero(event_verdicts, sizeof event_verdicts);
  fill_zero(instant_verdicts, sizeof instant_verdicts);
}

EventVerdict event_verdict(uint32_t event) {
  const uint64_t verdict =
      verdict_of(event_verdicts, event, [event](std::string_view text) {
        const EventFacts facts = facts_of_event(event);
        if (!admits_event(text, facts.name, facts.level)) return uint64_t{0};
        return has_conditions(text) ? kAdmitted | kByFields : kAdmitted;
      });
  if ((verdict & kAdmitted) == 0) {
    count_filtered_out();
    return EventVerdict::kExcluded;
  }
  return (verdict & kByFields) != 0 ? EventVerdict::kByFields : EventVerdict::kAdmitted;
}

bool fields_are_admitted(uint32_t event, std::span<const std::byte> payload) {
  RecordFilterCopy filter;
  copy_record_filter_untrusted(session.view, filter);
  if (filter.size < 0) return true;
  const EventFacts facts = facts_of_event(event);
  const bool is_admitted = admits_payload(
      filter.text(), payload, [&facts](const auto& use) { facts.for_each_field(use); });
  if (!is_admitted) count_filtered_out();
  return is_admitted;
}

bool instant_is_admitted(uint32_t name) {
  const uint64_t verdict =
      verdict_of(instant_verdicts, name, [name](std::string_view text) {
        return admits_instant(text, find_name(name).text) ? kAdmitted : uint64_t{0};
      });
  if ((verdict & kAdmitted) == 0) count_filtered_out();
  return (verdict & kAdmitted) != 0;
}

}  // namespace arctrace::writer
