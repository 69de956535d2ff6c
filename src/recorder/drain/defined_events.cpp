#include "src/recorder/drain/defined_events.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <utility>

#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/file/block_scan.hpp"

namespace arctrace {
namespace {

constexpr size_t kNamesMax = 4096;

}  // namespace

void DefinedEvents::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(
      block, [this](uint16_t type, uint64_t, std::span<const std::byte> body) {
        if (type != ARCTRACE_TYPE_EVENT_LAYOUT ||
            body.size() < sizeof(arctrace_event_layout_body)) {
          return;
        }
        const auto layout = load_part_untrusted<arctrace_event_layout_body>(body);
        const std::span<const std::byte> name = body.subspan(sizeof layout);
        std::string text(reinterpret_cast<const char*>(name.data()),
                         std::min<size_t>(layout.name_size, name.size()));
        const auto known = levels_.find(text);
        if (known != levels_.end()) {
          known->second = std::min(known->second, layout.level);
        } else if (levels_.size() < kNamesMax) {
          levels_.emplace(std::move(text), layout.level);
        } else {
          is_complete_ = false;
        }
      });
}

}  // namespace arctrace
