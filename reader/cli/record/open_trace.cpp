#include "reader/cli/record/open_trace.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <arctrace/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "reader/analysis/block_times.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/render/output.hpp"
#include "reader/render/shell_text.hpp"
#include "reader/streams/spools.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recording/output_file.hpp"

namespace arctrace::cli {
namespace {

// The largest file and buffer that are merged. All of both is in memory while they are
// merged, and then in a temporary file.
constexpr uint64_t kMergedMax = uint64_t{256} << 20;

// Records that a collector has taken out of a session's buffer are in its file only.
void warn_of_collector(const reader::Session& session) {
  const absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::open(session.path, BufferAccess::kRead);
  if (!buffer.ok()) return;
  arctrace_control& control = buffer->view().control();
  if (session.mode == ARCTRACE_MODE_OVERWRITE ||
      IpcAtomics::load_relaxed(control.freed) == 0 ||
      !is_live(IpcAtomics::load_acquire(control.collector_lock))) {
    return;
  }
  reader::print_warning(absl::StrCat(
      reader::escaped(session.path), " is being collected by process ",
      IpcAtomics::load_relaxed(control.collector_pid),
      ": what that has taken out, names too, is in its file and not shown here"));
}

// The buffer that still exists of a session whose file is cut off.
struct AbandonedBuffer {
  recorder::FoundSession found;
  uint64_t size_bytes = 0;
  bool is_collected = false;  // by a collector that lives
};

std::optional<AbandonedBuffer> find_abandoned_buffer(const reader::Session& session) {
  if (session.raw || session.finished || session.disk_full_errno != 0) {
    return std::nullopt;
  }
  for (const recorder::FoundSession& found : recorder::find_sessions()) {
    if (found.user != geteuid()) continue;  // anybody can copy a session's id
    const absl::StatusOr<recorder::Buffer> buffer =
        recorder::Buffer::open(found.path, BufferAccess::kRead);
    if (!buffer.ok() ||
        !std::equal(session.id.begin(), session.id.end(), buffer->header().session_id)) {
      continue;
    }
    return AbandonedBuffer{
        found, buffer->view().geometry().total_size,
        is_live(IpcAtomics::load_acquire(buffer->view().control().collector_lock))};
  }
  return std::nullopt;
}

void warn_of(const AbandonedBuffer& left, const reader::Session& session,
             const char* where) {
  const std::string file = reader::escaped(session.path);
  reader::print_warning(left.is_collected
                            ? absl::StrCat(file, " is still being recorded")
                            : absl::StrCat(file, " was cut off, and the rest ", where,
                                           " ", left.found.name,
                                           "; both in one file: arctrace recover ",
                                           reader::shell_word(left.found.name), " -m ",
                                           reader::shell_word(session.path), " -o ",
                                           reader::shell_file(session.path + ".whole")));
}

// Returns the error of a file that cannot be read, with a hint. In overwrite mode a
// recorder's file is empty until the recording ends: if the recorder was killed, its
// buffer has all the records.
absl::Status with_hint(const absl::Status& error, const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown) ||
      std::filesystem::file_size(path, unknown) != 0) {
    return error;
  }
  std::vector<std::string> left;
  for (const recorder::FoundSession& found : recorder::find_sessions()) {
    if (found.user != geteuid()) continue;
    const absl::StatusOr<recorder::Buffer> buffer =
        recorder::Buffer::open(found.path, BufferAccess::kRead);
    if (!buffer.ok() || buffer->view().geometry().mode != ARCTRACE_MODE_OVERWRITE ||
        is_live(IpcAtomics::load_acquire(buffer->view().control().collector_lock))) {
      continue;
    }
    left.push_back(found.name);
  }
  if (left.empty()) return error;
  return absl::Status(
      error.code(), absl::StrCat(error.message(),
                                 "; if its recorder was killed, what it recorded is in ",
                                 absl::StrJoin(left, " or "), ": arctrace recover ",
                                 reader::shell_word(left.front()), " -o ",
                                 reader::shell_file(path + ".whole")));
}

// A file that has another name in messages and heads of reports.
class NamedInput : public reader::Input {
 public:
  NamedInput(std::string name, std::unique_ptr<reader::Input> file)
      : name_(std::move(name)), file_(std::move(file)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return file_->size(); }
  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    return file_->read(offset, into);
  }

 private:
  const std::string name_;
  const std::unique_ptr<reader::Input> file_;
};

