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

// Adds a time in microseconds, the format's unit, with decimals down to the nanosecond.
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
  // Commas stand between events only, so the first one loses its comma.
  if (!std::exchange(has_events_, true)) event.remove_prefix(1);
  text_ += event;
  if (text_.size() < kExportPiece) return;
  (*write_)(text_);
  text_.clear();
}

namespace {

// Numbers of lanes begin above the kernel's largest number of a thread.
constexpr uint32_t kFirstLane = 1u << 22;

}  // namespace

ChromeLanes::ChromeLanes(const Definitions& definitions, const ExportNames& names,
                         ChromeEvents& events)
    : definitions_(definitions), names_(names), events_(events), next_lane_(kFirstLane) {
  add_programs();
}

// A process that executes a program becomes another process here, but stays one to a
// viewer.
void ChromeLanes::add_programs() {
  const auto processes = definitions_.processes();
  for (ProcessIndex i = 0; i < processes.size(); ++i) {
    std::string& programs = programs_[processes[i].pid];
    const std::string program = names_.process(i);
    const bool is_same = programs == program || programs.ends_with(" > " + program);
    if (is_same || programs.size() > kSafeNameMax) continue;
    if (!programs.empty()) programs += " > ";
    programs += program;
  }
}

const std::string& ChromeLanes::ids_of(const LaneKey& lane) {
  const bool is_plain = lane.kind == LaneKind::kOfCalls;
  if (is_plain && recent_.second != nullptr && recent_.first == lane.thread) {
    return *recent_.second;
  }
  const auto found = ids_.find(lane);
  if (found != ids_.end()) {
    // The pointer is valid until a lane is added, which moves the entries and clears
    // recent_.
    if (is_plain) recent_ = {lane.thread, &found->second};
    return found->second;
  }
  const Thread* thread = definitions_.thread(lane.thread);
  const uint32_t pid = definitions_.pid_of(lane.thread);
  const uint32_t tid = is_plain ? (thread == nullptr ? 0 : thread->tid) : next_lane_++;
  recent_ = {kNoIndex, nullptr};
  name_lane(lane, pid, tid);
  return ids_[lane] = absl::StrCat(",\"pid\":", pid, ",\"tid\":", tid);
}

// "worker: coroutine 3"
std::string ChromeLanes::full_name(const LaneKey& lane) const {
  std::string name = lane_name(lane, definitions_, names_);
  if (lane.kind == LaneKind::kOfCalls) return name;
  const LaneKey calls{lane.thread, LaneKind::kOfCalls, 0};
  return absl::StrCat(lane_name(calls, definitions_, names_), ": ", name);
}

void ChromeLanes::name_lane(const LaneKey& lane, uint32_t pid, uint32_t tid) {
  const std::string ids = absl::StrCat(",\"pid\":", pid, ",\"tid\":", tid);
  const auto add = [&](const char* name, const std::string& key,
                       const std::string& value) {
    events_.begin("M", ids);
    events_.add_name(absl::StrCat("\"", name, "\""));
    events_.add_args(absl::StrCat("\"", key, "\":", value));
    events_.add();
  };
  if (const auto program = programs_.find(pid); program != programs_.end()) {
    add("process_name", "name", json_quoted(program->second));
    programs_.erase(program);
  }
  add("thread_name", "name", json_quoted(full_name(lane)));
  // A thread's lanes stand together.
  const uint64_t order =
      (uint64_t{lane.thread} + 1) << 3 | static_cast<uint32_t>(lane.kind);
  add("thread_sort_index", "sort_index", absl::StrCat(order & INT32_MAX));
}

}  // namespace arctrace::reader
