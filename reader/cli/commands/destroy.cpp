// arctrace destroy: ends a session and removes its buffer.
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <string>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/render/session_text.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

// Returns who uses the session: "a collector, pid 7", "3 writers"; empty if nobody does.
std::string users_text(const BufferView& view) {
  std::string text;
  if (is_live(IpcAtomics::load_acquire(view.control().collector_lock))) {
    text = absl::StrCat("a collector, pid ",
                        IpcAtomics::load_relaxed(view.control().collector_pid));
  }
  size_t writers = 0;
  for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(view); ++i) {
    if (is_live(IpcAtomics::load_acquire(view.slot(i).lock))) ++writers;
  }
  if (writers != 0) {
    absl::StrAppend(&text, text.empty() ? "" : " and ",
                    reader::count_text(writers, "writer"));
  }
  return text;
}

absl::StatusOr<int> destroy(const std::string& name, bool force) {
  const absl::StatusOr<std::string> path = recorder::session_file(name);
  if (!path.ok()) return path.status();
  absl::StatusOr<recorder::Buffer> buffer = recorder::open_session(name);
  // If a buffer's maker was killed before the buffer was complete, the file is found by
  // its name only.
  if (!buffer.ok() &&
      !(absl::IsInvalidArgument(buffer.status()) && recorder::is_session_path(*path))) {
    return buffer.status();
  }
  if (buffer.ok()) {
    if (const std::string users = users_text(buffer->view()); !users.empty() && !force) {
      return absl::FailedPreconditionError(
          absl::StrCat("session ", name, " has ", users, ": destroy --force ends it"));
    }
    recorder::set_gate(buffer->view(), 0);
  }
  if (absl::Status removed = recorder::remove_session(name, *path); !removed.ok())
    return removed;
  return 0;
}

}  // namespace

Runner add_destroy(CLI::App& root) {
  auto name = std::make_shared<std::string>();
  auto force = std::make_shared<bool>(false);
  CLI::App* app = root.add_subcommand(
      "destroy", "end a session and remove its buffer; trace files stay");
  add_session_option(*app, *name);
  app->add_flag("--force", *force, "also while a collector or writers use the session");
  return [name, force] { return destroy(*name, *force); };
}

}  // namespace arctrace::cli
