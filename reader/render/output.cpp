#include "reader/render/output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

Verbosity verbosity_of_command = Verbosity::kUsual;

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string file = std::string(rest.substr(0, end)) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// Our environment, with what git sets for pagers that are not configured.
std::vector<std::string> pager_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  if (std::getenv("LESS") == nullptr) variables.emplace_back("LESS=FRX");
  if (std::getenv("LV") == nullptr) variables.emplace_back("LV=-c");
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::optional<std::string> pager_command() {
  if (::isatty(STDOUT_FILENO) != 1) return std::nullopt;
  for (const char* name : {"ARCTRACE_PAGER", "PAGER"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    if (*value == '\0' || std::string_view(value) == "cat") return std::nullopt;
    return value;
  }
  return is_installed("less") ? std::optional<std::string>("less") : std::nullopt;
}

std::unique_ptr<Pager> Pager::start(const std::string& command) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return nullptr;
  std::vector<std::string> arguments = {"sh", "-c", command};
  std::vector<std::string> environment = pager_environment();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[0], STDIN_FILENO);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, "/bin/sh", &actions, nullptr, pointers_to(arguments).data(),
                    pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[0]);
  if (error != 0) {
    ::close(pipe[1]);
    return nullptr;
  }
  // Ctrl-C reaches us, too: if it ended us, the pager and the shell would share the
  // terminal. When the user leaves the pager, SIGPIPE ends us.
  struct sigaction now {};
  ::sigaction(SIGINT, nullptr, &now);
  if (now.sa_handler == SIG_DFL) std::signal(SIGINT, SIG_IGN);
  return std::unique_ptr<Pager>(new Pager(pid, pipe[1]));
}

Pager::~Pager() {
  const auto before = std::signal(SIGINT, SIG_IGN);
  ::close(pipe_);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGINT, before);
}

namespace {

constexpr size_t kFlushAt = size_t{64} << 10;

}  // namespace

Output::Output(int descriptor) : descriptor_(descriptor) {
  // When `head` or the like closes the pipe, end quietly, even if our parent ignores this
  // signal.
  std::signal(SIGPIPE, SIG_DFL);
}

void Output::show_text(const TextStyle& style, bool paged) {
  if (style.width != 0) fitter_.emplace(style);
  if (paged) pager_command_ = pager_command();
}

void Output::write(std::string_view text) {
  if (!good()) return;
  if (fitter_.has_value()) {
    buffer_ += fitter_->add(text);
  } else {
    buffer_ += text;
  }
  if (buffer_.size() >= kFlushAt) flush();
}

WriteText Output::writer() {
  return [this](std::string_view text) {
    write(text);
    return good();
  };
}

absl::Status Output::finish() {
  if (fitter_.has_value()) buffer_ += fitter_->rest();
  fitter_.reset();
  flush();
  pager_.reset();
  if (good()) return absl::OkStatus();
  return absl::ErrnoToStatus(error_, "cannot write standard output");
}

void Output::flush() {
  if (pager_command_.has_value() && !buffer_.empty()) {
    pager_ = Pager::start(*pager_command_);
    pager_command_.reset();
    if (pager_ != nullptr) descriptor_ = pager_->descriptor();
  }
  size_t done = 0;
  while (good() && done < buffer_.size()) {
    const ssize_t got =
        ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (got >= 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

void set_verbosity(Verbosity verbosity) { verbosity_of_command = verbosity; }

Verbosity verbosity() { return verbosity_of_command; }

void print_error(std::string_view error) {
  constexpr std::string_view kGoesOn = "\n  ";
  std::string lines = "arctrace: ";
  for (;;) {
    const size_t end = error.find(kGoesOn);
    lines += printable(error.substr(0, end));
    if (end == std::string_view::npos) break;
    lines += kGoesOn;
    error.remove_prefix(end + kGoesOn.size());
  }
  lines += "\n";
  std::fputs(lines.c_str(), stderr);
}

void print_message(std::string_view message) {
  if (verbosity() != Verbosity::kQuiet) print_error(message);
}

void print_warning(std::string_view warning) {
  print_message("warning: " + std::string(warning));
}

void print_detail(std::string_view detail) {
  if (verbosity() == Verbosity::kVerbose) print_error(detail);
}

}  // namespace arctrace::reader
