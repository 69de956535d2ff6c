#include "reader/export/folded_export.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reader/export/stack_weights.hpp"

namespace arctrace::reader {
namespace {

// A name in a stack, whose frames are separated by semicolons.
std::string frame_text(std::string name) {
  std::replace(name.begin(), name.end(), ';', ':');
  return name;
}

class FoldedExport : public Exporter {
 public:
  explicit FoldedExport(const ExportSettings& settings) : settings_(settings) {}

  void begin(Replay& replay, const WriteText& write) override {
    replay_ = &replay;
    write_ = &write;
  }

  absl::Status finish() override {
    const TreeGroups groups(*replay_, settings_.grouping);
    for (const TreeGroup& group : groups.groups()) {
      if (!write_group(group)) break;
    }
    (*write_)(text_);
    return absl::OkStatus();
  }

 private:
  // False: nothing more is wanted.
  bool write_group(const TreeGroup& group) {
    const CallTree& tree = *group.tree;
    ExportNames names(replay_->definitions(), replay_->functions());
    std::string line = frame_text(group_name(group, settings_.grouping));
    // The length of the line up to each node of the path.
    std::vector<size_t> lengths;
    bool more = true;
    for_each_stack(group, [&](NodeIndex node, std::span<const NodeIndex> path) {
      if (path.size() > 1) {
        line.resize(lengths[path.size() - 2]);
        absl::StrAppend(&line, ";", frame_text(names.function(tree[node].function)));
      }
      lengths.resize(path.size() - 1);
      lengths.push_back(line.size());
      const uint64_t weight = own_weight(tree, node, settings_.weight);
      if (weight != 0) absl::StrAppend(&text_, line, " ", weight, "\n");
      if (text_.size() >= kExportPiece) {
        more = (*write_)(text_);
        text_.clear();
      }
      return more;
    });
    return more;
  }

  const ExportSettings settings_;
  Replay* replay_ = nullptr;
  const WriteText* write_ = nullptr;
  std::string text_;  // that is not yet written
};

}  // namespace

std::unique_ptr<Exporter> make_folded_export(const ExportSettings& settings) {
  return std::make_unique<FoldedExport>(settings);
}

}  // namespace arctrace::reader
