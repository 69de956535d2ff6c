#include "tests/fuzz/exercise.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/function_totals.hpp"
#include "reader/export/export_formats.hpp"
#include "reader/render/info.hpp"
#include "reader/report/view_types.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/content_check.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/key_scan.hpp"

namespace arctrace::fuzz {
namespace {

using namespace reader;

// Hands the states of threads to several views.
struct Schedules : ScheduleListener {
  void state_ended(const StateInfo& state) override {
    for (ScheduleListener* listener : listeners) listener->state_ended(state);
  }
  std::vector<ScheduleListener*> listeners;
};

// Runs every view of one replay, the flow as text while it is replayed, the others as
// text and JSON at its end.
class Exercise {
 public:
  explicit Exercise(Trace& trace)
      : trace_(trace),
        write_([this](std::string_view text) {
          written_ += text.size();
          return true;
        }),
        describe_([this](const Record& record, FieldSink& out) {
          describer_.describe(record, {}, out);
        }),
        flow_(make_view("flow")),
        replay_(trace.definitions(), nullptr, options()),
        describer_(trace, replay_.resolver(), {true, true}),
        content_(trace) {}

  void run() {
    flow_->begin_text(replay_, write_);
    PatchList patches;
    int64_t last_ns = INT64_MIN;
    const absl::Status status = trace_.read([&](const Record& record) {
      require(record.time_ns >= last_ns, "records are in order of time");
      last_ns = record.time_ns;
      content_.check_untrusted(record);
      replay_.add(record);
      patches.note(record);
      content_members(describe_, record);
      return true;
    });
    require(status.ok(), "what is in memory can be read");
    replay_.finish();
    require(flow_->write_text(replay_, write_).ok(), "the flow is not on disk");
    require(broken_invariants(replay_).empty(), "the invariants of reports");
    write_views();
    write_(info_text(trace_, std::nullopt, patches));
    require(is_json([&](JsonWriter& json) {
              write_info_json(trace_, std::nullopt, json, patches);
            }),
            "info is JSON");
  }

 private:
  std::unique_ptr<View> make_view(const char* name) {
    const ViewType* type = find_view_type(name);
    require(type != nullptr, "the view exists");
    ViewSettings settings;
    settings.grouping = type->grouping.value_or(Grouping::kThread);
    settings.definitions = &trace_.definitions();
    settings.describe = describe_;
    return type->make(settings);
  }

  ReplayOptions options() {
    for (const ViewType& type : view_types()) {
      std::unique_ptr<View> view = make_view(type.name);
      if (view->call_listener() != nullptr)
        continue;  // only one listener is possible, the flow's
      if (ScheduleListener* listener = view->schedule_listener(); listener != nullptr) {
        schedules_.listeners.push_back(listener);
      }
      views_.push_back(std::move(view));
    }
    ReplayOptions made;
    made.listener = flow_->call_listener();
    made.schedule = &schedules_;
    made.all_threads = true;
    made.max_findings = 10;
    return made;
  }

  template <class Write>
  static bool is_json(const Write& write) {
    std::string text;
    JsonWriter json([&](std::string_view piece) {
      text += piece;
      return true;
    });
    write(json);
    json.finish();
    return nlohmann::json::accept(text);
  }

  void write_views() {
    for (const std::unique_ptr<View>& view : views_) {
      require(view->write_text(replay_, write_).ok(), "the view is not on disk");
      require(is_json([&](JsonWriter& json) {
                json.begin_object();
                require(view->write_json(replay_, json).ok(), "the view is not on disk");
                json.end();
              }),
              "reports are JSON");
    }
  }

