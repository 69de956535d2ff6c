// arctrace view: serves a page that shows a trace, until Ctrl-C.
#include <absl/strings/str_cat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/trace_options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/render/output.hpp"
#include "reader/render/terminal.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"
#include "reader/ui/model/trace_model.hpp"
#include "reader/ui/server/http_server.hpp"
#include "reader/ui/server/page_server.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recording/patterns/program_functions.hpp"

namespace arctrace::cli {
namespace {

// As root, a browser would run the pages of all other sites with root's rights, too.
bool can_open_browser() {
  return ::geteuid() != 0 &&
         (std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr);
}

// Starts the desktop's program for addresses, whose child we do not wait for.
void open_browser(const std::string& url) {
  const std::string program = recording::find_program("xdg-open");
  if (program.empty()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::fork() == 0) {
      std::string name = "xdg-open";
      std::string address = url;
      const std::array<char*, 3> arguments = {name.data(), address.data(), nullptr};
      ::execv(program.c_str(), arguments.data());
    }
    ::_exit(0);
  }
  if (child > 0) ::waitpid(child, nullptr, 0);
}

// A line on the terminal while the whole trace is read.
class ReadingLine {
 public:
  explicit ReadingLine(const reader::TraceModel& model) : model_(model), line_(true) {}

  void update() {
    if (!line_.has_value()) return;
    line_->update(model_.records_read(), model_.share_read());
    if (!model_.is_reading()) line_.reset();
  }

 private:
  const reader::TraceModel& model_;
  std::optional<reader::Progress> line_;
};

// A buffer is read before it is shown, because its present content will soon be gone.
absl::Status read_first(const reader::TraceModel& model, ReadingLine& line) {
  while (model.is_reading()) {
    line.update();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  line.update();
  return model.problem();
}

absl::StatusOr<int> serve(const ViewPageOptions& options, const reader::TraceFiles& files,
                          reader::Trace known) {
  const bool is_buffer = known.session().raw;
  reader::TraceModel model(files, std::move(known), symbol_options(options.download),
                           reader::InterruptWatch::interrupted);
  model.start();
  ReadingLine line(model);
  if (is_buffer) {
    const absl::Status status = read_first(model, line);
    if (reader::InterruptWatch::interrupted()) return kStatusInterrupted;
    if (!status.ok()) return status;
  }
  const absl::StatusOr<std::unique_ptr<reader::HttpServer>> server =
      reader::HttpServer::listen(options.port,
                                 [&model](const reader::HttpRequest& request) {
                                   return reader::answer_of_page(model, request);
                                 });
  if (!server.ok()) return server.status();
  // The page has its state in its address.
  const std::string url =
      absl::StrCat((*server)->url(), options.full_names ? "#names=whole" : "");
  reader::Output output;
  output.write(absl::StrCat(url, "\n"));
  if (absl::Status s = output.finish(); !s.ok()) return s;
  reader::print_message("the page is at this address until Ctrl-C");
  if (!options.no_open && can_open_browser()) open_browser(url);
  (*server)->run([&line] {
    line.update();
    return reader::InterruptWatch::interrupted();
  });
  return 0;
}

absl::StatusOr<int> run_view(const ViewPageOptions& options) {
  const std::vector<std::string> paths = files_or_sessions(options.paths);
  const reader::InterruptWatch watch;
  absl::StatusOr<OpenFiles> open = open_files_with_abandoned_buffer(
      paths, {.range = reader::TraceModel::kNoTime}, reader::InterruptWatch::interrupted);
  if (reader::InterruptWatch::interrupted()) return kStatusInterrupted;
  if (!open.ok()) return open.status();
  if (absl::Status s = check_whole(open->trace.session(), options.paths.front(),
                                   options.partial, "shows");
      !s.ok()) {
    return s;
  }
  const std::unique_ptr<recorder::ActingWithRights> rights = act_as_owner(paths.front());
  return serve(options, open->files, std::move(open->trace));
}

}  // namespace

Runner add_view(CLI::App& root) {
  auto options = std::make_shared<ViewPageOptions>();
  CLI::App* app = root.add_subcommand("view", "show a trace on a page in the browser");
  add_view_options(*app, *options);
  return [options] { return run_view(*options); };
}

}  // namespace arctrace::cli
