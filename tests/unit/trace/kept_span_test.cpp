// What time a copy of a buffer holds of which some records were overwritten.
#include "reader/trace/kept_span.hpp"

#include <doctest/doctest.h>

#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using arctrace::testing::RecordScript;

namespace {

Session copied_at(int64_t time_ns) {
  Session session;
  session.copied_ns = time_ns;
  return session;
}

}  // namespace

TEST_CASE("kept: since when the records of all threads are there") {
  RecordScript script;
  const ThreadIndex a = script.program(10, "one");
  const ThreadIndex b = script.program(20, "two");
  Definitions& definitions = script.definitions;
  CHECK_FALSE(kept_span(copied_at(1'000), definitions).has_value());
  definitions.mutable_thread(a)->overwritten_until_ns = 400;
  definitions.mutable_thread(b)->overwritten_until_ns = 700;
  CHECK_FALSE(kept_span(Session(), definitions).has_value());
  const auto kept = kept_span(copied_at(1'000), definitions);
  REQUIRE(kept.has_value());
  CHECK(kept->from_ns == 700);
  CHECK(kept->ns() == 300);
  definitions.set_chain_begin(900);
  CHECK(kept_span(copied_at(1'000), definitions)->ns() == 100);
  // The chain was older than what is left of the threads' own blocks.
  definitions.set_chain_begin(INT64_MAX);
  CHECK(kept_span(copied_at(1'000), definitions)->ns() == 300);
}

TEST_CASE("kept: nothing, if the shared chain is gone and there is nothing else") {
  RecordScript script;
  script.program(10, "one");
  script.definitions.set_chain_begin(INT64_MAX);
  const auto kept = kept_span(copied_at(1'000), script.definitions);
  REQUIRE(kept.has_value());
  CHECK(kept->ns() == 0);
}

TEST_CASE("kept: since when the kernel's records are there") {
  RecordScript script;
  const ThreadIndex thread = script.program(10, "one");
  Definitions& definitions = script.definitions;
  definitions.set_kernel_begins({{0, 800}, {1, 300}});
  // The program's own records are all there.
  auto kept = kept_span(copied_at(1'000), definitions);
  REQUIRE(kept.has_value());
  CHECK(kept->from_ns == 0);
  CHECK(kept->has_less_of_kernel());
  CHECK(kept->kernel_ns() == 200);
  definitions.mutable_thread(thread)->overwritten_until_ns = 700;
  kept = kept_span(copied_at(1'000), definitions);
  CHECK(kept->ns() == 300);
  CHECK(kept->has_less_of_kernel());
  definitions.set_kernel_begins({{0, 500}});
  kept = kept_span(copied_at(1'000), definitions);
  CHECK_FALSE(kept->has_less_of_kernel());
  CHECK(kept->kernel_ns() == 500);
}
