#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/export/export_formats.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/gzip_writer.hpp"
#include "reader/export/stack_weights.hpp"

namespace arctrace::reader {
namespace {

using protozero::pbf_writer;
using Tag = uint32_t;

// Field numbers of pprof's profile.proto.
namespace profile {
constexpr Tag kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5,
              kString = 6, kTime = 9, kDuration = 10, kComment = 13, kDefaultType = 14;
}
namespace value_type {
constexpr Tag kType = 1, kUnit = 2;
}
namespace sample {
constexpr Tag kLocations = 1, kValues = 2, kLabel = 3;
}
namespace label {
constexpr Tag kKey = 1, kText = 2, kNumber = 3;
}
namespace mapping {
constexpr Tag kId = 1, kFile = 5, kHasFunctions = 7;
}
namespace location {
constexpr Tag kId = 1, kMapping = 2, kLine = 4;
}
namespace line {
constexpr Tag kFunction = 1;
}
namespace function {
constexpr Tag kId = 1, kName = 2, kSystemName = 3;
}

class PprofExport : public Exporter {
 public:
  explicit PprofExport(const ExportSettings& settings) : settings_(settings) {
    text_id("");  // the first one must be empty
  }

  void begin(Replay& replay, const WriteText& write) override {
    replay_ = &replay;
    write_ = &write;
  }

  absl::Status finish() override {
    GzipWriter gzip(*write_);
    const TreeGroups groups(*replay_, settings_.grouping,
                            TreeGroups::Of::kThreadsAndInterrupts);
    add_head();
    for (const TreeGroup& group : groups.groups()) add_samples(group, gzip);
    for (const std::string& text : texts_) {
      pbf_writer(bytes_).add_string(profile::kString, text);
      flush(gzip);
    }
    gzip.add(bytes_);
    gzip.finish();
    return absl::OkStatus();
  }

 private:
  void flush(GzipWriter& gzip) {
    if (bytes_.size() < kExportPiece) return;
    gzip.add(bytes_);
    bytes_.clear();
  }

  // The values of each sample, in their order.
  std::vector<ExportWeight> weights() const {
    std::vector<ExportWeight> all = {ExportWeight::kCount, ExportWeight::kWall};
    if (replay_->has_dispatches()) {
      all.push_back(ExportWeight::kCpu);
      all.push_back(ExportWeight::kOffCpu);
    }
    return all;
  }

  static const char* type_of(ExportWeight weight) {
    switch (weight) {
      case ExportWeight::kWall:
        break;
      case ExportWeight::kCpu:
        return "cpu";
      case ExportWeight::kOffCpu:
        return "off-cpu";
      case ExportWeight::kCount:
        return "calls";
    }
    return "wall";
  }

  void add_head() {
    pbf_writer out(bytes_);
    for (const ExportWeight weight : weights()) {
      pbf_writer type(out, profile::kSampleType);
      type.add_int64(value_type::kType, text_id(type_of(weight)));
      type.add_int64(value_type::kUnit,
                     text_id(weight == ExportWeight::kCount ? "count" : "nanoseconds"));
    }
    out.add_int64(profile::kDefaultType, text_id(type_of(settings_.weight)));
    ExportNames names(replay_->definitions(), replay_->shown_names());
    const std::string missing = missing_line(settings_.summary, replay_->definitions());
    if (!missing.empty()) out.add_int64(profile::kComment, text_id(missing));
    for (const LeftOutLine& line : left_out_lines(*replay_, names)) {
      out.add_int64(profile::kComment, text_id(line.text));
    }
    if (settings_.session == nullptr || settings_.summary == nullptr) return;
    out.add_int64(profile::kTime,
                  static_cast<int64_t>(settings_.session->start_realtime_ns));
    out.add_int64(profile::kDuration, settings_.summary->duration_ns);
  }

