#include "reader/report/group_view.hpp"

namespace arctrace::reader {

absl::Status GroupView::write_text(Replay& replay, const WriteText& write) {
  write_groups_text(TreeGroups(replay, grouping_), replay, write);
  return absl::OkStatus();
}

absl::Status GroupView::write_json(Replay& replay, JsonWriter& json) {
  write_groups_json(TreeGroups(replay, grouping_), replay, json);
  return absl::OkStatus();
}

}  // namespace arctrace::reader
