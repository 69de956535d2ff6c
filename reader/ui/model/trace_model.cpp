#include "reader/ui/model/trace_model.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/render/labels.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/ui/model/page_lists.hpp"
#include "reader/ui/model/page_summary.hpp"
#include "reader/ui/model/page_totals.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kFlameNodesMax = 40'000;
// The lines of a function's source that the page shows: before its first one, and in all.
constexpr uint32_t kSourceLinesBefore = 2;
constexpr uint32_t kSourceLines = 40;
// The arguments of a call are recorded right after its entry.
constexpr uint64_t kArgsWithin_ns = 1'000'000;

}  // namespace

TraceModel::TraceModel(const TraceFiles& files, Trace known, const SymbolOptions& symbols,
                       const TraceFiles::Stops& stops)
    : files_(files),
      symbols_(symbols),
      stops_(stops),
      known_(std::move(known)),
      pass_(files, symbols, kItemsMax, stops) {
  // A buffer may have changed when it is read for the next time.
  if (known_.session().raw) return;
  ranges_ = std::make_unique<TraceRanges>(known_, &files_, symbols_, stops_);
  early_.emplace(*ranges_);
}

void TraceModel::take_whole() {
  if (is_whole_ || !pass_.is_done() || !pass_.status().ok()) return;
  is_whole_ = true;
  if (ranges_ == nullptr) {
    ranges_ = std::make_unique<TraceRanges>(pass_.trace(), nullptr, symbols_, stops_);
  }
  ranges_->take_ids(resolver().mutable_functions());
}

absl::Status TraceModel::problem() const {
  return pass_.is_done() ? pass_.status() : absl::OkStatus();
}

double TraceModel::share_read() const {
  if (pass_.is_done()) return 1;
  return early_.has_value() ? early_->blocks().share_before(pass_.time_ns()) : 0;
}

FunctionResolver& TraceModel::resolver() const {
  return is_whole_ ? pass_.replay().resolver() : early_->resolver();
}

std::span<const Lane> TraceModel::lanes() const {
  return is_whole_ ? pass_.parts().timeline().lanes() : early_->lanes();
}

// Returns the text of an object with the members that `write` adds.
template <class Write>
std::string TraceModel::object(const Write& write) const {
  std::string text;
  JsonWriter json([&text](std::string_view piece) {
    text += piece;
    return true;
  });
  json.begin_object();
  write(json);
  json.member("function_count", resolver().functions().size());
  json.member("lane_count", lanes().size());
  json.end();
  json.finish();
  return text;
}

absl::Status TraceModel::not_yet(const char* what) const {
  if (!problem().ok()) {
    return absl::UnavailableError(absl::StrCat("the whole trace could not be read: ",
                                               std::string(problem().message())));
  }
  return absl::UnavailableError(
      absl::StrCat(what, " when the whole trace has been read"));
}

std::string TraceModel::progress() const {
  const double share = share_read();
  std::optional<double> seconds_left;
  if (share > 0) seconds_left = pass_.seconds() * (1 - share) / share;
  std::optional<std::string> problem_text;
  if (!problem().ok()) problem_text = escaped(std::string(problem().message()));
  return object([&](JsonWriter& json) {
    json.member("is_whole", is_whole_);
    json.member("records", pass_.records());
    json.member("share", share);
    json.member("seconds_left", seconds_left);
    json.member("problem", problem_text);
  });
}

std::string TraceModel::summary() const {
  return object([&](JsonWriter& json) {
    if (is_whole_) {
      const PageFacts all = pass_.facts();
      write_facts_json(all, json);
      PageSummary(all).write_crash_json(json);
      write_lanes_json(all, json);
    } else {
      json.member("is_whole", false);
      early_->write_facts_json(json);
      json.key("lanes").begin_array();
      early_->write_lanes_json(0, json);
      json.end();
    }
    json.key("functions").begin_array();
    write_names_json(resolver(), 0, json);
    json.end();
  });
}

std::string TraceModel::names(size_t function, size_t lane) const {
  return object([&](JsonWriter& json) {
    json.key("functions").begin_array();
    write_names_json(resolver(), function, json);
    json.end();
    json.key("lanes").begin_array();
    if (!is_whole_) early_->write_lanes_json(lane, json);
    json.end();
  });
}

