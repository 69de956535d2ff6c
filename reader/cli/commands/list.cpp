// arctrace list: the user's sessions, including those whose recorder is gone.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/terminal.hpp"
#include "reader/render/text_style.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/buffer/clock.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

// A session without a name belongs to its recorder, and should have ended with it.
std::string state_text(const recorder::FoundSession& session,
                       const reader::BufferState& buffer) {
  if (buffer.collector_alive) {
    return absl::StrCat("collector ", buffer.collector_pid);
  }
  return session.name == session.path ? "left behind" : "no collector";
}

struct Listed {
  std::string name, path, mode, state;
  bool is_recording = false;
  int64_t writers = 0;  // alive
  std::string command;
  uint64_t age_ns = 0;
  uint32_t collector_pid = 0;
  uid_t user = 0;  // the file's owner
};

// The collector's command line if one lives, else that of the session's first program.
std::string command_of(const reader::Trace& trace) {
  const reader::BufferState& buffer = *trace.buffer();
  if (buffer.collector_alive) {
    std::vector<std::string> line;
    std::ifstream file(absl::StrCat("/proc/", buffer.collector_pid, "/cmdline"));
    for (std::string argument; std::getline(file, argument, '\0');) {
      line.push_back(argument);
    }
    if (!line.empty()) return reader::command_line_text(line);
  }
  const auto processes = trace.definitions().processes();
  return processes.empty() ? "" : reader::command_line_text(processes[0].arguments);
}

uint64_t age_of(const reader::Session& session) {
  const uint64_t now = read_monotonic_ns();
  return now > session.start_monotonic_ns ? now - session.start_monotonic_ns : 0;
}

// Returns the row of a file that has the name of a session but is not read. `why` is its
// state.
Listed unreadable(const recorder::FoundSession& found, const std::string& why) {
  Listed session;
  session.name = found.name;
  session.path = found.path;
  session.mode = "-";
  session.state = why;
  session.user = found.user;
  return session;
}

std::vector<Listed> listed_sessions() {
  std::vector<Listed> sessions;
  for (const recorder::FoundSession& found : recorder::find_sessions()) {
    if (found.user != geteuid()) {
      sessions.push_back(unreadable(found, absl::StrCat("of user ", found.user)));
      continue;
    }
    const absl::StatusOr<reader::Trace> trace = reader::Trace::open(found.path);
    if (absl::IsInvalidArgument(trace.status())) {
      sessions.push_back(unreadable(found, "not a buffer"));
    }
    if (!trace.ok() || trace->buffer() == nullptr) continue;  // gone, or being made
    const reader::BufferState& buffer = *trace->buffer();
    Listed session;
    session.name = found.name;
    session.path = found.path;
    session.user = found.user;
    session.mode = reader::mode_text(trace->session().mode);
    session.state = state_text(found, buffer);
    session.is_recording = buffer.gate != 0;
    session.command = command_of(*trace);
    session.age_ns = age_of(trace->session());
    session.writers = std::count_if(buffer.slots.begin(), buffer.slots.end(),
                                    [](const auto& slot) { return slot.alive; });
    if (buffer.collector_alive) session.collector_pid = buffer.collector_pid;
    sessions.push_back(std::move(session));
  }
  return sessions;
}

// A line for each session; on a terminal the command is cut.
void write_text(const std::vector<Listed>& sessions, reader::Output& output) {
  const reader::TextStyle style = reader::terminal_style(reader::ColorMode::kAuto, false);
  for (const Listed& session : sessions) {
    const std::string line = absl::StrFormat(
        "%-32s %-9s %-3s %5d %-7s  %-18s %8ds  %s", reader::escaped(session.name),
        session.mode, session.is_recording ? "on" : "off", session.writers,
        session.writers == 1 ? "writer" : "writers", session.state,
        session.age_ns / 1'000'000'000, session.command.empty() ? "-" : session.command);
    output.write(reader::fit_line(line, style) + "\n");
  }
}

void write_json(const std::vector<Listed>& sessions, reader::JsonWriter& json) {
  json.begin_array();
  for (const Listed& session : sessions) {
    json.begin_object();
    json.member("name", session.name);
    json.member("file", session.path);
    json.member("mode", session.mode);
    json.member("recording", session.is_recording);
    json.member("writers", session.writers);
    json.member("collector_pid", session.collector_pid);
    json.member("state", session.state);
    json.member("age_ns", session.age_ns);
    json.member("command", session.command);
    json.member("uid", session.user);
    json.end();
  }
  json.end();
  json.finish();
}

absl::StatusOr<int> list(OutputFormat format) {
  const std::vector<Listed> sessions = listed_sessions();
  reader::Output output;
  if (format == OutputFormat::kJson) {
    reader::JsonWriter json(output.writer(), reader::JsonWriter::Layout::kIndented);
    write_json(sessions, json);
  } else {
    write_text(sessions, output);
  }
  if (absl::Status status = output.finish(); !status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_list(CLI::App& root) {
  auto format = std::make_shared<OutputFormat>(OutputFormat::kText);
  CLI::App* app = root.add_subcommand("list", "list your sessions");
  add_format_option(*app, *format);
  app->footer(
      "Shows the name, the mode, whether recording is on, the number of live writers,\n"
      "the collector, the age, and the command: the collector's, or if there is none\n"
      "that of the first program. A session whose recorder is gone is left behind: it "
      "can be\n"
      "read, recovered (arctrace recover) and removed (arctrace destroy).");
  return [format] { return list(*format); };
}

}  // namespace arctrace::cli
