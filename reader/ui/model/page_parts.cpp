#include "reader/ui/model/page_parts.hpp"

#include <string_view>
#include <utility>

#include "reader/report/locks_view.hpp"
#include "reader/report/summary_lines.hpp"

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
      lock_listener_(locks_->call_listener()),
      ends_([this](FunctionId function) {
        return signal_of(replay_->functions()[function], session_);
      }) {}

void PageParts::begin(Replay& replay, const Session* session) {
  replay_ = &replay;
  session_ = session;
  has_wake_ups_ = replay.definitions().has_dispatches() && session != nullptr &&
                  !session->has_perf_records;
  if (has_wake_ups_) loops_.begin(replay, session);
  timeline_.begin(replay.functions());
  critical_.begin(replay, session);
  locks_->begin_text(replay, [](std::string_view /*text*/) { return true; });
}

}  // namespace arctrace::reader