  Trace& trace_;
  size_t written_ = 0;
  const WriteText write_;
  const DescribeRecord describe_;
  std::vector<std::unique_ptr<View>> views_;
  Schedules schedules_;
  const std::unique_ptr<View> flow_;
  Replay replay_;
  RecordDescriber describer_;
  ContentChecker content_;
};

// Runs one export, with the gaps as the command hands them out.
std::string exported(Trace& trace, const ExportFormat& format) {
  std::string text;
  const WriteText write = [&](std::string_view piece) {
    text += piece;
    return true;
  };
  std::optional<RecordDescriber> describer;
  ExportSettings settings;
  settings.definitions = &trace.definitions();
  settings.session = &trace.session();
  settings.summary = &trace.summary();
  settings.describe = [&](const Record& record, FieldSink& out) {
    describer->describe(record, {}, out);
  };
  const std::unique_ptr<Exporter> exporter = format.make(settings);
  ReplayOptions options;
  options.listener = exporter->call_listener();
  options.schedule = exporter->schedule_listener();
  options.all_threads = true;
  options.max_findings = 10;
  Replay replay(trace.definitions(), nullptr, options);
  describer.emplace(trace, replay.resolver(), DescribeOptions());
  GapFinder gaps(trace.definitions(), &trace.clock(), trace.session().mode);
  exporter->begin(replay, write);
  const absl::Status status = trace.read([&](const Record& record) {
    replay.add(record);
    if (const std::optional<Gap> gap = gaps.add(record)) exporter->gap(*gap);
    return true;
  });
  require(status.ok(), "what is in memory can be read");
  replay.finish();
  for (const Gap& gap : gaps.finish(&trace.summary())) exporter->gap(gap);
  require(exporter->finish().ok(), "the export is not on disk");
  return text;
}

void exercise_exports(Trace& trace) {
  for (const ExportFormat& format : export_formats()) {
    const std::string text = exported(trace, format);
    const std::string_view name = format.name;
    if (name == "chrome" || name == "speedscope") {
      require(nlohmann::json::accept(text), "the export is JSON");
    }
    if (!format.is_binary) {
      require(std::none_of(text.begin(), text.end(),
                           [](char c) {
                             return static_cast<unsigned char>(c) < ' ' && c != '\n';
                           }),
              "an export of text has no control characters");
    }
  }
}

// Applies a condition of --where to each of the first fields that events have.
void exercise_conditions(Trace& trace) {
  constexpr size_t kConditionsMax = 8;
  const Definitions& definitions = trace.definitions();
  std::vector<std::string> conditions;
  for (size_t i = 0; i < definitions.processes().size(); ++i) {
    for (const EventLayout* layout : definitions.layouts(static_cast<ProcessIndex>(i))) {
      for (const EventField& field : layout->fields) {
        if (conditions.size() == kConditionsMax) break;
        // Fields of all types can be equal to 1. The name may be hostile, too.
        const std::string text = field.name + " = 1";
        const FieldCondition condition = split_condition(text);
        if (condition.field == field.name && condition.operand == "1") {
          conditions.push_back(text);
        }
      }
    }
  }
  absl::StatusOr<EventFilter> filter = EventFilter::make(definitions, conditions);
  require(filter.ok(), "the fields are there");
  uint64_t events = 0, admitted = 0;
  const absl::Status status = trace.read([&](const Record& record) {
    if (record.type != ARCTRACE_TYPE_EVENT) return true;
    ++events;
    if (filter->admits(record)) ++admitted;
    return true;
  });
  require(status.ok(), "what is in memory can be read");
  require(admitted + filter->left_out() == events, "each event is shown or counted");
}

// Reads the names that a file has itself. No file that it names is opened.
void exercise_symbols(const Trace& trace, std::vector<std::byte> bytes) {
  const std::unique_ptr<Input> input = memory_input("input", std::move(bytes));
  UsedKeys keys;
  const auto goes_on = [] { return true; };
  require(scan_keys_untrusted(*input, trace, goes_on, keys).ok(),
          "what is in memory can be searched");
  const StoredSymbols& stored = trace.definitions().symbols();
  Symbolizer symbolizer;
  for (const auto& [process, key] : keys) {
    const Module* module = trace.definitions().module_at(process, key, 0);
    if (module == nullptr) continue;
    const uint64_t address = key - module->bias;
    const StoredFunction* found = stored.find(module->path, module->build_id, address);
    if (found == nullptr || found->name.empty()) continue;
    require(symbolizer.resolve(stored, module->path, module->build_id, address).start ==
                found->start,
            "a stored name is that of its address");
  }
}

// Reads the middle of the trace as a range, which uses an index, with all that a check of
// the file does.
void exercise_range(const Summary& sums, const std::vector<std::byte>& bytes) {
  const auto third = static_cast<int64_t>(static_cast<uint64_t>(sums.duration_ns) / 3);
  TimeRange range;
  range.from_ns = sums.first_ns + third;
  range.until_ns = sums.last_ns - third;
  for (const OpenOptions& options :
       {OpenOptions{.max_findings = 10, .range = range},
        OpenOptions{.max_findings = 10, .verifies_checksums = true}}) {
    absl::StatusOr<Trace> trace = Trace::open(memory_input("input", bytes), options);
    require(trace.ok(), "what was opened is opened again");
    ReplayOptions replayed;
    replayed.filter.from_ns = options.range.from_ns;
    replayed.filter.until_ns = options.range.until_ns;
    replayed.max_findings = 10;
    Replay replay(trace->definitions(), nullptr, replayed);
    int64_t last_ns = INT64_MIN;
    const absl::Status status = trace->read([&](const Record& record) {
      require(record.time_ns >= last_ns, "records are in order of time");
      last_ns = record.time_ns;
      replay.add(record);
      return true;
    });
    require(status.ok(), "what is in memory can be read");
    replay.finish();
    require(broken_invariants(replay).empty(), "the invariants of reports");
  }
}

}  // namespace

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

bool exercise_trace(std::vector<std::byte> bytes) {
  absl::StatusOr<Trace> trace = Trace::open(memory_input("input", bytes), {10});
  if (!trace.ok()) {
    require(trace.status().message().find('\n') == std::string_view::npos,
            "an error is one line");
    return false;
  }
  Exercise(*trace).run();
  exercise_exports(*trace);
  exercise_conditions(*trace);
  exercise_range(trace->summary(), bytes);
  if (trace->buffer() == nullptr) exercise_symbols(*trace, std::move(bytes));
  return true;
}

}  // namespace arctrace::fuzz
