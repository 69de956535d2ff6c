#include "reader/cli/record/watched_session.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "reader/trace/input.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recorder/drain/drain.hpp"

namespace arctrace::cli {
namespace {

namespace fs = std::filesystem;

// Reads a mapped buffer. A block that is read from its beginning is copied as the
// collector copies one: its committed records whole.
class MappedInput : public reader::Input {
 public:
  explicit MappedInput(const recorder::Buffer& buffer)
      : view_(buffer.view()), name_(buffer.path()) {}

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return view_.geometry().total_size; }

  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    if (offset >= size()) return size_t{0};
    const size_t count = std::min<size_t>(into.size(), size() - offset);
    const Geometry& geometry = view_.geometry();
    const uint64_t in_blocks = offset - geometry.blocks_offset;
    if (offset >= geometry.blocks_offset && count == geometry.block_size &&
        in_blocks % geometry.block_size == 0) {
      recorder::Patience patience{kWaitMs};
      const std::vector<std::byte> copy = recorder::copy_live_block_untrusted(
          view_, static_cast<uint32_t>(in_blocks / geometry.block_size), patience);
      std::copy(copy.begin(), copy.end(), into.begin());
    } else {
      std::memcpy(into.data(), view_.base() + offset, count);
    }
    return count;
  }

 private:
  static constexpr uint32_t kWaitMs = 2;  // for writers that are active in the block

  const BufferView view_;
  const std::string name_;
};

using FileId = std::pair<dev_t, ino_t>;

// Returns the id of the regular file behind a descriptor of another process.
std::optional<FileId> regular_file_behind(const fs::path& descriptor) {
  struct stat status {};
  if (stat(descriptor.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return FileId{status.st_dev, status.st_ino};
}

bool is_trace_file_of(const arctrace_session_header& session,
                      const fs::path& descriptor) {
  const int fd = ::open(descriptor.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  arctrace_session_header header{};
  const bool is_whole = pread(fd, &header, sizeof header, 0) == sizeof header;
  ::close(fd);
  return is_whole && header.magic == ARCTRACE_FILE_MAGIC &&
         std::memcmp(header.session_id, session.session_id, sizeof header.session_id) ==
             0;
}

}  // namespace

WatchedSession::WatchedSession(recorder::Buffer buffer)
    : buffer_(std::make_unique<recorder::Buffer>(std::move(buffer))) {
  for (const recorder::FoundSession& found : recorder::find_sessions()) {
    if (found.path == buffer_->path()) is_recorders_own_ = found.name == found.path;
  }
}

absl::StatusOr<WatchedSession> WatchedSession::open(const std::string& path) {
  absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::open(path, BufferAccess::kRead);
  if (!buffer.ok()) return buffer.status();
  return WatchedSession(*std::move(buffer));
}

absl::StatusOr<reader::SessionCopy> WatchedSession::make_copy() const {
  return reader::SessionCopy::create(std::make_unique<MappedInput>(*buffer_));
}

void WatchedSession::follow_files(reader::SessionCopy& copy) {
  arctrace_control& control = buffer_->view().control();
  const bool has_collector = is_live(IpcAtomics::load_acquire(control.collector_lock));
  if (!has_collector || buffer_->view().geometry().mode == ARCTRACE_MODE_OVERWRITE) {
    lacks_file_ = false;
    return;
  }
  const uint32_t pid = IpcAtomics::load_relaxed(control.collector_pid);
  bool is_any_there = false;
  std::error_code error;
  for (fs::directory_iterator at(absl::StrCat("/proc/", pid, "/fd"), error), end;
       !error && at != end; at.increment(error)) {
    const std::optional<FileId> id = regular_file_behind(at->path());
    if (!id.has_value()) continue;
    const bool is_known = std::find(files_.begin(), files_.end(), *id) != files_.end();
    if (!is_known && !is_trace_file_of(buffer_->header(), at->path())) continue;
    is_any_there = true;
    if (is_known) continue;
    absl::StatusOr<std::unique_ptr<reader::Input>> input = reader::open_file(at->path());
    if (!input.ok()) continue;
    // Records that were drained before the first check are not wanted; those of later
    // files are.
    copy.add_file(*std::move(input), has_copied_);
    files_.push_back(*id);
  }
  has_copied_ = true;
  lacks_file_ = !is_any_there;
}

bool WatchedSession::is_over() const {
  struct stat status {};
  if (stat(buffer_->path().c_str(), &status) != 0 || buffer_->is_cut_off()) return true;
  if (!is_recorders_own_) return false;
  arctrace_control& control = buffer_->view().control();
  if (IpcAtomics::load_relaxed(control.collector_pid) == 0 ||
      is_live(IpcAtomics::load_acquire(control.collector_lock))) {
    return false;
  }
  const BufferView& view = buffer_->view();
  for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(view); ++i) {
    if (is_live(IpcAtomics::load_acquire(view.slot(i).lock))) return false;
  }
  return true;
}

}  // namespace arctrace::cli
