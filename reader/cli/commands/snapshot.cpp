// arctrace snapshot: writes what the buffer of a live session holds into a trace file.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/record/recording_end.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recording/snapshot_file.hpp"

namespace arctrace::cli {
namespace {

struct SnapshotOptions {
  std::string from;
  recording::OutputFile output;
  std::string definitions;
};

absl::StatusOr<int> snapshot(const SnapshotOptions& options) {
  const absl::StatusOr<std::string> path = find_session(options.from);
  if (!path.ok()) return path.status();
  const absl::StatusOr<Buffer> buffer = Buffer::open(*path, BufferAccess::kRead);
  if (!buffer.ok()) return buffer.status();
  recording::SnapshotFileOptions file;
  file.output = options.output;
  file.earlier = options.definitions;
  file.command_line = {"arctrace", "snapshot", options.from, "-o", options.output.path};
  file.is_live = true;
  if (absl::Status s = write_and_tell(*buffer, file); !s.ok()) return s;
  return 0;
}

}  // namespace

Runner add_snapshot(CLI::App& root) {
  auto options = std::make_shared<SnapshotOptions>();
  CLI::App* app =
      root.add_subcommand("snapshot", "write what a live session's buffer holds");
  app->add_option("from", options->from, "a session's name, or its buffer's file")
      ->required()
      ->type_name("SESSION");
  add_output_option(*app, options->output);
  add_definitions_option(*app, options->definitions);
  app->footer("Neither the buffer nor its writers are disturbed.");
  return [options] { return snapshot(*options); };
}

}  // namespace arctrace::cli
