// Losses by cause, as text and as JSON.
#include <arctrace/format.h>
#include <doctest/doctest.h>

#include <array>

#include "reader/render/session_text.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {
namespace {

std::string members(std::span<const uint64_t> by_cause) {
  return json_members(
      [&](JsonWriter& json) { write_losses_json("lost", by_cause, json); });
}

TEST_CASE("losses by cause: text has those that occurred, JSON all that are defined") {
  std::array<uint64_t, kLossCauses> lost{};
  CHECK(losses_text(lost).empty());
  CHECK(members(lost) ==
        "\"lost\":{\"full\":0,\"too_big\":0,\"nested\":0,\"no_slot\":0,\"kernel\":0,"
        "\"file\":0,\"identity\":0,\"definitions\":0,\"removed\":0}");
  lost[ARCTRACE_LOST_FULL] = 2;
  lost[ARCTRACE_LOST_REMOVED] = 1;
  CHECK(losses_text(lost).starts_with("full 2, "));
  CHECK(members(lost).starts_with("\"lost\":{\"full\":2,\"too_big\":0,"));
  CHECK(members(lost).ends_with("\"removed\":1}"));
}

}  // namespace
}  // namespace arctrace::reader