// Merges the two like `arctrace recover --merge`, into a file that has no name any more.
absl::StatusOr<std::unique_ptr<reader::Input>> merged_file(
    const std::string& path, const recorder::FoundSession& found) {
  const absl::StatusOr<int> opened = reader::open_readable(found.path);
  if (!opened.ok()) return opened.status();
  const absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::copy_untrusted(*opened, 0, UINT64_MAX, found.path);
  close(*opened);
  if (!buffer.ok()) return buffer.status();
  std::string directory = reader::temporary_directory() + "/arctrace-merged.XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("making ", directory));
  }
  const absl::Cleanup remover = [&] {
    std::error_code error;
    std::filesystem::remove_all(directory, error);
  };
  recording::SnapshotFileOptions options;
  options.output.path = directory + "/merged";
  options.earlier = path;
  options.merges = true;
  options.command_line = {"arctrace", "recover", found.path, "-m", path};
  absl::StatusOr<recorder::TraceFile> file =
      recorder::TraceFile::create(options.output.path);
  if (!file.ok()) return file.status();
  if (auto written = recording::write_buffer(*buffer, options, *file); !written.ok()) {
    return written.status();
  }
  if (absl::Status published = file->publish(); !published.ok()) return published;
  absl::StatusOr<std::unique_ptr<reader::Input>> merged =
      reader::open_file(options.output.path);
  if (!merged.ok()) return merged;
  return std::make_unique<NamedInput>(path, *std::move(merged));
}

// Merges the file with the buffer that its dead recorder abandoned. Null: the file is to
// be read as it is. Prints a warning in both cases.
std::unique_ptr<reader::Input> with_abandoned_buffer(const std::string& path,
                                                     const reader::Session& session) {
  const std::optional<AbandonedBuffer> left = find_abandoned_buffer(session);
  if (!left || left->is_collected) {
    warn_of_abandoned_buffer(session);
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<reader::Input>> merged =
      std::max(session.size_bytes, left->size_bytes) > kMergedMax
          ? absl::ResourceExhaustedError("the file or the buffer is too large")
          : merged_file(path, left->found);
  warn_of(*left, session, merged.ok() ? "is read from" : "is in");
  return merged.ok() ? *std::move(merged) : nullptr;
}

}  // namespace

void warn_of_abandoned_buffer(const reader::Session& session) {
  if (session.raw) return warn_of_collector(session);
  if (const auto left = find_abandoned_buffer(session)) warn_of(*left, session, "is in");
}

std::vector<std::string> files_or_sessions(const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  paths.reserve(names.size());
  for (const std::string& name : names) paths.push_back(recorder::file_or_session(name));
  return paths;
}

absl::StatusOr<OpenFiles> open_files_with_abandoned_buffer(
    const std::vector<std::string>& paths, const reader::OpenOptions& options,
    const reader::TraceFiles::Stops& stops) {
  absl::StatusOr<reader::TraceFiles> files = reader::TraceFiles::open(paths);
  if (!files.ok()) return with_hint(files.status(), paths.front());
  absl::StatusOr<reader::Trace> trace = files->trace(options, stops);
  if (!trace.ok()) return with_hint(trace.status(), paths.front());
  if (paths.size() > 1) {
    warn_of_abandoned_buffer(trace->session());
    return OpenFiles{*std::move(files), *std::move(trace)};
  }
  std::unique_ptr<reader::Input> merged =
      with_abandoned_buffer(paths.front(), trace->session());
  if (merged == nullptr) return OpenFiles{*std::move(files), *std::move(trace)};
  files = reader::TraceFiles::of(std::move(merged));
  trace = files->trace(options, stops);
  if (!trace.ok()) return trace.status();
  return OpenFiles{*std::move(files), *std::move(trace)};
}

absl::StatusOr<reader::Trace> open_with_abandoned_buffer(
    const std::vector<std::string>& paths, const reader::OpenOptions& options) {
  absl::StatusOr<OpenFiles> open =
      open_files_with_abandoned_buffer(paths, options, [] { return false; });
  if (!open.ok()) return open.status();
  return std::move(open->trace);
}

absl::Status count_from_end_of(const std::vector<std::string>& names,
                               reader::TimeRange& range) {
  if (!is_from_end(range.from_ns) && !is_from_end(range.until_ns)) {
    return absl::OkStatus();
  }
  constexpr reader::TimeRange kNoTime = {INT64_MIN, INT64_MIN};
  const absl::StatusOr<reader::TraceFiles> files =
      reader::TraceFiles::open(files_or_sessions(names));
  if (!files.ok()) return files.status();
  const absl::StatusOr<reader::Trace> trace =
      files->trace({.range = kNoTime}, [] { return false; });
  if (!trace.ok()) return trace.status();
  count_from_end(reader::BlockTimes(*trace).times().until_ns, range);
  if (range.from_ns <= range.until_ns) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--time-range: it ends at ", reader::seconds_text(range.until_ns),
      " s, before it starts at ", reader::seconds_text(range.from_ns), " s"));
}

std::unique_ptr<recorder::ActingWithRights> act_as_owner(const std::string& path) {
  struct stat status {};
  if (geteuid() != 0 || stat(path.c_str(), &status) != 0 || status.st_uid == 0) {
    return nullptr;
  }
  return std::make_unique<recorder::ActingWithRights>(
      recorder::rights_of_user(status.st_uid));
}

}  // namespace arctrace::cli
