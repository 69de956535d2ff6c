// Cases that fail, so that each run shows that failures are seen.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

TEST_CASE("fails_always, as it has to") { FAIL("as it has to"); }

TEST_CASE("fails_once, as it has to, in the first run") {
  const char* run = std::getenv("ARCTRACE_RUN");
  CHECK(std::string_view(run == nullptr ? "1" : run) != "1");
}

TEST_CASE("passes") { CHECK(true); }
