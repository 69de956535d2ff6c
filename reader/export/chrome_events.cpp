#include "reader/export/chrome_events.hpp"

#include <absl/strings/str_cat.h>

#include <charconv>
#include <utility>

#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

std::string json_quoted(std::string_view text) {
  const std::string members =
      json_members([&](JsonWriter& json) { json.key("").value(text); });
  return members.substr(members.find(':') + 1);
}

void ChromeEvents::begin_file(const WriteText& write, const Session* session) {
  write_ = &write;
  text_ = "{\"displayTimeUnit\":\"ns\"";
  if (session != nullptr) {
    absl::StrAppend(&text_, ",\"otherData\":{", json_members([&](JsonWriter& json) {
      json.member("producer", "arctrace");
      json.member("start_realtime_ns", session->start_realtime_ns);
      json.member("host", session->host);
    }),
                    "}");
  }
  text_ += ",\"traceEvents\":[";
}

void ChromeEvents::finish_file(std::span<const LeftOutLine> left_out) {
  text_ += "\n]";
  if (!left_out.empty()) {
    absl::StrAppend(&text_, ",", json_members([&](JsonWriter& json) {
      json.key("left_out").begin_array();
      for (const LeftOutLine& line : left_out) json.value(std::string_view(line.text));
      json.end();
    }));
  }
  text_ += "}\n";
  (*write_)(text_);
  text_.clear();
}

void ChromeEvents::begin(std::string_view phase, std::string_view ids) {
  event_ = ",\n{\"ph\":\"";
  event_ += phase;
  event_ += '"';
  event_ += ids;
}

// Microseconds, in which the format counts, to the nanosecond.
void ChromeEvents::add_number(int64_t time_ns) {
  constexpr uint64_t kNsInUs = 1000;
  char digits[24];
  uint64_t ns = static_cast<uint64_t>(time_ns);
  if (time_ns < 0) {
    event_ += '-';
    ns = 0 - ns;
  }
  const auto whole = std::to_chars(digits, digits + sizeof digits, ns / kNsInUs);
  event_.append(digits, whole.ptr);
  const auto rest = static_cast<uint32_t>(ns % kNsInUs);
  if (rest == 0) return;
  const char fraction[] = {'.', static_cast<char>('0' + rest / 100),
                           static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
  event_.append(fraction, rest % 100 == 0 ? 2 : rest % 10 == 0 ? 3 : 4);
}

void ChromeEvents::add_time(int64_t time_ns) {
  event_ += ",\"ts\":";
  add_number(time_ns);
}

void ChromeEvents::add_duration(int64_t start_ns, int64_t stop_ns) {
  event_ += ",\"dur\":";
  add_number(stop_ns - start_ns);
}

void ChromeEvents::add_name(std::string_view quoted_name) {
  event_ += ",\"name\":";
  event_ += quoted_name;
}

void ChromeEvents::add_args(std::string_view args) {
  if (args.empty()) return;
  event_ += ",\"args\":{";
  event_ += args;
  event_ += '}';
}

void ChromeEvents::add() {
  event_ += '}';
  add_taken(event_);
}

std::string ChromeEvents::take() {
  event_ += '}';
  return std::exchange(event_, {});
}

void ChromeEvents::add_taken(std::string_view event) {
  // The comma is between events.
  if (!std::exchange(has_events_, true)) event.remove_prefix(1);
  text_ += event;
  if (text_.size() < kExportPiece) return;
  (*write_)(text_);
  text_.clear();
}

}  // namespace arctrace::reader
