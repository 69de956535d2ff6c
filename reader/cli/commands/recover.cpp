// arctrace recover: writes the rest of a session whose recorder died into a trace file;
// arctrace snapshot: does so with the buffer of a live session.
#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <string>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/render/output.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/trace.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/open_buffer.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recording/output_file.hpp"

namespace arctrace::cli {
namespace {

struct RecoverOptions {
  std::string from;
  recording::OutputFile output;
  std::string definitions;
  std::string merged;
};

// Copies the buffer out of `path`: a buffer's own file or map, or a core.
absl::StatusOr<recorder::Buffer> find_buffer(const std::string& path) {
  const absl::StatusOr<int> opened = reader::open_readable(path);
  if (!opened.ok()) return opened.status();
  const int fd = *opened;
  const absl::Cleanup closer = [fd] { ::close(fd); };
  uint64_t magic = 0;
  const ssize_t got = ::pread(fd, &magic, sizeof magic, 0);
  if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("reading ", path));
  if (magic == ARCTRACE_FILE_MAGIC) {
    if (const auto trace = reader::Trace::open(path); trace.ok()) {
      warn_of_abandoned_buffer(trace->session());
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is a trace file, which can be read as it is, even if it is cut "
                     "off: run arctrace report or dump"));
  }
  if (magic == ARCTRACE_SESSION_MAGIC) {
    return recorder::Buffer::copy_untrusted(fd, 0, UINT64_MAX, path);
  }
  const absl::StatusOr<reader::CorePart> part =
      reader::find_in_core_untrusted(fd, path, ARCTRACE_SESSION_MAGIC);
  if (!part.ok()) return part.status();
  return recorder::Buffer::copy_untrusted(fd, part->offset, part->size, path);
}

// Whether a collector has taken records out of the buffer, which are then in its file
// only.
bool is_in_part_elsewhere(const recorder::Buffer& buffer) {
  return buffer.view().geometry().mode != ARCTRACE_MODE_OVERWRITE &&
         IpcAtomics::load_relaxed(buffer.view().control().freed) != 0;
}

absl::StatusOr<int> recover(const RecoverOptions& options) {
  const std::string path = recorder::file_or_session(options.from);
  const absl::StatusOr<recorder::Buffer> buffer = find_buffer(path);
  if (!buffer.ok()) return buffer.status();
  recording::SnapshotFileOptions file;
  file.output = options.output;
  file.merges = !options.merged.empty();
  file.earlier = file.merges ? options.merged : options.definitions;
  file.command_line = {"arctrace", "recover", options.from, "-o", options.output.path};
  // A map is of the running kernel, whose clock goes on; a file may be from anywhere.
  file.is_live = is_pinned_map(path.c_str());
  if (absl::Status s = write_and_tell(*buffer, file); !s.ok()) return s;
  if (!file.merges && is_in_part_elsewhere(*buffer)) {
    reader::print_warning(
        "what the recorder had written to its file before it died is not in it: "
        "-m FILE adds that");
  }
  return 0;
}

}  // namespace

Runner add_recover(CLI::App& root) {
  auto options = std::make_shared<RecoverOptions>();
  CLI::App* app = root.add_subcommand(
      "recover", "write what is left of a session whose recorder died");
  app->add_option("from", options->from,
                  "a session's name, its buffer's file, or a core of a traced process")
      ->required()
      ->type_name("SESSION");
  add_output_option(*app, options->output);
  add_definitions_option(*app, options->definitions);
  app->add_option("-m,--merge", options->merged,
                  "write what FILE has as well, which the recorder wrote until it died: "
                  "the whole recording")
      ->check(not_empty())
      ->excludes("--definitions")
      ->type_name("FILE");
  app->footer(
      "arctrace list shows the sessions that are left behind, including those that the\n"
      "kernel wrote, in /run/arctrace. A core holds the buffer if bit 3 of\n"
      "/proc/PID/coredump_filter was set, for example by 0x3b.");
  return [options] { return recover(*options); };
}

// ---- arctrace snapshot --------------------------------------------------------------

namespace {

struct SnapshotOptions {
  std::string from;
  recording::OutputFile output;
  std::string definitions;
};

absl::StatusOr<int> snapshot(const SnapshotOptions& options) {
  const absl::StatusOr<std::string> path = recorder::find_session(options.from);
  if (!path.ok()) return path.status();
  const absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::open(*path, BufferAccess::kRead);
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
