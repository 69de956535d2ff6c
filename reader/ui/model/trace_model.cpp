#include "reader/ui/model/trace_model.hpp"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reader/render/safe_name.hpp"
#include "reader/render/terminal.hpp"
#include "reader/ui/model/call_detail.hpp"
#include "reader/ui/model/source_text.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kFlameNodesMax = 40'000;
// Of a function's source: lines before the one that it begins with, and of all.
constexpr uint32_t kSourceLinesBefore = 2;
constexpr uint32_t kSourceLines = 40;

// `text`: what the members of an object add to it.
template <class Write>
std::string json_object(const Write& write) {
  std::string text;
  JsonWriter json([&text](std::string_view piece) {
    text += piece;
    return true;
  });
  json.begin_object();
  write(json);
  json.end();
  json.finish();
  return text;
}

int64_t plus(int64_t time_ns, uint64_t more_ns) {
  const auto more = static_cast<int64_t>(std::min<uint64_t>(more_ns, INT64_MAX));
  return time_ns > INT64_MAX - more ? INT64_MAX : time_ns + more;
}

int64_t minus(int64_t time_ns, uint64_t less_ns) {
  const auto less = static_cast<int64_t>(std::min<uint64_t>(less_ns, INT64_MAX));
  return time_ns < INT64_MIN + less ? INT64_MIN : time_ns - less;
}

}  // namespace

// What another pass collected, of a part of the time.
struct TraceModel::Range {
  Range(TraceModel& model, Times of, size_t max_items)
      : times(of),
        parts(model.trace_.definitions(), max_items),
        replay(model.trace_.definitions(), &model.symbolizer_, options(model)) {}

  ReplayOptions options(TraceModel& model) {
    ReplayOptions made = model.replay_options();
    made.filter.from_ns = times.from_ns;
    made.filter.until_ns = times.until_ns;
    made.listener = &parts;
    if (model.trace_.definitions().has_dispatches()) made.schedule = &parts;
    return made;
  }

  const Times times;
  PageParts parts;
  Replay replay;
  std::vector<FunctionId> ids;  // the page's, by those of `replay`
};

TraceModel::TraceModel(Trace& trace, Symbolizer& symbolizer, Goes goes)
    : trace_(trace),
      symbolizer_(symbolizer),
      goes_(std::move(goes)),
      parts_(std::make_unique<PageParts>(trace.definitions(), kItemsMax)),
      replay_(std::make_unique<Replay>(trace.definitions(), &symbolizer,
                                       [this] {
                                         ReplayOptions made = replay_options();
                                         made.listener = parts_.get();
                                         if (trace_.definitions().has_dispatches()) {
                                           made.schedule = parts_.get();
                                         }
                                         return made;
                                       }())),
      gaps_(trace.definitions()) {}

TraceModel::~TraceModel() = default;

ReplayOptions TraceModel::replay_options() const {
  ReplayOptions made;
  made.has_wake_ups = !trace_.session().has_perf_records;
  made.ticks = &trace_.clock();
  made.mode = trace_.session().mode;
  return made;
}

// The one way to read a part of the trace. It reads all that is before, because the
// stacks of threads follow from it.
absl::Status TraceModel::read_records(int64_t until_ns,
                                      const std::function<void(const Record&)>& to) {
  uint64_t records = 0;
  bool goes = true;
  absl::Status status = trace_.read([&](const Record& record) {
    if (record.time_ns > until_ns) return false;
    to(record);
    if (++records % kRecordsBetweenChecks == 0) goes = goes_(records);
    return goes;
  });
  if (!status.ok()) return status;
  return goes ? absl::OkStatus() : absl::CancelledError("interrupted");
}

