// Work that one thread of the process does at a time.
#include "src/process/work_claims.hpp"

#include <doctest/doctest.h>

#include "src/process/process_identity.hpp"

namespace arctrace::testing {
namespace {

TEST_CASE("work claims: one thread at a time, also the one that has interrupted itself") {
  writer::ProcessState process{};
  process.id = 7;
  REQUIRE(writer::claim_work(writer::Work::kExamineFullBlock, process, 1));
  CHECK_FALSE(writer::claim_work(writer::Work::kExamineFullBlock, process, 2));
  CHECK_FALSE(writer::claim_work(writer::Work::kExamineFullBlock, process, 1));
  CHECK(writer::claim_work(writer::Work::kCompactDefinitions, process, 2));
  writer::end_work(writer::Work::kExamineFullBlock);
  CHECK(writer::claim_work(writer::Work::kExamineFullBlock, process, 2));
  writer::end_work(writer::Work::kExamineFullBlock);
  writer::end_work(writer::Work::kCompactDefinitions);
}

TEST_CASE("work claims: a thread that jumped gives up its own, and a fork child all") {
  writer::ProcessState process{};
  process.id = 7;
  writer::ProcessState child{};
  child.id = 8;
  REQUIRE(writer::claim_work(writer::Work::kExamineFullBlock, process, 1));
  REQUIRE(writer::claim_work(writer::Work::kCompactDefinitions, process, 2));
  writer::abandon_work(process, 1);
  CHECK(writer::claim_work(writer::Work::kExamineFullBlock, process, 3));
  CHECK_FALSE(writer::claim_work(writer::Work::kCompactDefinitions, process, 3));
  CHECK(writer::claim_work(writer::Work::kCompactDefinitions, child, 4));
  writer::end_work(writer::Work::kExamineFullBlock);
  writer::end_work(writer::Work::kCompactDefinitions);
}

}  // namespace
}  // namespace arctrace::testing
