// The memory and text functions that replace libc's, at every size and alignment.
#include "src/base/memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace arctrace {
namespace {

TEST_CASE("memory: copies and fills of every size and alignment, and not a byte more") {
  constexpr size_t kMax = 600;  // copying changes its method at a smaller size
  std::vector<unsigned char> from(kMax + 16);
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i * 7 + 1);
  for (size_t size = 0; size <= kMax; size += size < 40 ? 1 : 13) {
    for (size_t shift = 0; shift < 9; ++shift) {
      std::vector<unsigned char> to(kMax + 32, 0xEE);
      copy_bytes(to.data() + 8 + shift, from.data() + shift, size);
      CHECK(std::equal(to.begin() + static_cast<long>(8 + shift),
                       to.begin() + static_cast<long>(8 + shift + size),
                       from.begin() + static_cast<long>(shift)));
      CHECK(to[7 + shift] == 0xEE);
      CHECK(to[8 + shift + size] == 0xEE);
      fill_zero(to.data() + 8 + shift, size);
      CHECK(std::count(to.begin(), to.end(), 0xEE) ==
            static_cast<long>(to.size() - size));
      CHECK(std::count(to.begin(), to.end(), 0) == static_cast<long>(size));
    }
  }
}

TEST_CASE("memory: a text's length is bounded") {
  CHECK(text_length("", 5) == 0);
  CHECK(text_length("four", 5) == 4);
  CHECK(text_length("four", 4) == 4);
  CHECK(text_length("four", 3) == 3);
  CHECK(text_length("four", 0) == 0);
}

}  // namespace
}  // namespace arctrace
