// The file of an export appears whole or not at all.
#include "reader/export/export_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temporary_directory.hpp"

using arctrace::reader::ExportFile;
using arctrace::testing::TemporaryDirectory;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t files_in(const TemporaryDirectory& directory) {
  const std::filesystem::directory_iterator all(directory.path());
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

TEST_CASE("an export file appears when it is published") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  auto file = ExportFile::create(path, false);
  REQUIRE(file.ok());
  CHECK((*file)->writer()("abc"));
  CHECK(files_in(directory) == 0);
  CHECK((*file)->publish().ok());
  file->reset();
  CHECK(text_of(path) == "abc");
  CHECK(files_in(directory) == 1);
}

TEST_CASE("an export file that is not published leaves nothing") {
  const TemporaryDirectory directory;
  {
    auto file = ExportFile::create(directory.path("out"), false);
    REQUIRE(file.ok());
    (*file)->writer()("abc");
  }
  CHECK(files_in(directory) == 0);
}

TEST_CASE("an export file does not replace another one unless it is told to") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  std::ofstream(path) << "before";
  const auto refused = ExportFile::create(path, false);
  CHECK(refused.status().message().find("--force") != std::string::npos);
  {
    auto file = ExportFile::create(path, true);
    REQUIRE(file.ok());
    (*file)->writer()("after");
    CHECK(text_of(path) == "before");
    CHECK((*file)->publish().ok());
  }
  CHECK(text_of(path) == "after");
  CHECK(files_in(directory) == 1);
}

TEST_CASE("an export file does not replace one that came meanwhile") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  auto file = ExportFile::create(path, false);
  REQUIRE(file.ok());
  std::ofstream(path) << "another";
  CHECK_FALSE((*file)->publish().ok());
  file->reset();
  CHECK(text_of(path) == "another");
  CHECK(files_in(directory) == 1);
}

TEST_CASE("an export file on a full disk is an error and leaves nothing") {
  const TemporaryDirectory directory;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 4096;
  ::setrlimit(RLIMIT_FSIZE, &small);
  {
    auto file = ExportFile::create(directory.path("out"), false);
    REQUIRE(file.ok());
    CHECK_FALSE((*file)->writer()(std::string(8192, 'x')));
    CHECK_FALSE((*file)->good());
    const absl::Status status = (*file)->publish();
    CHECK(status.message().find(directory.path("out")) != std::string::npos);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK(files_in(directory) == 0);
}

TEST_CASE("an export into a FIFO or directory") {
  const TemporaryDirectory directory;
  CHECK_FALSE(ExportFile::create(directory.path(), true).ok());
  CHECK_FALSE(ExportFile::create(directory.path("none/out"), false).ok());
  const std::string fifo = directory.path("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  {
    auto file = ExportFile::create(fifo, false);
    REQUIRE(file.ok());
    CHECK((*file)->writer()("abc"));
    CHECK((*file)->publish().ok());
  }
  char got[8];
  CHECK(::read(reader, got, sizeof got) == 3);
  ::close(reader);
}
