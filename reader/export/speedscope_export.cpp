// The export of speedscope's format: one profile for each thread and coroutine. A
// profile's events must stand together, so they are stored until the trace has been read.
// Each call must end, so calls that did not end are ended with their thread.
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/export/export_formats.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/lane_spool.hpp"
#include "reader/streams/event_stream.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {
namespace {

class SpeedscopeExport : public Exporter, private EventSink {
 public:
  explicit SpeedscopeExport(const ExportSettings& settings)
      : settings_(settings), stream_(*this, settings.min_duration_ns) {}

  ReplayListener* call_listener() override { return &stream_; }

  void begin(Replay& replay, const WriteText& write) override {
    replay_ = &replay;
    write_ = &write;
  }

  void gap(const Gap& gap) override {
    if (gaps_.size() < kGapsMax) gaps_.push_back(gap);
  }

  absl::Status finish() override;

 private:
  static constexpr size_t kGapsMax = 1000;  // that the title counts

  struct Event {
    int64_t time_ns;
    uint32_t frame;
  };
  struct Lane {
    ThreadIndex thread = kNoIndex;
    uint32_t coroutine = 0;
    int64_t first_ns = 0, last_ns = 0;
    std::vector<uint32_t> open;       // outermost first, as in frames_
    std::vector<Event> began_before;  // calls without an entry, innermost first
  };

  std::string describe(const Record& /*record*/) override { return {}; }
  bool wants_content() const override { return false; }
  void add(const StreamEvent& event) override;

  size_t lane_of(ThreadIndex thread, uint32_t coroutine, int64_t time_ns);
  uint32_t frame_of(const StreamEvent& event);
  void add_event(size_t lane, char type, int64_t time_ns, uint32_t frame);
  absl::Status write_lane(size_t index, JsonWriter& json);
  void write_frames(JsonWriter& json);
  std::string gaps_line() const;
  std::string title_of_lacks();

  const ExportSettings settings_;
  EventStream stream_;
  Replay* replay_ = nullptr;
  const WriteText* write_ = nullptr;
  absl::flat_hash_map<std::pair<ThreadIndex, uint32_t>, size_t> lane_ids_;
  std::vector<Lane> lanes_;
  // The file's frames: functions, and frames that are no calls; and the index of each in
  // `frames_` by its frame_id().
  std::vector<std::pair<FunctionId, uint16_t>> frames_;
  absl::flat_hash_map<uint64_t, uint32_t> frame_numbers_;
  LaneSpool events_;
  std::vector<Gap> gaps_;
};

std::string event_text(char type, int64_t time_ns, uint32_t frame) {
  return absl::StrCat("{\"type\":\"", std::string(1, type), "\",\"frame\":", frame,
                      ",\"at\":", time_ns, "}");
}

size_t SpeedscopeExport::lane_of(ThreadIndex thread, uint32_t coroutine,
                                 int64_t time_ns) {
  const auto [found, added] =
      lane_ids_.try_emplace(std::pair(thread, coroutine), lanes_.size());
  if (added) {
    Lane& lane = lanes_.emplace_back();
    lane.thread = thread;
    lane.coroutine = coroutine;
    lane.first_ns = lane.last_ns = time_ns;
  }
  return found->second;
}

uint32_t SpeedscopeExport::frame_of(const StreamEvent& event) {
  const auto [found, added] =
      frame_numbers_.try_emplace(ExportNames::frame_id(event.function, event.flags),
                                 static_cast<uint32_t>(frames_.size()));
  if (added) frames_.emplace_back(event.function, event.flags);
  return found->second;
}

// Times of a profile must not decrease.
void SpeedscopeExport::add_event(size_t lane, char type, int64_t time_ns,
                                 uint32_t frame) {
  lanes_[lane].last_ns = std::max(lanes_[lane].last_ns, time_ns);
  events_.add(lane, "," + event_text(type, lanes_[lane].last_ns, frame));
}

void SpeedscopeExport::add(const StreamEvent& event) {
  if (event.kind == StreamEvent::Kind::kEnter) {
    const size_t lane = lane_of(event.thread, event.coroutine, event.start_ns);
    const uint32_t frame = frame_of(event);
    add_event(lane, 'O', event.start_ns, frame);
    lanes_[lane].open.push_back(frame);
  } else if (event.kind == StreamEvent::Kind::kExit) {
    const size_t lane = lane_of(event.thread, event.coroutine, event.start_ns);
    const uint32_t frame =
        event.has_no_entry ? frame_of(event) : lanes_[lane].open.back();
    if (event.has_no_entry) {
      lanes_[lane].began_before.push_back({event.start_ns, frame});
    } else {
      lanes_[lane].open.pop_back();
    }
    add_event(lane, 'C', event.stop_ns, frame);
  }
}

// Returns "times without records: functions off, lost: full", of gaps while threads
// existed.
std::string SpeedscopeExport::gaps_line() const {
  int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;
  for (const ThreadTree& thread : replay_->threads()) {
    from_ns = std::min(from_ns, thread.start_ns);
    to_ns = std::max(to_ns, thread.stop_ns);
  }
  std::vector<std::string> reasons;
  for (const Gap& gap : gaps_) {
    if (gap.to_ns <= from_ns || (gap.from_known && gap.from_ns >= to_ns)) continue;
    const std::string reason = gap_reason_text(gap);
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(reason);
    }
  }
  if (reasons.empty()) return "";
  return absl::StrCat("times without records: ", absl::StrJoin(reasons, ", "));
}

