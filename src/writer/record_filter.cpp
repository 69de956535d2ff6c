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

// By id. Events with higher ids are judged each time.
constexpr uint32_t kEvents = 1024;
uint64_t event_verdicts[kEvents];

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

void forget_event_verdicts() { fill_zero(event_verdicts, sizeof event_verdicts); }

bool event_is_admitted(uint32_t event) {
  uint64_t unknown = 0;
  uint64_t& verdict = event < kEvents ? event_verdicts[event] : unknown;
  return (verdict_now(verdict,
                      [event](std::string_view text) {
                        const EventFacts facts = find_event(event);
                        return admits_event(text, facts.name, facts.level) ? kAdmitted
                                                                           : uint64_t{0};
                      }) &
          kAdmitted) != 0;
}

}  // namespace arctrace