absl::Status TraceModel::read_all() {
  GapFinder finder(trace_.definitions(), &trace_.clock(), trace_.session().mode);
  parts_->begin(*replay_);
  absl::Status status = read_records(INT64_MAX, [&](const Record& record) {
    replay_->add(record);
    if (const std::optional<Gap> gap = finder.add(record)) gaps_.add(*gap);
  });
  if (!status.ok()) return status;
  replay_->finish();
  parts_->finish();
  for (const Gap& gap : finder.finish(&trace_.summary())) gaps_.add(gap);
  times_ = times_of(*replay_);
  return absl::OkStatus();
}

PageFacts TraceModel::facts() const {
  return {*replay_, *parts_, &trace_.session(), nullptr, &gaps_};
}

std::string TraceModel::summary() const {
  return json_object([&](JsonWriter& json) {
    PageFacts all = facts();
    all.summary = &trace_.summary();
    write_facts_json(all, json);
    write_lanes_json(all, json);
    write_names_json(replay_->functions(), json);
  });
}

// The functions of another replay are found by their names.
std::vector<FunctionId> TraceModel::ids_of(const Functions& functions) {
  Functions& ours = replay_->resolver().mutable_functions();
  std::vector<FunctionId> ids = {kRootFunction, kUnknownFunction};
  for (FunctionId id = kUnknownFunction + 1; id < functions.size(); ++id) {
    const Function& function = functions[id];
    ids.push_back(ours.intern(function.module, function.name, function.location));
  }
  return ids;
}

// Sums are those of the report, which reads the trace to its end.
absl::StatusOr<TraceModel::Range*> TraceModel::sums_of(Times times) {
  for (Range& range : sums_) {
    if (range.times.from_ns == times.from_ns && range.times.until_ns == times.until_ns) {
      return &range;
    }
  }
  std::list<Range> made;
  Range& range = made.emplace_back(*this, times, 0);
  range.parts.begin(range.replay);
  absl::Status status =
      read_records(INT64_MAX, [&](const Record& record) { range.replay.add(record); });
  if (!status.ok()) return status;
  range.replay.finish();
  range.ids = ids_of(range.replay.functions());
  sums_.splice(sums_.begin(), made);
  if (sums_.size() > kRangesMax) sums_.pop_back();
  return &sums_.front();
}

// Calls that are shorter than the grain of the whole, and touch these times, are within
// the range that is read; longer ones are known.
absl::StatusOr<TraceModel::Range*> TraceModel::detail_of(Times times, uint64_t pixel_ns) {
  const uint64_t grain_ns = parts_->timeline().rows().grain_ns();
  const Times read{minus(times.from_ns, grain_ns), plus(times.until_ns, grain_ns)};
  for (Range& range : details_) {
    if (range.times.from_ns <= read.from_ns && range.times.until_ns >= read.until_ns &&
        range.parts.timeline().rows().grain_ns() <= pixel_ns) {
      return &range;
    }
  }
  // Some more, so that the next step to either side is there already.
  const uint64_t width_ns = static_cast<uint64_t>(times.until_ns - times.from_ns);
  const Times wide{minus(read.from_ns, width_ns), plus(read.until_ns, width_ns)};
  std::list<Range> made;
  Range& range = made.emplace_back(*this, wide, kRangeItemsMax);
  range.parts.begin(range.replay);
  absl::Status status = read_records(
      wide.until_ns, [&](const Record& record) { range.replay.add(record); });
  if (!status.ok()) return status;
  range.replay.finish();
  range.parts.finish();
  range.ids = ids_of(range.replay.functions());
  details_.splice(details_.begin(), made);
  if (details_.size() > kRangesMax) details_.pop_back();
  return &details_.front();
}

