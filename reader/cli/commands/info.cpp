// arctrace info: shows what a trace file or a buffer is and what it holds.
#include "reader/render/info.hpp"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/render/output.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {
namespace {

struct InfoOptions {
  std::vector<std::string> paths;
  OutputFormat format = OutputFormat::kText;
  bool verbose = false;
  TerminalOptions terminal;
};

uint64_t written(const reader::Trace& trace) {
  uint64_t sum = 0;
  for (const auto& slot : trace.buffer()->slots) sum += slot.written_all;
  return sum;
}

// How fast a live buffer is written to, measured over 200 ms; nothing for other traces.
absl::StatusOr<std::optional<double>> records_per_second(const reader::Trace& trace) {
  const auto is_alive = [](const auto& slot) { return slot.alive; };
  const reader::BufferState* buffer = trace.buffer();
  if (buffer == nullptr || buffer->gate == 0 ||
      std::none_of(buffer->slots.begin(), buffer->slots.end(), is_alive)) {
    return std::nullopt;
  }
  const auto begin = std::chrono::steady_clock::now();
  const absl::StatusOr<reader::Trace> first = reader::Trace::open(trace.session().path);
  if (!first.ok()) return first.status();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const absl::StatusOr<reader::Trace> second = reader::Trace::open(trace.session().path);
  if (!second.ok()) return second.status();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  if (second->buffer() == nullptr || first->buffer() == nullptr) return std::nullopt;
  return static_cast<double>(written(*second) - written(*first)) / passed.count();
}

absl::StatusOr<int> info(const InfoOptions& options) {
  absl::StatusOr<reader::Trace> trace =
      open_with_abandoned_buffer(files_or_sessions(options.paths), {});
  if (!trace.ok()) return trace.status();
  reader::PatchList patches;
  // Reading the trace counts and checks everything that is needed.
  reader::EnabledList enabled;
  std::optional<ReadProgress> progress(std::in_place, *trace);
  absl::Status status = trace->read([&](const reader::Record& record) {
    progress->count(record);
    patches.note(record);
    enabled.note(record);
    return true;
  });
  progress.reset();
  if (!status.ok()) return status;
  const absl::StatusOr<std::optional<double>> rate = records_per_second(*trace);
  if (!rate.ok()) return rate.status();
  // A Symbolizer opens the programs' files.
  const auto names = options.verbose ? std::make_unique<reader::Symbolizer>() : nullptr;
  reader::Output output;
  if (options.format == OutputFormat::kText) options.terminal.apply_to(output);
  if (options.format == OutputFormat::kJson) {
    reader::JsonWriter json(output.writer(), reader::JsonWriter::Layout::kIndented);
    reader::write_info_json(*trace, *rate, json, patches, names.get(), enabled);
    json.finish();
  } else {
    output.write(reader::info_text(*trace, *rate, patches, names.get(), enabled));
  }
  status = output.finish();
  if (!status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_info(CLI::App& root) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* app = root.add_subcommand("info", "show what a trace or a buffer holds");
  add_files_option(*app, options->paths);
  app->add_flag("-v,--verbose", options->verbose,
                "name each function that record -P has left or switched off");
  add_format_option(*app, options->format);
  add_text_options(*app, options->terminal);
  app->footer(absl::StrCat(
      "Shows the session, its clock, processes, threads, modules, counts, losses and\n"
      "findings; of a buffer, live or left behind in /dev/shm, also its blocks and\n"
      "writer slots.\n",
      kFilesNote));
  return [options] { return info(*options); };
}

}  // namespace arctrace::cli
