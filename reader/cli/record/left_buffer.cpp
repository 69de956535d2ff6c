#include "reader/cli/record/left_buffer.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>

#include "reader/render/output.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {

namespace {

// What a collector has taken out of a session's buffer is in its file only.
void warn_of_collector(const reader::Session& session) {
  const absl::StatusOr<Buffer> buffer = Buffer::open(session.path, BufferAccess::kRead);
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

}  // namespace

void warn_of_left_buffer(const reader::Session& session) {
  if (session.raw) return warn_of_collector(session);
  if (session.finished || session.disk_full_errno != 0) return;
  for (const FoundSession& found : find_sessions()) {
    const absl::StatusOr<Buffer> buffer = Buffer::open(found.path, BufferAccess::kRead);
    if (!buffer.ok() ||
        !std::equal(session.id.begin(), session.id.end(), buffer->header().session_id)) {
      continue;
    }
    const std::string file = reader::escaped(session.path);
    const uint32_t lock =
        IpcAtomics::load_acquire(buffer->view().control().collector_lock);
    reader::print_warning(
        is_live(lock) ? absl::StrCat(file, " is still being recorded")
                      : absl::StrCat(file, " was cut off, and the rest is in ",
                                     found.name, ": arctrace recover ", found.name,
                                     " -m ", file, " -o NEW writes both"));
    return;
  }
}

}  // namespace arctrace::cli
