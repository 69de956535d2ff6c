// Changes the gate, the filters and the demand for definitions, and sums the counters of
// the slots.
#include "src/recorder/buffer/recording_control.hpp"

#include <absl/strings/str_cat.h>

#include <cstring>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/control_events.hpp"

namespace arctrace::recorder {

namespace {

// Notes a change that was made at `ticks`, and wakes the collector: the text of a filter
// is known only as long as no other one has replaced it.
void tell_change(const BufferView& view, uint64_t ticks) {
  note_gate_change(view, ticks);
  wake_collector(view.control());
}

}  // namespace

void set_gate(const BufferView& view, uint32_t bits) {
  arctrace_control& control = view.control();
  const uint32_t added = bits & ~IpcAtomics::load_relaxed(control.gate);
  // Classes that are switched on have records from the store on; classes that are
  // switched off have none after it.
  const uint64_t before = read_ticks(view);
  if ((added & ARCTRACE_GATE_FUNCTIONS) != 0) {
    IpcAtomics::fetch_add_relaxed(control.functions_on, uint32_t{1});
  }
  // The fast path's word comes first, so that no class is written after another one that
  // this change switches on. Relaxed: it only takes bits away, as an earlier change could
  // have.
  IpcAtomics::fetch_and_relaxed(control.unfiltered, bits);
  // R1 release, matches R2 (was_off_meanwhile): functions_on, and the live filter.
  IpcAtomics::store_release(control.gate, bits);
  update_unfiltered(view);
  tell_change(view, added != 0 ? before : read_ticks(view));
}

absl::Status set_record_filter(const BufferView& view, const std::string& text) {
  if (text.size() > ARCTRACE_RECORD_FILTER_TEXT_MAX) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the filter of events, processes and threads takes ", text.size(),
                     " bytes; a session has ", ARCTRACE_RECORD_FILTER_TEXT_MAX,
                     " for it: globs take few"));
  }
  arctrace_control& control = view.control();
  RecordFilterCopy last;
  copy_record_filter_untrusted(view, last);
  if (((filtered_classes(last.text()) | filtered_classes(text)) &
       ARCTRACE_GATE_FUNCTIONS) != 0) {
    // The count changes even then, because functions may be left while their thread is
    // excluded.
    IpcAtomics::fetch_add_relaxed(control.functions_on, uint32_t{1});
  }
  uint64_t words[kFilterWords<arctrace_record_filter>] = {};
  std::memcpy(words, text.data(), text.size());
  // The fast path does not read the filter. Relaxed: a thread that still reads the old
  // value records as it did before the change.
  IpcAtomics::store_relaxed(control.unfiltered, uint32_t{0});
  const uint64_t before = read_ticks(view);
  const bool is_done =
      publish_filter(record_filter_area(view), words, static_cast<uint32_t>(text.size()));
  update_unfiltered(view);
  if (!is_done) {
    return absl::AbortedError(
        "another process sets the filter of events, processes and threads: try again");
  }
  // If recording is off, the filter is noted when it is switched on.
  if (IpcAtomics::load_relaxed(control.gate) != 0) tell_change(view, before);
  return absl::OkStatus();
}

absl::Status publish_live_filter(const BufferView& view, const std::string& text) {
  uint64_t words[kLiveFilterWords] = {};
  std::memcpy(words, text.data(), text.size());
  // The fast path does not read the filter. Relaxed: a thread that still reads the old
  // value records as it did before the change.
  IpcAtomics::fetch_and_relaxed(view.control().unfiltered,
                                ~uint32_t{ARCTRACE_GATE_FUNCTIONS});
  const bool is_done =
      publish_filter(live_filter_area(view), words, static_cast<uint32_t>(text.size()));
  update_unfiltered(view);
  if (!is_done) {
    return absl::AbortedError("another arctrace ctl sets the filter: try again");
  }
  tell_change(view, read_ticks(view));
  return absl::OkStatus();
}

void close_gate(const BufferView& view) {
  // Relaxed: these stores publish nothing; a thread that still reads the old values
  // records as before.
  IpcAtomics::store_relaxed(view.control().unfiltered, uint32_t{0});
  IpcAtomics::store_relaxed(view.control().gate, uint32_t{0});
}

void demand_definitions(const BufferView& view) {
  arctrace_control& control = view.control();
  IpcAtomics::fetch_add_relaxed(control.definitions_round, uint32_t{1});
  // A writer that finds the block closed (G1) sees the new generation.
  const uint64_t chain = IpcAtomics::load_acquire(control.shared_current);  // E1
  if (chain != 0 && BlockName::index(chain) < view.geometry().block_count) {
    close_shared<IpcAtomics>(view, BlockName::index(chain), BlockName::generation(chain));
  }
}

uint64_t session_written(const BufferView& view) {
  uint64_t written = 0;
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    written += IpcAtomics::load_relaxed(view.slot(i).written) +
               IpcAtomics::load_relaxed(view.slot(i).written_shared);
  }
  return written;
}

std::vector<uint64_t> session_losses(const BufferView& view) {
  std::vector<uint64_t> sum(ARCTRACE_LOST_CAUSES);
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    sum[cause] = IpcAtomics::load_relaxed(view.control().lost[cause]);
    for (uint32_t i = 0; i < used; ++i) {
      sum[cause] += IpcAtomics::load_relaxed(view.slot(i).lost[cause]);
    }
  }
  sum[ARCTRACE_LOST_KERNEL] += cpu_losses(view);
  return sum;
}

uint64_t session_filtered_out(const BufferView& view) {
  uint64_t sum = IpcAtomics::load_relaxed(view.control().filtered_out);
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    sum += IpcAtomics::load_relaxed(view.slot(i).filtered_out);
  }
  return sum;
}

uint64_t session_start_ticks(const BufferView& view) {
  auto& header = *reinterpret_cast<arctrace_session_header*>(view.base());
  return IpcAtomics::load_relaxed(header.start_ticks);
}

uint64_t cpu_losses(const BufferView& view) {
  uint64_t sum = 0;
  for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
    sum += IpcAtomics::load_relaxed(view.cpu_slot(cpu).lost);
  }
  return sum;
}

}  // namespace arctrace::recorder
