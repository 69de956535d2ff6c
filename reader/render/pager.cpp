#include "reader/render/pager.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace arctrace::reader {
namespace {

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
  // terminal. Whoever leaves the pager ends us by SIGPIPE.
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

}  // namespace arctrace::reader
