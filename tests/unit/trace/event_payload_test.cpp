// The fields of an event's payload by its layout.
#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <string>

#include "reader/trace/event_fields.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::reader {
namespace {

using testing::Bytes;

EventLayout every_type() {
  EventLayout layout{1, 0, "event", {}};
  for (uint32_t type = ARCTRACE_FIELD_U8; type <= ARCTRACE_FIELD_STRING; ++type) {
    layout.fields.push_back({type, "f" + std::to_string(type)});
  }
  return layout;
}

Bytes every_value() {
  Bytes payload;
  const auto u8 = [&](uint8_t value) { payload.raw(&value, 1); };
  u8(200);
  payload.u16(60'000).u32(4'000'000'000).u64(UINT64_MAX);
  u8(static_cast<uint8_t>(-100));
  payload.u16(static_cast<uint16_t>(-30'000)).u32(static_cast<uint32_t>(-2'000'000'000));
  payload.u64(1ull << 63);
  payload.u32(std::bit_cast<uint32_t>(0.1f)).u64(std::bit_cast<uint64_t>(-0.1));
  u8(1);
  payload.u64(0xABCDEF).u32(5).raw("he\nlo", 5);
  return payload;
}

std::string text_of(const EventValues& values) {
  std::string out;
  append_event_text(out, values);
  return out;
}

TEST_CASE("every field type") {
  const EventLayout layout = every_type();
  const Bytes payload = every_value();
  const EventValues values = decode_event_untrusted(layout, payload.data());
  CHECK(values.fits);
  CHECK(text_of(values) ==
        "f1=200 f2=60000 f3=4000000000 f4=18446744073709551615 f5=-100 f6=-30000 "
        "f7=-2000000000 f8=-9223372036854775808 f9=0.1 f10=-0.1 f11=true f12=0xabcdef "
        "f13=\"he\\nlo\"");
}

TEST_CASE("a payload that ends early gives the fields that are there") {
  const EventLayout layout = every_type();
  const Bytes payload = every_value();
  size_t last = 0;
  for (size_t size = 0; size < payload.size(); ++size) {
    const EventValues values =
        decode_event_untrusted(layout, std::span(payload.data()).first(size));
    CHECK_FALSE(values.fits);
    CHECK(values.fields.size() >= last);
    CHECK(values.fields.size() < layout.fields.size());
    last = values.fields.size();
  }
}

TEST_CASE("the last word may be filled up, no more") {
  const EventLayout layout{1, 0, "e", {{ARCTRACE_FIELD_U8, "a"}}};
  for (size_t size = 1; size <= 8; ++size) {
    Bytes payload;
    payload.fill(size, 7);
    CHECK(decode_event_untrusted(layout, payload.data()).fits == (size <= 4));
  }
  CHECK(decode_event_untrusted({1, 0, "e", {}}, {}).fits);
  CHECK_FALSE(decode_event_untrusted(layout, {}).fits);
}

TEST_CASE("a string's size may be anything") {
  const EventLayout layout{1, 0, "e", {{ARCTRACE_FIELD_STRING, "s"}}};
  for (const uint32_t size : {6u, 1000u, std::numeric_limits<uint32_t>::max()}) {
    Bytes payload;
    payload.u32(size).raw("hello", 5);
    const EventValues values = decode_event_untrusted(layout, payload.data());
    CHECK(values.fields.empty());
    CHECK_FALSE(values.fits);
  }
}

}  // namespace
}  // namespace arctrace::reader
