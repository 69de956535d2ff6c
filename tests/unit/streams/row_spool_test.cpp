// Rows that are stored in a temporary file while a view counts them.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "reader/streams/spools.hpp"
#include "tests/support/random_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

InvocationRow row_of(int64_t start_ns) {
  InvocationRow row;
  row.start_ns = start_ns;
  return row;
}

std::vector<int64_t> starts(RowSpool& spool) {
  std::vector<int64_t> found;
  CHECK(spool
            .for_each([&](const InvocationRow& row) {
              found.push_back(row.start_ns);
              return true;
            })
            .ok());
  return found;
}

}  // namespace

TEST_CASE("rows come back in their order, replaced ones too, wherever they are kept") {
  std::mt19937_64 rng(test_seed());
  for (const size_t in_memory : {size_t{0}, size_t{3}, size_t{100}, size_t{100'000}}) {
    CAPTURE(in_memory);
    RowSpool spool(in_memory);
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < 10'000; ++i) {
      CHECK(spool.add(row_of(i)) == static_cast<uint64_t>(i));
      expected.push_back(i);
      const uint64_t old = rng() % expected.size();
      expected[old] = -i;
      spool.replace(old, row_of(-i));
    }
    CHECK(spool.size() == 10'000);
    CHECK(starts(spool) == expected);
    CHECK(starts(spool) == expected);
  }
}

TEST_CASE("for_each stops when its function returns false") {
  RowSpool spool(4);
  for (int64_t i = 0; i < 100; ++i) spool.add(row_of(i));
  int seen = 0;
  CHECK(spool.for_each([&](const InvocationRow&) { return ++seen < 3; }).ok());
  CHECK(seen == 3);
}

TEST_CASE("no room for the file is an error, not a crash") {
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/nonexistent/directory", 1);
  RowSpool spool(4);
  for (int64_t i = 0; i < 100; ++i) spool.add(row_of(i));
  spool.replace(0, row_of(5));
  const absl::Status status = spool.for_each([](const InvocationRow&) { return true; });
  CHECK_FALSE(status.ok());
  CHECK(std::string(status.message()).find("/nonexistent/directory") !=
        std::string::npos);
  if (before == nullptr) {
    ::unsetenv("TMPDIR");
  } else {
    ::setenv("TMPDIR", saved.c_str(), 1);
  }
}
