// arctrace destroy: ends a session and removes its buffer.
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <string>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

absl::StatusOr<int> destroy(const std::string& name) {
  const absl::StatusOr<std::string> path = session_file(name);
  if (!path.ok()) return path.status();
  absl::StatusOr<Buffer> buffer = open_session(name);
  // What somebody killed while making it is found by its name only.
  if (!buffer.ok() &&
      !(absl::IsInvalidArgument(buffer.status()) && is_session_path(*path))) {
    return buffer.status();
  }
  if (buffer.ok()) buffer->set_gate(0);
  if (unlink(path->c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("removing ", *path));
  }
  return 0;
}

}  // namespace

Runner add_destroy(CLI::App& root) {
  auto name = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand(
      "destroy", "end a session and remove its buffer; trace files stay");
  add_session_option(*app, *name);
  return [name] { return destroy(*name); };
}

}  // namespace arctrace::cli
