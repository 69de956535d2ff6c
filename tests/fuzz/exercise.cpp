#include "tests/fuzz/exercise.hpp"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "reader/analysis/invariants.hpp"
#include "reader/cli/commands/info_json.hpp"
#include "reader/cli/commands/info_text.hpp"
#include "reader/render/record_describer.hpp"
#include "reader/report/flow_view.hpp"
#include "reader/report/function_views.hpp"
#include "reader/report/threads_view.hpp"
#include "reader/report/tree_view.hpp"
#include "reader/report/wakers_view.hpp"
#include "reader/trace/content_check.hpp"

namespace arctrace::fuzz {
namespace {

using namespace reader;

// Both views of what the kernel recorded.
struct Schedules : ScheduleListener {
  explicit Schedules(const ViewOptions& options) : threads(options), wakers(options) {}
  void state_ended(const StateInfo& state) override {
    threads.state_ended(state);
    wakers.state_ended(state);
  }
  ThreadsView threads;
  WakersView wakers;
};

class Exercise {
 public:
  explicit Exercise(Trace& trace)
      : trace_(trace),
        write_([this](std::string_view text) {
          written_ += text.size();
          return true;
        }),
        flow_(
            shown_, 0,
            [this](const Record& record, bool json, std::string& out) {
              describe(record, json, out);
            },
            &write_, nullptr),
        replay_(trace.definitions(), nullptr, options()),
        describer_(trace, replay_.resolver(), {true, true}),
        content_(trace) {}

  void run() {
    flow_.begin(replay_);
    int64_t last_ns = INT64_MIN;
    const absl::Status status = trace_.read([&](const Record& record) {
      require(record.time_ns >= last_ns, "records are in order of time");
      last_ns = record.time_ns;
      content_.check_untrusted(record);
      replay_.add(record);
      std::string members;
      describe(record, true, members);
      return true;
    });
    require(status.ok(), "what is in memory can be read");
    replay_.finish();
    flow_.finish();
    require(broken_invariants(replay_).empty(), "the invariants of reports");
    write_views();
    write_(cli::info_text(trace_));
    require(nlohmann::json::accept(cli::info_json(trace_)), "info is JSON");
  }

 private:
  ReplayOptions options() {
    ReplayOptions made;
    made.listener = &flow_;
    made.schedule = &schedule_;
    made.all_threads = true;
    made.max_findings = 10;
    return made;
  }

  void describe(const Record& record, bool json, std::string& out) {
    cli::TextFields text(out);
    cli::JsonFields members(out);
    describer_.describe(record, {}, json ? static_cast<cli::FieldSink&>(members) : text);
  }

  void write_views() {
    const TreeGroups threads(replay_, Grouping::kThread);
    const TreeGroups all(replay_, Grouping::kAll);
    write_tree_text(threads, replay_, shown_, write_);
    write_flat_text(all, replay_, shown_, write_);
    schedule_.threads.write_text(replay_, write_);
    schedule_.wakers.write_text(replay_, write_);
    std::string text;
    JsonWriter json([&](std::string_view piece) {
      text += piece;
      return true;
    });
    json.begin_object();
    write_tree_json(threads, replay_, shown_, json);
    write_arcs_json(all, replay_, shown_, json);
    json.key("schedule").begin_object();
    schedule_.threads.write_json(replay_, json);
    schedule_.wakers.write_json(replay_, json);
    json.end();
    json.end();
    json.finish();
    require(nlohmann::json::accept(text), "reports are JSON");
  }

  Trace& trace_;
  ViewOptions shown_;
  size_t written_ = 0;
  const WriteText write_;
  FlowView flow_;
  Schedules schedule_{shown_};
  Replay replay_;
  cli::RecordDescriber describer_;
  ContentChecker content_;
};

}  // namespace

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

bool exercise_trace(std::vector<std::byte> bytes) {
  absl::StatusOr<Trace> trace =
      Trace::open(memory_input("input", std::move(bytes)), {10});
  if (!trace.ok()) {
    require(trace.status().message().find('\n') == std::string_view::npos,
            "an error is one line");
    return false;
  }
  Exercise(*trace).run();
  return true;
}

}  // namespace arctrace::fuzz
