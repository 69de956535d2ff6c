// The files that a process has mapped, of this process, whose loader knows them, too.
#include "src/recorder/attach/process_files.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace arctrace::recorder {
namespace {

namespace fs = std::filesystem;

// A file with a name of its own, of one page.
class NamedFile {
 public:
  NamedFile()
      : path_(fs::temp_directory_path() / ("mapped-" + std::to_string(getpid()))) {
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(ftruncate(fd_, 4096) == 0);
    memory_ = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd_, 0);
  }
  ~NamedFile() {
    munmap(memory_, 4096);
    close(fd_);
    unlink(path_.c_str());
  }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  const fs::path& path() const { return path_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_); }

 private:
  fs::path path_;
  int fd_;
  void* memory_;
};

TEST_CASE("process files: a mapped file is found by its path") {
  const NamedFile file;
  CHECK(path_to_mapped(getpid(), file.address()) == file.path());
  CHECK(path_to_mapped(getpid(), 1) == "");
  CHECK(sees_same_file(getpid(), file.path()));
  CHECK_FALSE(sees_same_file(getpid(), file.path().native() + "-not"));
}

TEST_CASE("process files: another file at the path of a mapped one is not taken for it") {
  const NamedFile file;
  const fs::path other = file.path().native() + "-other";
  fs::rename(file.path(), other);
  const int fd = open(file.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  close(fd);
  // The kernel says its new name.
  CHECK(path_to_mapped(getpid(), file.address()) == other);
  fs::remove(file.path());
  fs::rename(other, file.path());

  Mapping mapping;
  for (const Mapping& one : read_mappings(getpid())) {
    if (one.low == file.address()) mapping = one;
  }
  REQUIRE(mapping.path == file.path());
  CHECK(path_to(getpid(), mapping) == file.path());
  ++mapping.inode;
  const std::string found = path_to(getpid(), mapping);
  CHECK(found != file.path());
}

TEST_CASE("process files: functions of libc are where the loader has them") {
  const LoadedLibrary libc = find_library(getpid(), "libc.so.6");
  REQUIRE(libc.path != "");
  CHECK(libc.file != "");
  // Sanitizers have functions of their own before libc's.
  void* const loaded = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(loaded != nullptr);
  const auto address = [loaded](const char* name) {
    return reinterpret_cast<uint64_t>(dlsym(loaded, name));
  };
  for (const char* name : {"getppid", "socketpair", "recvmsg", "__errno_location"}) {
    CAPTURE(name);
    CHECK(find_function(libc, name) == address(name));
  }
  CHECK(find_function(libc, "no_such_function_of_libc") == 0);
  CHECK(find_function({}, "getppid") == 0);
  CHECK(find_library(getpid(), "libno_such_library.so.6").path == "");
}

TEST_CASE("process files: the code to which a function for us returns") {
  const LoadedLibrary libc = find_library(getpid(), "libc.so.6");
  const uint64_t call = find_system_call(getpid(), libc);
  const auto begin = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "getppid"));
  CHECK(call >= begin);
  CHECK(call < begin + 32);
  CHECK(find_signal_return(getpid(), libc) != 0);
}

}  // namespace
}  // namespace arctrace::recorder
