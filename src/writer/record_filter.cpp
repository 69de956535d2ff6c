#include "src/writer/record_filter.hpp"

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/thread_id.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/record_filter.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/thread_local.hpp"

namespace arctrace {
namespace {

// A verdict is the round of the filter, which is even and not 0, shifted to the left by
// two, and these bits.
constexpr uint64_t kAdmitted = 1;
constexpr uint64_t kByThread = 2;  // of a process: it depends on the thread
constexpr uint32_t kRoundShift = 2;

// By id. Events and names with higher ids are judged each time.
constexpr uint32_t kVerdictsKept = 1024;
uint64_t event_verdicts[kVerdictsKept];
uint64_t instant_verdicts[kVerdictsKept];

bool is_of_round(uint64_t verdict, uint32_t round) {
  return verdict >> kRoundShift == round;
}

// Remembers what judge(text) says in `verdict`; while the filter is being changed, all is
// admitted, and nothing is remembered.
template <class Judge>
uint64_t verdict_now(uint64_t& verdict, const Judge& judge) {
  const uint32_t round = IpcAtomics::load_acquire(record_filter_area(session.view).round);
  const uint64_t stored = IpcAtomics::load_relaxed(verdict);
  if (is_of_round(stored, round)) return stored;
  RecordFilterCopy filter;
  copy_record_filter_untrusted(session.view, filter);
  if (filter.size < 0) return kAdmitted;
  const uint64_t made = uint64_t{filter.round} << kRoundShift | judge(filter.text());
  IpcAtomics::store_relaxed(verdict, made);
  return made;
}

template <class Admits>
bool id_is_admitted(uint64_t (&verdicts)[kVerdictsKept], uint32_t id,
                    const Admits& admits) {
  uint64_t unknown = 0;
  uint64_t& verdict = id < kVerdictsKept ? verdicts[id] : unknown;
  return (verdict_now(verdict,
                      [&admits](std::string_view text) {
                        return admits(text) ? kAdmitted : uint64_t{0};
                      }) &
          kAdmitted) != 0;
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

bool event_is_admitted(uint32_t event) {
  return id_is_admitted(event_verdicts, event, [event](std::string_view text) {
    const EventFacts facts = find_event(event);
    return admits_event(text, facts.name, facts.level);
  });
}

bool instant_is_admitted(uint32_t name) {
  return id_is_admitted(instant_verdicts, name, [name](std::string_view text) {
    return admits_instant(text, find_name(name).text);
  });
}

}  // namespace arctrace
