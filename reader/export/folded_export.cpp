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
    const TreeGroups groups(*replay_, settings_.grouping,
                            TreeGroups::Of::kThreadsAndInterrupts);
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
    // The path that `line` has, and the length up to each of its nodes.
    std::vector<NodeIndex> nodes = {group.root};
    std::vector<size_t> lengths = {line.size()};
    bool more = true;
    for_each_stack(group, {&settings_.weight, 1}, [&](const WeightedStack& stack) {
      const auto same =
          std::mismatch(nodes.begin(), nodes.end(), stack.path.begin(), stack.path.end());
      nodes.erase(same.first, nodes.end());
      lengths.resize(nodes.size());
      line.resize(lengths.back());
      for (const NodeIndex node : stack.path.subspan(nodes.size())) {
        absl::StrAppend(&line, ";", frame_text(names.function(tree[node].function)));
        nodes.push_back(node);
        lengths.push_back(line.size());
      }
      text_ += line;
      if (stack.innermost.has_value()) {
        absl::StrAppend(&text_, ";", kLeftOutName, ";",
                        frame_text(names.function(*stack.innermost)));
      }
      absl::StrAppend(&text_, " ", stack.values.front(), "\n");
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
