// arctrace list: the user's sessions, those that were left behind too.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "reader/cli/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/render/output.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

// One without a name belongs to its recorder: without it, it was left behind.
std::string state_text(const FoundSession& session, const reader::BufferState& buffer) {
  if (buffer.collector_alive) {
    return absl::StrCat("collector ", buffer.collector_pid);
  }
  return session.name == session.path ? "left behind" : "no collector";
}

absl::StatusOr<int> list(Format format) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::string text;
  for (const FoundSession& session : find_sessions()) {
    const absl::StatusOr<reader::Trace> trace = reader::Trace::open(session.path);
    if (!trace.ok() || trace->buffer() == nullptr) continue;  // gone, or being made
    const reader::BufferState& buffer = *trace->buffer();
    const auto alive = std::count_if(buffer.slots.begin(), buffer.slots.end(),
                                     [](const auto& slot) { return slot.alive; });
    const std::string state = state_text(session, buffer);
    const std::string mode = reader::mode_text(trace->session().mode);
    json.push_back({{"name", session.name},
                    {"file", session.path},
                    {"mode", mode},
                    {"recording", buffer.gate != 0},
                    {"writers", alive},
                    {"collector_pid", buffer.collector_alive ? buffer.collector_pid : 0},
                    {"state", state}});
    absl::StrAppendFormat(&text, "%-32s %-9s %-3s %5d writers  %s\n",
                          reader::escaped(session.name), mode,
                          buffer.gate != 0 ? "on" : "off", alive, state);
  }
  Output output;
  output.write(format == Format::kJson ? json.dump(2) + "\n" : text);
  if (absl::Status status = output.finish(); !status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_list(CLI::App& root) {
  auto format = std::make_shared<Format>(Format::kText);
  CLI::App* app = root.add_subcommand("list", "list your sessions");
  add_format_option(*app, *format);
  app->footer(
      "Name, mode, whether recording is on, living writers, collector. A session that "
      "was\n"
      "left behind by its recorder can be read, recovered (arctrace recover), and "
      "removed\n"
      "(arctrace destroy).");
  return [format] { return list(*format); };
}

}  // namespace arctrace::cli