TimeRow TraceModel::exact_row(const Lane& lane, uint32_t level, const Range& detail,
                              Times times, uint64_t pixel_ns) const {
  const uint64_t grain_ns = parts_->timeline().rows().grain_ns();
  TimeRow row;
  const TimeRow& whole = parts_->timeline().row(lane, level);
  row.stretches =
      seen_of_row({whole.stretches, {}}, times.from_ns, times.until_ns, 1).stretches;
  const Lane* other = detail.parts.timeline().find(lane);
  if (other != nullptr) {
    const TimeRow more = seen_of_row(
        detail.parts.timeline().row(*other, level), times.from_ns, times.until_ns,
        std::max<uint64_t>(detail.parts.timeline().rows().grain_ns(), 1));
    const auto known = static_cast<std::ptrdiff_t>(row.stretches.size());
    for (Stretch stretch : more.stretches) {
      if (stretch.duration_ns() >= grain_ns) continue;
      // Those that are cut are longer than they seem.
      if ((stretch.flags & (kFrameCutStart | kFrameCutStop)) != 0) continue;
      if (level >= kStateLevels) stretch.what = detail.ids[stretch.what];
      row.stretches.push_back(stretch);
    }
    std::inplace_merge(
        row.stretches.begin(), row.stretches.begin() + known, row.stretches.end(),
        [](const Stretch& a, const Stretch& b) { return a.start_ns < b.start_ns; });
    row.crowds = more.crowds;
    if (level >= kStateLevels) {
      for (Crowd& crowd : row.crowds) crowd.what = detail.ids[crowd.what];
    }
  }
  return seen_of_row(row, times.from_ns, times.until_ns, pixel_ns);
}

absl::StatusOr<std::string> TraceModel::timeline(Times times, uint64_t pixel_ns,
                                                 const std::vector<uint32_t>& lanes,
                                                 bool exact) {
  const Timeline& whole = parts_->timeline();
  const uint64_t grain_ns = whole.rows().grain_ns();
  const bool is_known = grain_ns <= pixel_ns;
  const Range* detail = nullptr;
  if (!is_known && exact) {
    const absl::StatusOr<Range*> read = detail_of(times, pixel_ns);
    if (!read.ok()) return read.status();
    detail = *read;
    pixel_ns = std::max(pixel_ns, detail->parts.timeline().rows().grain_ns());
  } else {
    pixel_ns = std::max(pixel_ns, grain_ns);
  }
  return json_object([&](JsonWriter& json) {
    json.member("from_ns", times.from_ns);
    json.member("until_ns", times.until_ns);
    json.member("pixel_ns", pixel_ns);
    json.member("is_exact", is_known || detail != nullptr);
    json.key("lanes").begin_array();
    for (const uint32_t number : lanes) {
      if (number >= whole.lanes().size()) continue;
      const Lane& lane = whole.lanes()[number];
      json.begin_array();
      json.value(number);
      if (detail == nullptr) {
        write_rows_json(whole, lane, times.from_ns, times.until_ns, pixel_ns, json);
      } else {
        json.begin_array();
        for (uint32_t level = 0; level < lane.levels; ++level) {
          const TimeRow row = exact_row(lane, level, *detail, times, pixel_ns);
          if (row.stretches.empty() && row.crowds.empty()) continue;
          write_row_json(level, row, times.from_ns, json);
        }
        json.end();
      }
      json.end();
    }
    json.end();
  });
}

absl::StatusOr<std::string> TraceModel::totals(const Times* times) {
  if (times == nullptr) {
    return json_object([&](JsonWriter& json) { write_totals_json(facts(), {}, json); });
  }
  const absl::StatusOr<Range*> range = sums_of(*times);
  if (!range.ok()) return range.status();
  return json_object([&](JsonWriter& json) {
    write_totals_json({(*range)->replay, (*range)->parts}, (*range)->ids, json);
  });
}

absl::StatusOr<std::string> TraceModel::flame(const Times* times, Grouping grouping) {
  if (times == nullptr) {
    return json_object([&](JsonWriter& json) {
      write_flame_json(facts(), grouping, {}, kFlameNodesMax, json);
    });
  }
  const absl::StatusOr<Range*> range = sums_of(*times);
  if (!range.ok()) return range.status();
  return json_object([&](JsonWriter& json) {
    write_flame_json({(*range)->replay, (*range)->parts}, grouping, (*range)->ids,
                     kFlameNodesMax, json);
  });
}