// Returns a row in which each call is exact: calls shorter than the grain of the whole
// that touch these times are within the range that is read; longer ones are known.
TimeRow TraceModel::exact_row(const Lane& lane, uint32_t level, TraceRange& detail,
                              Times times, uint64_t pixel_ns) const {
  const uint64_t grain_ns = pass_.parts().timeline().rows().grain_ns();
  TimeRow row;
  const TimeRow& whole = pass_.parts().timeline().row(lane, level);
  row.stretches =
      seen_of_row({whole.stretches, {}}, times.from_ns, times.until_ns, 1).stretches;
  const Lane* other = detail.timeline().find(lane);
  if (other != nullptr) {
    TimeRow more =
        seen_of_row(detail.timeline().row(*other, level), times.from_ns, times.until_ns,
                    std::max<uint64_t>(detail.timeline().rows().grain_ns(), 1));
    if (level >= kStateLevels) renumber(more, detail.ids());
    const auto known = static_cast<std::ptrdiff_t>(row.stretches.size());
    for (const Stretch& stretch : more.stretches) {
      if (stretch.duration_ns() >= grain_ns) continue;
      // A call that is cut is longer than it seems, and is known from the whole.
      if ((stretch.flags & (kFrameCutStart | kFrameCutStop)) != 0) continue;
      row.stretches.push_back(stretch);
    }
    std::inplace_merge(
        row.stretches.begin(), row.stretches.begin() + known, row.stretches.end(),
        [](const Stretch& a, const Stretch& b) { return a.start_ns < b.start_ns; });
    row.buckets = std::move(more.buckets);
  }
  return seen_of_row(row, times.from_ns, times.until_ns, pixel_ns);
}

absl::StatusOr<std::string> TraceModel::timeline(Times times, uint64_t pixel_ns,
                                                 const std::vector<uint32_t>& lanes,
                                                 bool exact) {
  if (!is_whole_) return early_timeline(times, pixel_ns, lanes, exact);
  const Timeline& whole = pass_.parts().timeline();
  const uint64_t grain_ns = whole.rows().grain_ns();
  const bool is_known = grain_ns <= pixel_ns;
  TraceRange* detail = nullptr;
  if (!is_known && exact) {
    // The range has some more time, so that the next step to either side needs no new
    // read.
    const Times needed{minus(times.from_ns, grain_ns), plus(times.until_ns, grain_ns)};
    const absl::StatusOr<TraceRange*> read = ranges_->detail_of(
        needed, around(needed), pixel_ns, resolver().mutable_functions());
    if (!read.ok()) return read.status();
    detail = *read;
    pixel_ns = std::max(pixel_ns, detail->timeline().rows().grain_ns());
  } else {
    pixel_ns = std::max(pixel_ns, grain_ns);
  }
  return object([&](JsonWriter& json) {
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
          if (row.stretches.empty() && row.buckets.empty()) continue;
          write_row_json(level, row, times.from_ns, json);
        }
        json.end();
      }
      json.end();
    }
    json.end();
  });
}

absl::StatusOr<std::string> TraceModel::early_timeline(Times times, uint64_t pixel_ns,
                                                       const std::vector<uint32_t>& lanes,
                                                       bool exact) {
  absl::Status status;
  std::string text = object([&](JsonWriter& json) {
    status = early_->write_timeline_json(times, pixel_ns, lanes, exact, json);
  });
  if (!status.ok()) return status;
  return text;
}

absl::StatusOr<TraceModel::Sums> TraceModel::sums_of(const Times* times) {
  if (times == nullptr) {
    if (!is_whole_) return not_yet("the sums of the whole time are known");
    return Sums{pass_.replay(), pass_.parts(), {}};
  }
  const absl::StatusOr<TraceRange*> range =
      ranges_->sums_of(*times, resolver().mutable_functions());
  if (!range.ok()) return range.status();
  return Sums{(*range)->replay(), (*range)->parts(), (*range)->ids()};
}

std::optional<uint32_t> TraceModel::lane_number(const Lane& like) const {
  return is_whole_ ? pass_.parts().timeline().number_of(like) : early_->find(like);
}

template <class Write>
absl::StatusOr<std::string> TraceModel::object_of(const Times* times,
                                                  const Write& write) {
  const absl::StatusOr<Sums> sums = sums_of(times);
  if (!sums.ok()) return sums.status();
  absl::Status status;
  std::string text = object([&](JsonWriter& json) { status = write(*sums, json); });
  if (!status.ok()) return status;
  return text;
}

