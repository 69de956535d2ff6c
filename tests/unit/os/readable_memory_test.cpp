// Reads of memory that may not be mapped.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "src/os/kernel_use.hpp"

namespace arctrace::testing {
namespace {

TEST_CASE("readable memory: up to a page that is not there") {
  constexpr size_t kPage = 4096;
  void* mapping = mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  auto* pages = static_cast<char*>(mapping);
  std::memset(pages, 'x', 2 * kPage);
  REQUIRE(munmap(pages + 2 * kPage, kPage) == 0);
  char* const end = pages + 2 * kPage;
  ReadableMemory memory;
  CHECK(memory.has(pages, 2 * kPage));
  CHECK(!memory.has(pages, 2 * kPage + 1));
  CHECK(memory.has(end, 0));
  CHECK(memory.has(end - 1, 1));
  CHECK(!memory.has(end, 1));
  CHECK(memory.text_length(end - 5, 5) == 5);
  CHECK(memory.text_length(end - 5, 6) == -1);
  CHECK(memory.text_length(pages, 2 * kPage) == 2 * kPage);
  end[-1] = '\0';
  CHECK(memory.text_length(end - 5, 100) == 4);
  CHECK(memory.text_length(pages, SIZE_MAX) == 2 * kPage - 1);
  REQUIRE(mprotect(pages, kPage, PROT_NONE) == 0);
  CHECK(ReadableMemory().text_length(pages, 9) == -1);
  munmap(pages, 2 * kPage);
}

TEST_CASE("readable memory: wild addresses") {
  ReadableMemory memory;
  for (const uintptr_t address : {uintptr_t{0}, uintptr_t{16}, UINTPTR_MAX - 7,
                                  uintptr_t{1} << 63, uintptr_t{0x800000000000}}) {
    CAPTURE(address);
    CHECK(!memory.has(reinterpret_cast<const void*>(address), 8));
  }
}

}  // namespace
}  // namespace arctrace::testing
