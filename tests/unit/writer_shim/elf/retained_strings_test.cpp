#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "tests/support/temporary_directory.hpp"
#include "writer_shim/elf/symbol_search.hpp"

namespace arctrace::shim {
namespace {

class File {
 public:
  File(const std::string& path, const std::string& content)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {
    REQUIRE(::write(fd_, content.data(), content.size()) ==
            static_cast<ssize_t>(content.size()));
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  StringTable strings(uint64_t offset, uint64_t size) const {
    struct stat status {};
    REQUIRE(::fstat(fd_, &status) == 0);
    ElfW(Shdr) section{};
    section.sh_offset = offset;
    section.sh_size = size;
    return retained_strings(fd_, status, section);
  }

 private:
  int fd_;
};

TEST_CASE("kept strings: of each file once, and of another one anew") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  const char* first = nullptr;
  {
    const File file(path, std::string("??name\0other\0", 13));
    const StringTable names = file.strings(2, 11);
    CHECK(names.text(0) == std::string("name"));
    CHECK(names.text(5) == std::string("other"));
    CHECK(names.text(11) == nullptr);
    first = names.bytes;
  }
  {
    const File same(directory.path() + "/another", "x");
    CHECK(same.strings(0, 1).bytes != first);
  }
  const int fd = ::open(path.c_str(), O_RDONLY);
  struct stat status {};
  REQUIRE(::fstat(fd, &status) == 0);
  ElfW(Shdr) section{};
  section.sh_offset = 2;
  section.sh_size = 11;
  CHECK(retained_strings(fd, status, section).bytes == first);
  section.sh_offset = 7;
  section.sh_size = 6;
  CHECK(retained_strings(fd, status, section).text(0) == std::string("other"));
  // A table that is partly missing counts as none.
  section.sh_offset = 8;
  CHECK(retained_strings(fd, status, section).size == 0);
  ::close(fd);
  const File changed(path, std::string("??NAME\0other\0", 13));
  CHECK(changed.strings(2, 11).text(0) == std::string("NAME"));
  CHECK(first == std::string("name"));
}

}  // namespace
}  // namespace arctrace::shim