  void add_samples(const TreeGroup& group, GzipWriter& gzip) {
    const CallTree& tree = *group.tree;
    const std::string labels = labels_of(group);
    std::vector<uint64_t> locations;
    // The time of a group outside of calls belongs to a function with the group's name.
    const uint64_t bottom = location_of_group(group);
    const std::vector<ExportWeight> all_weights = weights();
    for_each_stack(group, all_weights, [&](const WeightedStack& stack) {
      // pprof wants locations from the innermost to the outermost.
      locations.clear();
      if (stack.innermost.has_value()) {
        locations.push_back(location_of(*stack.innermost));
        locations.push_back(location_of_left_out());
      }
      for (size_t i = stack.path.size() - 1; i > 0; --i) {
        locations.push_back(location_of(tree[stack.path[i]].function));
      }
      locations.push_back(bottom);
      std::string made;
      pbf_writer out(made);
      out.add_packed_uint64(sample::kLocations, locations.begin(), locations.end());
      out.add_packed_int64(sample::kValues, stack.values.begin(), stack.values.end());
      made += labels;
      pbf_writer(bytes_).add_message(profile::kSample, made);
      flush(gzip);
      return true;
    });
  }

  std::string labels_of(const TreeGroup& group) {
    std::string labels;
    if (settings_.grouping == Grouping::kAll || settings_.grouping == Grouping::kName) {
      return labels;
    }
    pbf_writer out(labels);
    const auto add_number = [&](const char* key, uint32_t number) {
      pbf_writer made(out, sample::kLabel);
      made.add_int64(label::kKey, text_id(key));
      made.add_int64(label::kNumber, number);
    };
    add_number("pid", group.pid);
    if (settings_.grouping == Grouping::kThread) {
      add_number("tid", group.tid);
      pbf_writer made(out, sample::kLabel);
      made.add_int64(label::kKey, text_id("thread"));
      made.add_int64(label::kText, text_id(safe_name(group.name)));
    }
    return labels;
  }

  uint64_t location_of(FunctionId function) {
    if (function >= locations_.size()) locations_.resize(function + size_t{1});
    uint64_t& location = locations_[function];
    if (location == 0) {
      const Function& facts = replay_->functions()[function];
      location = add_location(safe_name(facts.name), mapping_of(facts.module));
    }
    return location;
  }

  uint64_t location_of_group(const TreeGroup& group) {
    const auto [found, added] =
        group_locations_.try_emplace(group_name(group, settings_.grouping), 0);
    if (added) found->second = add_location(found->first, 0);
    return found->second;
  }

  uint64_t location_of_left_out() {
    if (left_out_ == 0) left_out_ = add_location(kLeftOutName, 0);
    return left_out_;
  }

  // A function and its location have the same id.
  uint64_t add_location(const std::string& name, uint64_t in_mapping) {
    const uint64_t id = ++location_count_;
    const int64_t text = text_id(name);
    pbf_writer out(bytes_);
    {
      pbf_writer made(out, profile::kFunction);
      made.add_uint64(function::kId, id);
      made.add_int64(function::kName, text);
      made.add_int64(function::kSystemName, text);
    }
    pbf_writer made(out, profile::kLocation);
    made.add_uint64(location::kId, id);
    if (in_mapping != 0) made.add_uint64(location::kMapping, in_mapping);
    pbf_writer where(made, location::kLine);
    where.add_uint64(line::kFunction, id);
    return id;
  }

  // Returns 0 if the function has no mapping.
  uint64_t mapping_of(std::string_view module) {
    if (module.empty()) return 0;
    const auto [found, added] =
        mappings_.try_emplace(std::string(module), mappings_.size() + 1);
    if (added) {
      const int64_t file = text_id(safe_name(module));
      pbf_writer out(bytes_);
      pbf_writer made(out, profile::kMapping);
      made.add_uint64(mapping::kId, found->second);
      made.add_int64(mapping::kFile, file);
      made.add_bool(mapping::kHasFunctions, true);
    }
    return found->second;
  }

  int64_t text_id(const std::string& text) {
    const auto [found, added] =
        text_ids_.try_emplace(text, static_cast<int64_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return found->second;
  }

  const ExportSettings settings_;
  Replay* replay_ = nullptr;
  const WriteText* write_ = nullptr;
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, int64_t> text_ids_;
  std::vector<uint64_t> locations_;  // by FunctionId; 0: none yet
  uint64_t left_out_ = 0;            // 0: none yet
  absl::flat_hash_map<std::string, uint64_t> group_locations_;
  absl::flat_hash_map<std::string, uint64_t> mappings_;  // by path
  uint64_t location_count_ = 0;
  std::string bytes_;  // that are not yet compressed
};

}  // namespace

std::unique_ptr<Exporter> make_pprof_export(const ExportSettings& settings) {
  return std::make_unique<PprofExport>(settings);
}

}  // namespace arctrace::reader
