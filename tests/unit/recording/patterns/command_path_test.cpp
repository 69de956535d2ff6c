// How the program of a command is found in PATH.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "src/recording/patterns/program_functions.hpp"
#include "tests/support/temporary_directory.hpp"

namespace arctrace::recording {
namespace {

TEST_CASE("a command is looked up in PATH, unless it is a path") {
  const testing::TemporaryDirectory first, second;
  const auto make = [](const std::string& path, mode_t mode) {
    std::ofstream(path) << "#!/bin/sh\n";
    CHECK(chmod(path.c_str(), mode) == 0);
  };
  make(first.path("text"), 0644);
  make(second.path("text"), 0755);
  make(second.path("both"), 0755);
  make(first.path("both"), 0755);
  CHECK(mkdir(first.path("directory").c_str(), 0755) == 0);
  const char* before = std::getenv("PATH");
  const std::string saved = before == nullptr ? "" : before;
  setenv("PATH", (first.path() + ":" + second.path()).c_str(), 1);
  CHECK(find_program("both") == first.path("both"));
  CHECK(find_program("text") == second.path("text"));  // the first one is not executable
  CHECK(find_program("directory") == "");
  CHECK(find_program("nothing") == "");
  CHECK(find_program("./nothing") == "./nothing");
  CHECK(find_program("/bin/sh") == "/bin/sh");
  setenv("PATH", saved.c_str(), 1);
}

}  // namespace
}  // namespace arctrace::recording
