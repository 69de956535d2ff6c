#include "tests/unit/cli/run_command.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_directory.hpp"

namespace arctrace::testing {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

CommandResult run_arctrace(const std::string& arguments,
                           const std::vector<std::byte>& file) {
  const TemporaryDirectory directory;
  const std::string data = directory.path("trace.data");
  std::ofstream(data, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()),
             static_cast<std::streamsize>(file.size()));
  std::string command = "cd " + directory.path() + " && { " ARCTRACE_CLI " ";
  command += arguments;
  for (size_t at = 0; (at = command.find("{}", at)) != std::string::npos;) {
    command.replace(at, 2, data);
  }
  command += " ; } >out 2>err";
  const int status = std::system(command.c_str());
  CommandResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
  result.out = contents(directory.path("out"));
  result.err = contents(directory.path("err"));
  return result;
}

}  // namespace arctrace::testing