absl::StatusOr<std::string> TraceModel::totals(const Times* times) {
  return object_of(times, [&](const Sums& sums, JsonWriter& json) {
    const PageFacts facts = times == nullptr ? pass_.facts()
                                             : PageFacts{sums.replay, sums.parts,
                                                         &ranges_->trace().session()};
    write_totals_json(facts, sums.ids, json);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> TraceModel::flame(const Times* times, Grouping grouping) {
  return object_of(times, [&](const Sums& sums, JsonWriter& json) {
    write_flame_json({sums.replay, sums.parts}, grouping, sums.ids, kFlameNodesMax, json);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> TraceModel::locks(const Times* times) {
  return object_of(times, [](const Sums& sums, JsonWriter& json) {
    return sums.parts.write_locks_json(sums.replay, json);
  });
}

absl::StatusOr<std::string> TraceModel::processes(const Times* times) {
  return object_of(times, [this](const Sums& sums, JsonWriter& json) {
    const auto number = [this](const Lane& like) { return lane_number(like); };
    write_processes_json(sums.replay, number, json);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> TraceModel::slowest(FunctionId function, const Times* times) {
  return object_of(times, [&](const Sums& sums, JsonWriter& json) {
    FunctionId id = function;  // in the replay of the sums
    if (!sums.ids.empty()) {
      const auto found = std::find(sums.ids.begin(), sums.ids.end(), function);
      id = static_cast<FunctionId>(found - sums.ids.begin());
    }
    const auto number = [this](const Lane& like) { return lane_number(like); };
    json.key("slowest").begin_array();
    write_slowest_json(sums.parts.slowest().of(id), number, json);
    json.end();
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> TraceModel::critical_path(const Times* times) {
  const Trace& trace = ranges_->trace();
  if (!trace.definitions().has_dispatches() || trace.session().has_perf_records) {
    return absl::NotFoundError("the trace does not know what woke its threads");
  }
  return object_of(times, [this](const Sums& sums, JsonWriter& json) {
    const auto number = [this](const Lane& like) { return lane_number(like); };
    return sums.parts.critical().write_json(sums.replay, number, json);
  });
}

// Reads a range that the call touches, and returns an object with what `write` adds.
absl::StatusOr<std::string> TraceModel::read_call(
    const CallKey& key, const TimeRange& range,
    absl::FunctionRef<void(const CallDetail&, std::span<const FunctionId>, JsonWriter&)>
        write) {
  const Trace& trace = ranges_->trace();
  CallDetail detail(key, trace.definitions());
  ReplayOptions options = replay_options_of(trace);
  options.filter.from_ns = range.from_ns;
  options.filter.until_ns = range.until_ns;
  options.listener = &detail;
  if (trace.definitions().has_dispatches()) options.schedule = &detail;
  Replay replay(trace.definitions(), &ranges_->symbolizer(), options);
  RecordDescriber describer(trace, replay.resolver(), {});
  detail.begin(replay, describer);
  if (absl::Status status = ranges_->read(range, replay); !status.ok()) return status;
  if (!detail.is_found()) return absl::NotFoundError("there is no such call");
  const std::vector<FunctionId> ids =
      ids_on_page(replay.functions(), resolver().mutable_functions());
  return object([&](JsonWriter& json) { write(detail, ids, json); });
}

absl::StatusOr<std::string> TraceModel::call(uint32_t lane, uint32_t level,
                                             int64_t start_ns, int64_t stop_ns) {
  if (lane >= lanes().size() || level < kStateLevels) {
    return absl::NotFoundError("there is no such call");
  }
  const Lane& facts = lanes()[lane];
  // The range has a nanosecond around the call, so that its begin and end are not cut.
  return read_call({facts.thread, facts.coroutine, level - kStateLevels + 1, start_ns},
                   {minus(start_ns, 1), plus(stop_ns, 2)},
                   [](const CallDetail& detail, std::span<const FunctionId> ids,
                      JsonWriter& json) { detail.write_json(ids, json); });
}

absl::StatusOr<std::string> TraceModel::args(uint32_t lane, uint32_t level,
                                             int64_t start_ns) {
  if (lane >= lanes().size() || level < kStateLevels || lanes()[lane].is_adopted) {
    return absl::NotFoundError("there is no such call");
  }
  const Lane& facts = lanes()[lane];
  return read_call({facts.thread, facts.coroutine, level - kStateLevels + 1, start_ns},
                   {minus(start_ns, 1), plus(start_ns, kArgsWithin_ns)},
                   [](const CallDetail& detail, std::span<const FunctionId> /*ids*/,
                      JsonWriter& json) { json.member("args", detail.args_text()); });
}

absl::StatusOr<std::string> TraceModel::search(const std::string& text) {
  if (!is_whole_) return not_yet("arguments can be searched");
  const Trace& trace = ranges_->trace();
  ArgsSearch found(text, pass_.parts().timeline());
  ReplayOptions options = replay_options_of(trace);
  options.listener = &found;
  Replay replay(trace.definitions(), &ranges_->symbolizer(), options);
  RecordDescriber describer(trace, replay.resolver(), {});
  found.begin(describer);
  if (absl::Status status = ranges_->read({}, replay); !status.ok()) return status;
  const std::vector<FunctionId> ids =
      ids_on_page(replay.functions(), resolver().mutable_functions());
  return object([&](JsonWriter& json) { found.write_json(ids, json); });
}

absl::StatusOr<std::string> TraceModel::source(FunctionId function) {
  if (function >= resolver().functions().size()) {
    return absl::NotFoundError("there is no such function");
  }
  const std::string where = resolver().source_line(function);
  const size_t colon = where.rfind(':');
  uint32_t line = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(where.substr(colon + 1), &line)) {
    return object([](JsonWriter& /*json*/) {});
  }
  const std::string file = where.substr(0, colon);
  const uint32_t first = line > kSourceLinesBefore ? line - kSourceLinesBefore : 1;
  return object([&](JsonWriter& json) {
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
