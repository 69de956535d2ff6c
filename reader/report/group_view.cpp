#include "reader/report/group_view.hpp"

namespace arctrace::reader {

TreeGroups GroupView::groups_of(const Replay& replay) const {
  return {replay, grouping_, TreeGroups::Of::kThreadsAndInterrupts};
}

absl::Status GroupView::write_text(Replay& replay, const WriteText& write) {
  write_groups_text(groups_of(replay), replay, write);
  return absl::OkStatus();
}

absl::Status GroupView::write_json(Replay& replay, JsonWriter& json) {
  write_groups_json(groups_of(replay), replay, json);
  return absl::OkStatus();
}

}  // namespace arctrace::reader
