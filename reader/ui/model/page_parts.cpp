#include "reader/ui/model/page_parts.hpp"

#include <string_view>
#include <utility>

#include "reader/report/locks_view.hpp"

namespace arctrace::reader {
namespace {

constexpr uint64_t kTableRowsMax = 500;

ViewSettings table_settings(const Definitions& definitions) {
  ViewSettings settings;
  settings.is_json = true;
  settings.options.limit = kTableRowsMax;
  settings.definitions = &definitions;
  return settings;
}

}  // namespace

PageParts::PageParts(const Definitions& definitions, size_t max_items,
                     std::vector<ExactRange> exact)
    : exact_(std::move(exact)),
      timeline_(max_items, exact_),
      times_(definitions, Grouping::kAll),
      locks_(make_locks_view(table_settings(definitions))),
      lock_listener_(locks_->call_listener()) {}

void PageParts::begin(Replay& replay, const Session* session) {
  timeline_.begin(replay.functions());
  critical_.begin(replay, session);
  locks_->begin_text(replay, [](std::string_view /*text*/) { return true; });
}

}  // namespace arctrace::reader
