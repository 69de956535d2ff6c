// Work that one thread of the process at a time does.
#include "src/process/work_claims.hpp"

#include <doctest/doctest.h>

namespace arctrace::testing {
namespace {

TEST_CASE("work claims: one thread at a time, also the one that has interrupted itself") {
  ProcessState process{};
  process.id = 7;
  REQUIRE(claim_work(Work::kLookAtFullBlock, process, 1));
  CHECK_FALSE(claim_work(Work::kLookAtFullBlock, process, 2));
  CHECK_FALSE(claim_work(Work::kLookAtFullBlock, process, 1));
  CHECK(claim_work(Work::kCompactDefinitions, process, 2));
  end_work(Work::kLookAtFullBlock);
  CHECK(claim_work(Work::kLookAtFullBlock, process, 2));
  end_work(Work::kLookAtFullBlock);
  end_work(Work::kCompactDefinitions);
}

TEST_CASE("work claims: a thread that jumped gives up its own, and a fork child all") {
  ProcessState process{};
  process.id = 7;
  ProcessState child{};
  child.id = 8;
  REQUIRE(claim_work(Work::kLookAtFullBlock, process, 1));
  REQUIRE(claim_work(Work::kCompactDefinitions, process, 2));
  abandon_work(process, 1);
  CHECK(claim_work(Work::kLookAtFullBlock, process, 3));
  CHECK_FALSE(claim_work(Work::kCompactDefinitions, process, 3));
  CHECK(claim_work(Work::kCompactDefinitions, child, 4));
  end_work(Work::kLookAtFullBlock);
  end_work(Work::kCompactDefinitions);
}

}  // namespace
}  // namespace arctrace::testing
