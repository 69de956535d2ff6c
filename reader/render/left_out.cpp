#include "reader/render/left_out.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// The most causes that the line below a table names.
constexpr size_t kCausesNamed = 4;

std::string moment_text(int64_t time_ns) {
  return duration_text(static_cast<uint64_t>(std::max(time_ns, int64_t{0})));
}

// Returns the time from the beginning of the first to the end of the last.
LeftOut span_of(const std::vector<LeftOut>& all) {
  LeftOut span = all.front();
  for (const LeftOut& one : all) {
    span.from_ns = span.from_ns.has_value() && one.from_ns.has_value()
                       ? std::optional(std::min(*span.from_ns, *one.from_ns))
                       : std::nullopt;
    span.to_ns = span.to_ns.has_value() && one.to_ns.has_value()
                     ? std::optional(std::max(*span.to_ns, *one.to_ns))
                     : std::nullopt;
  }
  return span;
}

// " from 500 ms on", " from 500 ms to 700 ms", " to 700 ms"; empty if it is all the time.
std::string when_text(const LeftOut& what) {
  std::string text;
  if (what.from_ns.has_value()) text = " from " + moment_text(*what.from_ns);
  if (what.to_ns.has_value()) {
    absl::StrAppend(&text, " to ", moment_text(*what.to_ns));
  } else if (what.from_ns.has_value()) {
    text += " on";
  }
  return text;
}

void write_when_json(const LeftOut& what, JsonWriter& json) {
  json.member("by", what.by);
  json.member("from_ns", what.from_ns);
  json.member("to_ns", what.to_ns);
}

}  // namespace

std::string recorded_note(const RecordedState& state) {
  if (state.is_complete()) return {};
  std::string text;
  if (!state.partly.empty()) text = "partly" + when_text(span_of(state.partly));
  if (state.until.has_value()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "until ",
                    moment_text(state.until->from_ns.value_or(0)));
  }
  return " [" + text + "]";
}

std::string left_out_text(const LeftOut& what) {
  return escaped(what.by) + when_text(what);
}

std::string without_rows_text(const CallsLeftOut& cause) {
  return absl::StrCat("left out by ", left_out_text(cause.what),
                      ": functions without a row, whose time is their callers'");
}

std::string recorded_legend(const RecordedStates& states, bool has_notes) {
  std::string text, without_rows;
  size_t named = 0, others = 0;
  for (const CallsLeftOut& cause : states.causes()) {
    if (cause.functions != 0 && !has_notes) continue;
    if (named++ >= kCausesNamed) {
      ++others;
    } else if (cause.functions == 0) {
      absl::StrAppend(&without_rows, "  ", without_rows_text(cause), "\n");
    } else {
      absl::StrAppend(&text, text.empty() ? "" : "; ", left_out_text(cause.what));
    }
  }
  if (!text.empty()) {
    text = absl::StrCat(
        "  [until], [partly]: calls were left out, and their time is their "
        "callers' own: ",
        text, "\n");
  }
  if (others != 0) absl::StrAppend(&without_rows, "  (", others, " more filters)\n");
  return text + without_rows;
}

void write_recorded_json(const RecordedState& state, JsonWriter& json) {
  if (state.is_complete()) return;
  json.key("recorded").begin_object();
  if (state.until.has_value()) {
    json.member("until_ns", state.until->from_ns);
    json.member("until_by", state.until->by);
  }
  if (!state.partly.empty()) {
    json.key("partly").begin_array();
    for (const LeftOut& what : state.partly) {
      json.begin_object();
      write_when_json(what, json);
      json.end();
    }
    json.end();
  }
  json.end();
}

void write_left_out_json(std::span<const CallsLeftOut> causes, JsonWriter& json) {
  json.key("left_out").begin_array();
  for (const CallsLeftOut& cause : causes) {
    json.begin_object();
    write_when_json(cause.what, json);
    json.member("functions", cause.functions);
    json.end();
  }
  json.end();
}

std::string where_text(const EventFilter& filter) {
  std::string text;
  for (const std::string& condition : filter.texts()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", "--where '", escaped(condition), "'");
  }
  return text;
}

std::string left_out_events_text(const EventFilter& filter) {
  return absl::StrCat(count_text(filter.left_out(), "event"), " left out by ",
                      where_text(filter));
}

std::string filtered_out_text(uint64_t count) {
  return absl::StrCat(
      grouped_text(count),
      " events, instants and counters left out by the recording's filter");
}

void write_left_out_line(const EventFilter& filter, int64_t time_ns, JsonWriter& json) {
  json.begin_object();
  json.member("time_ns", time_ns);
  json.member("type", "LEFT_OUT");
  write_left_out_events_json(filter, json);
  json.end();
}

void write_left_out_events_json(const EventFilter& filter, JsonWriter& json) {
  if (!filter.is_set()) return;
  json.member("events_left_out", filter.left_out());
  json.key("where").begin_array();
  for (const std::string& condition : filter.texts()) json.value(condition);
  json.end();
}

}  // namespace arctrace::reader
