// arctrace snapshot, and arctrace recover: what a buffer holds, as a trace file.
#include "src/recorder/snapshot/snapshot.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "reader/cli/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/render/session_text.hpp"
#include "reader/symbols/core_file.hpp"
#include "reader/trace/readable_file.hpp"
#include "src/buffer/pinned_map.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

struct SnapshotOptions {
  std::string from;
  std::string output;
  std::string definitions;  // of recover: an earlier file of the session
};

absl::StatusOr<int> write_out(const Buffer& buffer, const std::string& command,
                              const SnapshotOptions& options, bool is_live) {
  SnapshotPast past;
  if (!options.definitions.empty()) {
    auto definitions = read_definitions_untrusted(options.definitions, buffer.header());
    if (!definitions.ok()) return definitions.status();
    past.definitions = *std::move(definitions);
  }
  absl::StatusOr<TraceFile> file = TraceFile::create(options.output);
  if (!file.ok()) return file.status();
  past.command_line = {"arctrace", command, options.from, "-o", options.output};
  past.syncs = buffer_syncs(buffer, is_live);
  const DrainTotals totals = write_snapshot_file(buffer, *file, past);
  if (file->error() != 0) {
    return absl::ErrnoToStatus(file->error(), absl::StrCat("writing ", options.output));
  }
  if (absl::Status published = file->publish(); !published.ok()) return published;
  std::fprintf(stderr, "arctrace: %s, %llu bytes, %s\n",
               count_text(totals.records, "record").c_str(),
               static_cast<unsigned long long>(file->bytes()), options.output.c_str());
  return 0;
}

absl::StatusOr<int> snapshot(const SnapshotOptions& options) {
  const absl::StatusOr<Buffer> buffer =
      Buffer::open(file_or_session(options.from), BufferAccess::kRead);
  if (!buffer.ok()) return buffer.status();
  return write_out(*buffer, "snapshot", options, true);
}

// Copies the buffer out of `path`: a buffer's own file or map, or a core.
absl::StatusOr<Buffer> find_buffer(const std::string& path) {
  const absl::StatusOr<int> opened = reader::open_readable(path);
  if (!opened.ok()) return opened.status();
  const int fd = *opened;
  const absl::Cleanup closer = [fd] { ::close(fd); };
  uint64_t magic = 0;
  const ssize_t got = ::pread(fd, &magic, sizeof magic, 0);
  if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("reading ", path));
  if (magic == ARCTRACE_FILE_MAGIC) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": a trace file, which can be read as it is, also if it is cut off"));
  }
  if (magic == ARCTRACE_SESSION_MAGIC) {
    return Buffer::copy_untrusted(fd, 0, UINT64_MAX, path);
  }
  const absl::StatusOr<reader::CorePart> part =
      reader::find_in_core_untrusted(fd, path, ARCTRACE_SESSION_MAGIC);
  if (!part.ok()) return part.status();
  return Buffer::copy_untrusted(fd, part->offset, part->size, path);
}

absl::StatusOr<int> recover(const SnapshotOptions& options) {
  const std::string path = file_or_session(options.from);
  const absl::StatusOr<Buffer> buffer = find_buffer(path);
  if (!buffer.ok()) return buffer.status();
  // A map is of this kernel, whose clock goes on; a file may be from anywhere.
  return write_out(*buffer, "recover", options, is_pinned_map(path.c_str()));
}

CLI::App* add(CLI::App& root, SnapshotOptions& options, const char* name,
              const char* what, const char* from) {
  CLI::App* app = root.add_subcommand(name, what);
  app->add_option("from", options.from, from)->required()->type_name("SESSION");
  add_output_option(*app, options.output);
  return app;
}

}  // namespace

Runner add_snapshot(CLI::App& root) {
  auto options = std::make_shared<SnapshotOptions>();
  add(root, *options, "snapshot", "write what a live session's buffer holds",
      "a session's name, or its buffer's file")
      ->footer("Neither the buffer nor its writers are disturbed.");
  return [options] { return snapshot(*options); };
}

Runner add_recover(CLI::App& root) {
  auto options = std::make_shared<SnapshotOptions>();
  CLI::App* app = add(
      root, *options, "recover", "write what is left of a session whose recorder died",
      "a session's name, its buffer's file, or a core of a traced process");
  app->add_option(
         "-d,--definitions", options->definitions,
         "with the names that are in FILE, which the recorder wrote until it died")
      ->check(not_empty())
      ->type_name("FILE");
  app->footer(
      "Sessions that were left behind are shown by arctrace list, also those that "
      "the\n"
      "kernel wrote, in /run/arctrace. A core holds the\n"
      "buffer if bit 3 of /proc/PID/coredump_filter was set (0x3b, say).");
  return [options] { return recover(*options); };
}

}  // namespace arctrace::cli
