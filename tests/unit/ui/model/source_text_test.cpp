// Lines of source files whose paths are not trusted.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "reader/ui/model/call_detail.hpp"
#include "tests/support/temporary_directory.hpp"

namespace arctrace::reader {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("the lines that are asked for, and what there is of them") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path("f.c");
  std::ofstream(path) << "one\n\n\tthree \x1b[2J\xff\nfour";
  CHECK(source_text(path, 1, 2) == Lines{"one", ""});
  CHECK(source_text(path, 3, 1) == Lines{"    three \\x1b[2J\\xff"});
  CHECK(source_text(path, 4, 9) == Lines{"four"});
  CHECK(source_text(path, 5, 9).empty());
}

TEST_CASE("only regular files by their whole path are read, and nothing is waited for") {
  const testing::TemporaryDirectory directory;
  const std::string fifo = directory.path("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string& path :
       {std::string(), std::string("CMakeLists.txt"), fifo, std::string("/dev/zero"),
        directory.path(), std::string("/nonexistent/f.c")}) {
    CAPTURE(path);
    CHECK(source_text(path, 1, 3).empty());
  }
}

}  // namespace
}  // namespace arctrace::reader
