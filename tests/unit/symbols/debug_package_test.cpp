// The package with debug symbols of an installed file, by dpkg's lists.
#include "reader/symbols/debug_package.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.hpp"

namespace arctrace::reader {
namespace {

TEST_CASE("the package whose list has the file") {
  const testing::TemporaryDirectory directory;
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(directory.path() + "/" + name) << text;
  };
  write("git.list", "/.\n/usr\n/usr/bin/git\n/usr/bin/git-shell\n");
  write("git.md5sums", "/usr/bin/other\n");
  write("libc6:amd64.list", "/lib/x86_64-linux-gnu/libc.so.6\n");
  write("dash.list", "/bin/dash\n");
  const auto package = [&](const char* path) {
    return debug_package_of(path, directory.path());
  };
  CHECK(package("/usr/bin/git") == "git-dbgsym");
  CHECK(package("/usr/bin/git-s").empty());
  CHECK(package("bin/git").empty());
  CHECK(package("/usr/bin/other").empty());
  CHECK(package("/usr/lib/x86_64-linux-gnu/libc.so.6") == "libc6-dbg");
  CHECK(package("/usr/bin/dash") == "dash-dbgsym");
  CHECK(debug_package_of("/usr/bin/git", directory.path() + "/none").empty());
}

}  // namespace
}  // namespace arctrace::reader