// The file's title, if the trace lacks anything: the format has no other place for it.
std::string SpeedscopeExport::title_of_lacks() {
  constexpr size_t kPartsMax = 4;
  std::vector<std::string> parts;
  size_t more = 0;
  std::string missing = missing_line(settings_.summary, replay_->definitions());
  if (!missing.empty()) parts.push_back(std::move(missing));
  if (std::string gaps = gaps_line(); !gaps.empty()) parts.push_back(std::move(gaps));
  ExportNames names(replay_->definitions(), replay_->shown_names());
  const std::vector<LeftOutLine> lines = left_out_lines(*replay_, names);
  for (const LeftOutLine& line : lines) {
    if (parts.size() >= kPartsMax) {
      ++more;
    } else {
      parts.push_back(line.text);
    }
  }
  if (more != 0) parts.push_back(absl::StrCat("and ", more, " more"));
  return absl::StrJoin(parts, "; ");
}

absl::Status SpeedscopeExport::finish() {
  stream_.finish();
  for (const ThreadTree& thread : replay_->threads()) {
    const auto found = lane_ids_.find({thread.thread, 0});
    if (found == lane_ids_.end()) continue;
    Lane& lane = lanes_[found->second];
    lane.last_ns = std::max(lane.last_ns, thread.stop_ns);
  }
  JsonWriter json(*write_);
  json.begin_object();
  json.member("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.member("exporter", "arctrace");
  if (const std::string title = title_of_lacks(); !title.empty()) {
    json.member("name", title);
  }
  json.key("profiles").begin_array();
  for (size_t i = 0; i < lanes_.size() && json.good(); ++i) {
    if (absl::Status s = write_lane(i, json); !s.ok()) return s;
  }
  json.end();
  json.key("shared").begin_object();
  write_frames(json);
  json.end();
  json.end();
  json.finish();
  return absl::OkStatus();
}

absl::Status SpeedscopeExport::write_lane(size_t index, JsonWriter& json) {
  Lane& lane = lanes_[index];
  for (const Event& event : lane.began_before) {
    lane.first_ns = std::min(lane.first_ns, event.time_ns);
  }
  while (!lane.open.empty()) {
    add_event(index, 'C', lane.last_ns, lane.open.back());
    lane.open.pop_back();
  }
  const Definitions& definitions = *settings_.definitions;
  const Thread* thread = definitions.thread(lane.thread);
  std::string name = absl::StrCat(
      ExportNames(definitions, replay_->shown_names()).thread(lane.thread), " ",
      definitions.pid_of(lane.thread), "/", thread == nullptr ? 0 : thread->tid);
  if (lane.coroutine != 0) absl::StrAppend(&name, " coroutine ", lane.coroutine);
  json.begin_object();
  json.member("type", "evented");
  json.member("name", name);
  json.member("unit", "nanoseconds");
  json.member("startValue", lane.first_ns);
  json.member("endValue", lane.last_ns);
  json.key("events").begin_array();
  // The call that ended last began first.
  std::string first;
  for (auto event = lane.began_before.rbegin(); event != lane.began_before.rend();
       ++event) {
    absl::StrAppend(&first, ",", event_text('O', event->time_ns, event->frame));
  }
  // Each event begins with a comma; the writer adds those that are needed.
  const auto take = [&](std::string_view text) {
    if (!text.empty()) json.members(text.substr(1));
    return json.good();
  };
  take(first);
  if (absl::Status s = events_.read(index, take); !s.ok()) return s;
  json.end();
  json.end();
  return absl::OkStatus();
}

void SpeedscopeExport::write_frames(JsonWriter& json) {
  const Functions& functions = replay_->functions();
  ExportNames names(*settings_.definitions, replay_->shown_names());
  json.key("frames").begin_array();
  for (const auto& [function, flags] : frames_) {
    if (!json.good()) break;
    json.begin_object();
    json.member("name", names.frame(function, flags));
    if (!functions[function].module.empty()) {
      json.member("file", safe_name(functions[function].module));
    }
    json.end();
  }
  json.end();
}

}  // namespace

std::unique_ptr<Exporter> make_speedscope_export(const ExportSettings& settings) {
  return std::make_unique<SpeedscopeExport>(settings);
}

}  // namespace arctrace::reader