absl::StatusOr<std::string> TraceModel::view_of(const Times* times,
                                                WriteView write_view) {
  Replay* replay = replay_.get();
  PageParts* parts = parts_.get();
  if (times != nullptr) {
    const absl::StatusOr<Range*> range = sums_of(*times);
    if (!range.ok()) return range.status();
    replay = &(*range)->replay;
    parts = &(*range)->parts;
  }
  absl::Status status;
  std::string text = json_object(
      [&](JsonWriter& json) { status = (parts->*write_view)(*replay, json); });
  if (!status.ok()) return status;
  return text;
}

absl::StatusOr<std::string> TraceModel::locks(const Times* times) {
  return view_of(times, &PageParts::write_locks_json);
}

absl::StatusOr<std::string> TraceModel::critical_path(const Times* times) {
  if (!has_wake_ups(facts())) {
    return absl::NotFoundError("the trace does not know what woke its threads");
  }
  return view_of(times, &PageParts::write_critical_json);
}

absl::StatusOr<std::string> TraceModel::call(uint32_t lane, uint32_t level,
                                             int64_t start_ns, int64_t stop_ns) {
  const Timeline& whole = parts_->timeline();
  if (lane >= whole.lanes().size() || level < kStateLevels) {
    return absl::NotFoundError("there is no such call");
  }
  const Lane& facts = whole.lanes()[lane];
  CallDetail detail({facts.thread, facts.coroutine, level - kStateLevels + 1, start_ns},
                    trace_.definitions());
  ReplayOptions options = replay_options();
  // A nanosecond around it, so that its begin and end are not cut.
  options.filter.from_ns = minus(start_ns, 1);
  options.filter.until_ns = plus(stop_ns, 2);
  options.listener = &detail;
  if (trace_.definitions().has_dispatches()) options.schedule = &detail;
  Replay replay(trace_.definitions(), &symbolizer_, options);
  RecordDescriber describer(trace_, replay.resolver(), {});
  detail.begin(replay, describer);
  absl::Status status = read_records(options.filter.until_ns,
                                     [&](const Record& record) { replay.add(record); });
  if (!status.ok()) return status;
  replay.finish();
  if (!detail.is_found()) return absl::NotFoundError("there is no such call");
  return json_object(
      [&](JsonWriter& json) { detail.write_json(ids_of(replay.functions()), json); });
}

absl::StatusOr<std::string> TraceModel::search(const std::string& text) {
  ArgsSearch found(text, parts_->timeline());
  ReplayOptions options = replay_options();
  options.listener = &found;
  Replay replay(trace_.definitions(), &symbolizer_, options);
  RecordDescriber describer(trace_, replay.resolver(), {});
  found.begin(describer);
  absl::Status status =
      read_records(INT64_MAX, [&](const Record& record) { replay.add(record); });
  if (!status.ok()) return status;
  replay.finish();
  return json_object(
      [&](JsonWriter& json) { found.write_json(ids_of(replay.functions()), json); });
}

absl::StatusOr<std::string> TraceModel::source(FunctionId function) {
  if (function >= replay_->functions().size()) {
    return absl::NotFoundError("there is no such function");
  }
  const std::string where = replay_->resolver().source_line(function);
  const size_t colon = where.rfind(':');
  uint32_t line = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(where.substr(colon + 1), &line)) {
    return "{}";
  }
  const std::string file = where.substr(0, colon);
  const uint32_t first = line > kSourceLinesBefore ? line - kSourceLinesBefore : 1;
  return json_object([&](JsonWriter& json) {
    json.member("file", safe_name(file));
    json.member("line", line);
    json.member("first", first);
    json.key("text").begin_array();
    for (const std::string& text : source_text(file, first, kSourceLines)) {
      json.value(text);
    }
    json.end();
  });
}

}  // namespace arctrace::reader
