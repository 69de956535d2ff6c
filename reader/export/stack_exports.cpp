// --to=folded and --to=callgrind: texts of sums by stack.
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/export/export_formats.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/stack_weights.hpp"
#include "reader/trace/text_escape.hpp"

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
  // Returns false if the receiver wants no more.
  bool write_group(const TreeGroup& group) {
    const CallTree& tree = *group.tree;
    ExportNames names(replay_->definitions(), replay_->shown_names());
    std::string line = frame_text(group_name(group, settings_.grouping));
    // The path that `line` shows, and the length of `line` up to each of its nodes.
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

namespace {

class CallgrindExport : public Exporter {
 public:
  explicit CallgrindExport(const ExportSettings& settings) : settings_(settings) {}

  void begin(Replay& replay, const WriteText& write) override {
    replay_ = &replay;
    write_ = &write;
  }

  absl::Status finish() override {
    const TreeGroups groups(*replay_, settings_.grouping,
                            TreeGroups::Of::kThreadsAndInterrupts);
    for (const TreeGroup& group : groups.groups()) add_group(group);
    ExportNames names(replay_->definitions(), replay_->shown_names());
    write_head(names);
    for (const auto& [caller, sums] : sums_) {
      write_place("", caller, names);
      absl::StrAppend(&text_, "0 ", sums.own, "\n");
      for (const auto& [callee, edge] : sums.calls) {
        write_place("c", callee, names);
        absl::StrAppend(&text_, "calls=", edge.calls, " 0\n0 ", edge.inclusive, "\n");
      }
      text_ += '\n';
      if (text_.size() < kExportPiece) continue;
      if (!(*write_)(text_)) break;
      text_.clear();
    }
    absl::StrAppend(&text_, "totals: ", total_, "\n");
    (*write_)(text_);
    return absl::OkStatus();
  }

 private:
  // The number of a function, or of a group: groups are numbered after all functions.
  using Place = uint64_t;
  struct Edge {
    uint64_t calls = 0, inclusive = 0;
  };
  struct Sums {
    uint64_t own = 0;
    absl::btree_map<Place, Edge> calls;
  };

  void add_group(const TreeGroup& group) {
    const CallTree& tree = *group.tree;
    const Place top = replay_->functions().size() + group_names_.size();
    group_names_.push_back(group_name(group, settings_.grouping));
    std::vector<std::pair<NodeIndex, bool>> nodes;  // and whether it is recursive
    std::vector<FunctionId> stack;
    std::vector<uint32_t> on_stack(replay_->functions().size());
    for_each_node(group, [&](NodeIndex node, std::span<const NodeIndex> path) {
      for (; stack.size() >= path.size(); stack.pop_back()) --on_stack[stack.back()];
      stack.push_back(tree[node].function);
      nodes.emplace_back(node, on_stack[stack.back()]++ != 0);
      return true;
    });
    absl::flat_hash_map<NodeIndex, uint64_t> inclusive;
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
      const auto [node, is_recursive] = *at;
      const uint64_t own = own_weight(tree, node, settings_.weight);
      const uint64_t all = own + inclusive[node];
      const bool is_top = node == group.root;
      sums_[is_top ? top : tree[node].function].own += own;
      total_ += own;
      if (is_top) continue;
      const NodeIndex parent = tree[node].parent;
      inclusive[parent] += all;
      Edge& edge = sums_[parent == group.root ? top : tree[parent].function]
                       .calls[tree[node].function];
      edge.calls += tree[node].calls;
      // The time of a recursive call is part of the outer call's already.
      if (!is_recursive) edge.inclusive += all;
    }
  }

  void write_head(ExportNames& names) {
    absl::StrAppend(&text_, "# callgrind format\nversion: 1\ncreator: arctrace\n");
    if (settings_.session != nullptr) {
      std::string command;
      for (const std::string& argument : settings_.session->recorder_command) {
        absl::StrAppend(&command, command.empty() ? "" : " ", safe_name(argument));
      }
      if (!command.empty()) absl::StrAppend(&text_, "cmd: ", command, "\n");
    }
    const std::string missing = missing_line(settings_.summary, replay_->definitions());
    if (!missing.empty()) absl::StrAppend(&text_, "desc: ", missing, "\n");
    for (const LeftOutLine& line : left_out_lines(*replay_, names)) {
      absl::StrAppend(&text_, "desc: ", line.text, "\n");
    }
    absl::StrAppend(&text_, "positions: line\nevents: ", weight_name(settings_.weight),
                    "\nsummary: ", total_, "\n\nfl=(1) ???\n");
  }

  // The module and the name, in full where they come first.
  void write_place(const char* prefix, Place place, ExportNames& names) {
    const size_t functions = replay_->functions().size();
    const std::string_view module =
        place < functions ? replay_->functions()[static_cast<FunctionId>(place)].module
                          : std::string_view();
    const auto [found, added] =
        modules_.try_emplace(std::string(module), modules_.size() + 1);
    absl::StrAppend(&text_, prefix, "ob=(", found->second, ")");
    if (added) {
      absl::StrAppend(&text_, " ", module.empty() ? "???" : safe_name(module));
    }
    absl::StrAppend(&text_, "\n", prefix, "fn=(", place, ")");
    if (place >= is_named_.size()) is_named_.resize(place + 1);
    if (!is_named_[place]) {
      is_named_[place] = true;
      absl::StrAppend(&text_, " ",
                      place < functions ? names.function(static_cast<FunctionId>(place))
                                        : group_names_[place - functions]);
    }
    text_ += '\n';
  }

  const ExportSettings settings_;
  Replay* replay_ = nullptr;
  const WriteText* write_ = nullptr;
  absl::btree_map<Place, Sums> sums_;
  std::vector<std::string> group_names_;
  absl::flat_hash_map<std::string, size_t> modules_;
  std::vector<bool> is_named_;  // by Place
  uint64_t total_ = 0;
  std::string text_;  // that is not yet written
};

}  // namespace

std::unique_ptr<Exporter> make_callgrind_export(const ExportSettings& settings) {
  return std::make_unique<CallgrindExport>(settings);
}

}  // namespace arctrace::reader
