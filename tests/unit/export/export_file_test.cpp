// The file of an export appears whole or not at all.
#include "reader/export/export_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/support/skip.hpp"
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

// Runs `body` in a thread for which all file systems are like NFS: they have no files
// without names, and do not know RENAME_NOREPLACE.
template <class Body>
void on_nfs(const Body& body) {
  constexpr auto kArg = [](size_t number) {
    return static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * number);
  };
  constexpr uint32_t kTmpfile = O_TMPFILE & ~O_DIRECTORY;
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_openat, 0, 3),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArg(2)),
                          BPF_JUMP(BPF_JMP | BPF_JSET, kTmpfile, 0, 5),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
                          BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_renameat2, 0, 3),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArg(4)),
                          BPF_JUMP(BPF_JMP | BPF_JSET, RENAME_NOREPLACE, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  std::thread([&] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      arctrace::testing::skip_case("a thread may not have a seccomp filter here");
      return;
    }
    body();
  }).join();
}

}  // namespace

TEST_CASE("an export file appears when it is published") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  auto file = ExportFile::create(path, false);
  REQUIRE(file.ok());
  (*file)->write("abc");
  CHECK((*file)->good());
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
    (*file)->write("abc");
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
    (*file)->write("after");
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
    (*file)->write(std::string(8192, 'x'));
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
    (*file)->write("abc");
    CHECK((*file)->publish().ok());
  }
  char got[8];
  CHECK(::read(reader, got, sizeof got) == 3);
  ::close(reader);
}

TEST_CASE("an export file has a temporary name where files need one") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  on_nfs([&] {
    for (const bool replaces : {false, true}) {
      auto file = ExportFile::create(path, replaces);
      REQUIRE(file.ok());
      const std::string text = replaces ? "second" : "first";
      (*file)->write(text);
      CHECK(files_in(directory) == (replaces ? 2 : 1));
      CHECK((*file)->publish().ok());
      file->reset();
      CHECK(text_of(path) == text);
      CHECK(files_in(directory) == 1);
    }
  });
}

TEST_CASE("an export file with a temporary name is not published over another one") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  on_nfs([&] {
    auto file = ExportFile::create(path, false);
    REQUIRE(file.ok());
    std::ofstream(path) << "another";
    CHECK((*file)->publish().message().find("--force") != std::string::npos);
    file->reset();
    CHECK(text_of(path) == "another");
    CHECK(files_in(directory) == 1);
    // An export that is given up has no file, either.
    std::filesystem::remove(path);
    ExportFile::create(path, false)->reset();
    CHECK(files_in(directory) == 0);
  });
}

TEST_CASE("an export file that cannot have its temporary name says which name") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  const std::string temporary = path + ".new-" + std::to_string(::getpid());
  std::ofstream(path) << "before";
  std::filesystem::create_directory(temporary);
  const auto names_it = [&](const absl::Status& status) {
    const std::string message(status.message());
    return message.find(temporary) != std::string::npos &&
           message.find("--force") == std::string::npos;
  };
  {
    auto file = ExportFile::create(path, true);
    REQUIRE(file.ok());
    CHECK(names_it((*file)->publish()));
  }
  on_nfs([&] { CHECK(names_it(ExportFile::create(path, true).status())); });
  CHECK(text_of(path) == "before");
  CHECK(files_in(directory) == 2);
}
