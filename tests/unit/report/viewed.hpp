// A script replayed for a view, and the view's output: text, or parsed JSON.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/report/view_types.hpp"
#include "tests/support/record_script.hpp"

namespace arctrace::testing {

using Json = nlohmann::json;

// Describes arguments and results of calls, and nothing of other records.
inline void describe_values(const reader::Record& record, reader::FieldSink& out) {
  if (record.type == ARCTRACE_TYPE_ARGUMENTS) out.args(record.body, "");
  if (record.type == ARCTRACE_TYPE_RESULT) out.retval(record.body, "");
}

// The text that `view` writes when `script` is replayed for it.
inline std::string text_of(reader::View& view, const RecordScript& script,
                           reader::ReplayOptions options = {}) {
  options.listener = view.call_listener();
  options.schedule = view.schedule_listener();
  reader::Replay replay(script.definitions, nullptr, options);
  std::string text;
  const reader::WriteText write = [&](std::string_view piece) {
    text += piece;
    return true;
  };
  view.begin_text(replay, write);
  script.replay(replay);
  CHECK(view.write_text(replay, write).ok());
  return text;
}

// The same as JSON: an object with the members that the view writes.
inline Json json_of(reader::View& view, const RecordScript& script,
                    reader::ReplayOptions options = {}) {
  options.listener = view.call_listener();
  options.schedule = view.schedule_listener();
  reader::Replay replay(script.definitions, nullptr, options);
  std::string text;
  reader::JsonWriter json([&](std::string_view piece) {
    text += piece;
    return true;
  });
  json.begin_object();
  view.begin_json(replay, json);
  script.replay(replay);
  CHECK(view.write_json(replay, json).ok());
  json.end();
  json.finish();
  return Json::parse(text);
}

// Views of a script by their names, with the options of a report.
struct Viewed {
  // `script` must outlive this object.
  explicit Viewed(const RecordScript& viewed) : script(viewed) {
    settings.describe = describe_values;
    settings.definitions = &viewed.definitions;
  }
  explicit Viewed(RecordScript&&) = delete;

  // The text of a view; without a grouping: by the view's own.
  std::string text(const char* view, std::optional<reader::Grouping> grouping = {}) {
    settings.is_json = false;
    return text_of(*make(view, grouping), script, replay);
  }
  Json json(const char* view, std::optional<reader::Grouping> grouping = {}) {
    settings.is_json = true;
    return json_of(*make(view, grouping), script, replay);
  }

  const RecordScript& script;
  reader::ViewSettings settings;
  reader::ReplayOptions replay;

 private:
  std::unique_ptr<reader::View> make(const char* name,
                                     std::optional<reader::Grouping> grouping) {
    const reader::ViewType* type = reader::find_view_type(name);
    REQUIRE(type != nullptr);
    reader::ViewSettings made = settings;
    made.grouping = grouping.value_or(type->grouping.value_or(reader::Grouping::kThread));
    made.min_duration_ns = replay.filter.min_duration_ns;
    return type->make(made);
  }
};

// The lines of a section of a text, without its head, up to an empty line.
inline std::vector<std::string> section_lines(const std::string& text,
                                              const std::string& head) {
  std::vector<std::string> lines;
  size_t at = text.find(head);
  REQUIRE(at != std::string::npos);
  at = text.find('\n', at) + 1;
  while (at < text.size() && text[at] != '\n') {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The sums of a row, in JSON as in all views that have sums.
struct Sums {
  uint64_t calls = 0, self_ns = 0, total_ns = 0;
  bool operator==(const Sums&) const = default;
};
inline Sums sums_of(const Json& row) {
  return {row.at("calls"), row.at("base_ns"), row.at("cum_ns")};
}

// IBM's acceptance program, one iteration: main 100, mainA 30, mainB 70, ... in us.
inline RecordScript treetest() {
  RecordScript script;
  const reader::ThreadIndex thread = script.program(7, "treetest");
  int64_t now = 0;
  script.enter(thread, now, "main");
  const auto call = [&](const char* outer,
                        std::initializer_list<std::pair<int, int>> in) {
    script.enter(thread, now, outer);
    for (const auto& [letter, share] : in) {
      script.enter(thread, now, std::string(outer) + static_cast<char>(letter));
      now += int64_t{share} * 1000;
      script.exit(thread, now);
    }
    script.exit(thread, now);
  };
  call("mainA", {{'A', 10}, {'B', 20}});
  call("mainB", {{'A', 30}, {'B', 40}});
  script.exit(thread, now);
  return script;
}

}  // namespace arctrace::testing
