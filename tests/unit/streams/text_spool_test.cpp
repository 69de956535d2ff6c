// Texts that are stored in a temporary file.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "reader/streams/spools.hpp"

namespace arctrace::reader {
namespace {

TEST_CASE("texts come back from memory and from disk") {
  TextSpool spool(10);
  std::vector<std::pair<uint64_t, std::string>> texts;
  for (size_t i = 0; i < 50; ++i) {
    const std::string text(i % 23, static_cast<char>('a' + i % 26));
    texts.emplace_back(spool.add(text), text);
  }
  for (const auto& [offset, text] : texts) CHECK(spool.read(offset, text.size()) == text);
  CHECK(spool.read(1000, 3).empty());
  CHECK(spool.status().ok());
}

}  // namespace
}  // namespace arctrace::reader
