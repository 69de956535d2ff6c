#include "reader/ui/model/page_parts.hpp"

#include <string_view>

namespace arctrace::reader {
namespace {

constexpr uint64_t kLocksMax = 500;

ViewSettings lock_settings(const Definitions& definitions) {
  ViewSettings settings;
  settings.is_json = true;
  settings.options.limit = kLocksMax;
  settings.definitions = &definitions;
  return settings;
}

}  // namespace

PageParts::PageParts(const Definitions& definitions, size_t max_items)
    : timeline_(max_items),
      times_(definitions, Grouping::kAll),
      locks_(make_locks_view(lock_settings(definitions))),
      lock_listener_(locks_->call_listener()) {}

void PageParts::begin(Replay& replay) {
  locks_->begin_text(replay, [](std::string_view /*text*/) { return true; });
}

}  // namespace arctrace::reader
