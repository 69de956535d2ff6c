#include "reader/ui/model/page_summary.hpp"

#include <string>
#include <vector>

namespace arctrace::reader {
namespace {

void write_section(const char* name, const SummarySection& section, JsonWriter& json) {
  json.key(name);
  const std::vector<std::string> lines = section.lines();
  if (lines.empty()) return json.value(nullptr);
  json.begin_object();
  json.member("head", safe_text(section.head));
  write_lines_json("lines", lines, json);
  json.end();
}

}  // namespace

PageSummary::PageSummary(const PageFacts& facts)
    : groups_(facts.replay, Grouping::kAll),
      serving_(facts.parts.serving()),
      busy_(facts.replay, serving_, groups_.groups().front()),
      labels_(facts.replay, false),
      facts_{.replay = facts.replay,
             .session = facts.session,
             .summary = facts.summary,
             .all = groups_.groups().front(),
             .times = facts.parts.times(),
             .ends = facts.parts.ends(),
             .log = nullptr,
             .serving = serving_,
             .gaps = facts.gaps} {}

void PageSummary::write_recording_json(JsonWriter& json) {
  write_lines_json("recording", recording_rows(facts_, labels_, {}), json);
}

void PageSummary::write_crash_json(JsonWriter& json) {
  write_section("crash", crash_section(facts_, labels_, {}), json);
  write_section("other_crashes", other_crashes_section(facts_, labels_, {}), json);
}

void PageSummary::write_serving_json(JsonWriter& json) {
  write_section("serving", serving_section(facts_, labels_, {}), json);
}

}  // namespace arctrace::reader
