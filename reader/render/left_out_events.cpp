#include "reader/render/left_out_events.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {

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
