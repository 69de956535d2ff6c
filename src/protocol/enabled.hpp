// The classes of records that are recorded, and since when, from the control page
// (SPEC.md BUF-6): the recorder and the reader make ENABLED records of them.
#pragma once

#include <arctrace/format.h>

#include <cstdint>
#include <string>

#include "src/base/memory.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/control_events.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace {

// A filter of the control page as it is now.
class FilterNow {
 public:
  template <class Area>
  static FilterNow read_untrusted(Area& area) {
    uint64_t words[kFilterWords<Area>] = {};
    FilterNow filter;
    const int64_t size = copy_filter_untrusted(area, words, filter.generation_);
    if (size < 0) {
      filter.generation_ = kBeingChanged;
    } else {
      filter.text_.assign(reinterpret_cast<const char*>(words),
                          static_cast<size_t>(size));
    }
    return filter;
  }

  // The text of the filter of that generation, whose low bits are given; "?" if it is not
  // known any more.
  std::string of_generation(uint32_t low_bits) const {
    if (low_bits == 0 && generation_ != 0) return "";  // there was none yet
    if (generation_ == kBeingChanged ||
        (generation_ & GateChange::kGenerationMask) != low_bits) {
      return std::string("?").append(1, '\0');
    }
    return text_;
  }
  std::string now() const {
    return of_generation(generation_ & GateChange::kGenerationMask);
  }

 private:
  static constexpr uint32_t kBeingChanged = UINT32_MAX;  // no filter's generation

  std::string text_;
  uint32_t generation_ = 0;
};

// Calls use(ticks, recorded, filter) for each change after the first `seen` ones, as
// for_each_control_event_untrusted() does: `filter` is the text for ENABLED.
template <class Use>
uint32_t for_each_gate_change_untrusted(const BufferView& view, uint32_t seen,
                                        const Use& use) {
  const FilterNow live = FilterNow::read_untrusted(live_filter_area(view));
  const FilterNow record = FilterNow::read_untrusted(record_filter_area(view));
  return for_each_control_event_untrusted(
      gate_changes(view), seen, [&](uint64_t ticks, uint32_t value) {
        const GateChange change = GateChange::unpack(value);
        use(ticks, change.recorded,
            live.of_generation(change.live_generation) +
                record.of_generation(change.record_generation));
      });
}

}  // namespace arctrace
