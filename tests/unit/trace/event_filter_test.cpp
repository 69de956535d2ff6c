// Conditions on the fields of events: values at the ends of their types, and events that
// lack a field of a condition.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/event_fields.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::reader {
namespace {

using testing::Bytes;

constexpr uint32_t kEventId = 7;

std::string asks(FieldOperator op, const std::string& operand,
                 const std::string& field = "f") {
  const char* const signs[] = {"?", "=", "!=", "<", "<=", ">", ">=", "~"};
  return field + " " + signs[static_cast<size_t>(op)] + " " + operand;
}

// One thread of one process, whose event kEventId has these fields.
struct OneEvent {
  Definitions definitions;
  ThreadIndex thread;

  explicit OneEvent(std::vector<EventField> fields) {
    Process process;
    process.id = 1;
    const ProcessIndex index = definitions.add_process(std::move(process));
    Thread facts;
    facts.writer = 1;
    facts.process = index;
    thread = definitions.add_thread(std::move(facts));
    REQUIRE(definitions.add_layout(index, {kEventId, 0, "event", std::move(fields)}));
  }

  bool admits(EventFilter& filter, const Bytes& payload, uint32_t id = kEventId) const {
    const Bytes body = Bytes().u32(id).append(payload);
    Record record{};
    record.thread = thread;
    record.type = ARCTRACE_TYPE_EVENT;
    record.body = body.data();
    return filter.admits(record);
  }
};

// Which of = != < <= > >= are true between a value of this type and the operand, in that
// order: "=<" for "equal, less or equal ...". Each operator is tested by itself.
std::string signs_of(uint32_t type, const Bytes& payload, const std::string& operand) {
  const OneEvent event({{type, "f"}});
  const std::pair<const char*, FieldOperator> operators[] = {
      {"=", FieldOperator::kEqual},   {"!", FieldOperator::kNotEqual},
      {"<", FieldOperator::kLess},    {"[", FieldOperator::kLessOrEqual},
      {">", FieldOperator::kGreater}, {"]", FieldOperator::kGreaterOrEqual},
  };
  std::string signs;
  for (const auto& [sign, op] : operators) {
    auto filter = EventFilter::make(event.definitions, {asks(op, operand)});
    REQUIRE(filter.ok());
    if (event.admits(*filter, payload)) signs += sign;
    CHECK(filter->left_out() == (signs.ends_with(sign) ? 0 : 1));
  }
  return signs;
}

constexpr const char* kEqual = "=[]";
constexpr const char* kLess = "!<[";
constexpr const char* kGreater = "!>]";
constexpr const char* kUnordered = "!";

Bytes f64(double value) { return Bytes().u64(std::bit_cast<uint64_t>(value)); }
Bytes f32(float value) { return Bytes().u32(std::bit_cast<uint32_t>(value)); }

TEST_CASE("event filter: integers at the ends of their ranges") {
  const Bytes most = Bytes().u64(UINT64_MAX);
  CHECK(signs_of(ARCTRACE_FIELD_U64, most, "18446744073709551615") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_U64, most, "0xffffffffffffffff") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_U64, most, "18446744073709551614") == kGreater);
  CHECK(signs_of(ARCTRACE_FIELD_U64, most, "18446744073709551616") == kLess);
  CHECK(signs_of(ARCTRACE_FIELD_U64, most, "1.8446744073709552e19") == kLess);
  CHECK(signs_of(ARCTRACE_FIELD_U64, most, "-1") == kGreater);
  CHECK(signs_of(ARCTRACE_FIELD_X64, most, "inf") == kLess);
  const Bytes least = Bytes().u64(uint64_t{1} << 63);
  CHECK(signs_of(ARCTRACE_FIELD_I64, least, "-9223372036854775808") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_I64, least, "-9223372036854775807") == kLess);
  CHECK(signs_of(ARCTRACE_FIELD_I64, least, "-0x8000000000000000") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_I64, least, "9223372036854775808") == kLess);
  CHECK(signs_of(ARCTRACE_FIELD_U64, least, "9223372036854775808") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_I8, Bytes().fill(1, 0xFF), "-1") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_U8, Bytes().fill(1, 0xFF), "254.5") == kGreater);
}

TEST_CASE("event filter: integers and decimal fractions are not rounded to each other") {
  // 2^53 + 1 is no double.
  const Bytes odd = Bytes().u64((uint64_t{1} << 53) + 1);
  CHECK(signs_of(ARCTRACE_FIELD_I64, odd, "9007199254740993") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_I64, odd, "9007199254740992.0") == kGreater);
  CHECK(signs_of(ARCTRACE_FIELD_F64, f64(9007199254740992.0), "9007199254740993") ==
        kLess);
  CHECK(signs_of(ARCTRACE_FIELD_F64, f64(9007199254740992.0), "9007199254740992") ==
        kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_F64, f64(-0.0), "0") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_F64, f64(0.1), "0.1") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_F32, f32(0.1F), "0.1") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_F32, f32(16777216.0F), "16777217") == kLess);
  CHECK(signs_of(ARCTRACE_FIELD_F32, f32(INFINITY), "1e300") == kGreater);
  CHECK(signs_of(ARCTRACE_FIELD_F32, f32(INFINITY), "inf") == kEqual);
}

TEST_CASE("event filter: NaN equals itself, and is neither less nor greater") {
  const Bytes nan = f64(std::numeric_limits<double>::quiet_NaN());
  CHECK(signs_of(ARCTRACE_FIELD_F64, nan, "0") == kUnordered);
  CHECK(signs_of(ARCTRACE_FIELD_F64, nan, "inf") == kUnordered);
  CHECK(signs_of(ARCTRACE_FIELD_F64, nan, "nan") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_F64, f64(1), "nan") == kUnordered);
  CHECK(signs_of(ARCTRACE_FIELD_U64, Bytes().u64(1), "nan") == kUnordered);
}

TEST_CASE("event filter: texts are bytes, also those that look like numbers") {
  const Bytes ten = Bytes().u32(2).padded("10");
  CHECK(signs_of(ARCTRACE_FIELD_STRING, ten, "10") == kEqual);
  CHECK(signs_of(ARCTRACE_FIELD_STRING, ten, "9") == kLess);
  CHECK(signs_of(ARCTRACE_FIELD_STRING, ten, "1") == kGreater);
  const Bytes high = Bytes().u32(1).padded("\xFF");
  CHECK(signs_of(ARCTRACE_FIELD_STRING, high, "a") == kGreater);

  const OneEvent event({{ARCTRACE_FIELD_STRING, "f"}});
  auto filter =
      EventFilter::make(event.definitions, {asks(FieldOperator::kMatches, "1?")});
  REQUIRE(filter.ok());
  CHECK(event.admits(*filter, ten));
  CHECK_FALSE(event.admits(*filter, Bytes().u32(3).padded("100")));
}

TEST_CASE("event filter: truth values") {
  const OneEvent event({{ARCTRACE_FIELD_BOOL, "f"}});
  for (const char* yes : {"true", "1"}) {
    auto filter =
        EventFilter::make(event.definitions, {asks(FieldOperator::kEqual, yes)});
    REQUIRE(filter.ok());
    CHECK(event.admits(*filter, Bytes().fill(1, 1)));
    CHECK(event.admits(*filter, Bytes().fill(1, 2)));
    CHECK_FALSE(event.admits(*filter, Bytes().fill(1, 0)));
  }
  auto filter =
      EventFilter::make(event.definitions, {asks(FieldOperator::kNotEqual, "false")});
  REQUIRE(filter.ok());
  CHECK(event.admits(*filter, Bytes().fill(1, 1)));
  CHECK_FALSE(event.admits(*filter, Bytes().fill(1, 0)));
}

TEST_CASE("event filter: what an event lacks meets no condition") {
  const OneEvent event({{ARCTRACE_FIELD_U32, "a"}, {ARCTRACE_FIELD_STRING, "f"}});
  auto filter = EventFilter::make(
      event.definitions,
      {asks(FieldOperator::kNotEqual, "x"), asks(FieldOperator::kGreater, "1", "a")});
  REQUIRE(filter.ok());
  CHECK(event.admits(*filter, Bytes().u32(2).u32(1).padded("y")));
  CHECK(filter->left_out() == 0);
  // These fail: the first condition, the second one, a payload that ends early, a text
  // that is longer than the payload, an event without a layout.
  CHECK_FALSE(event.admits(*filter, Bytes().u32(2).u32(1).padded("x")));
  CHECK_FALSE(event.admits(*filter, Bytes().u32(1).u32(1).padded("y")));
  CHECK_FALSE(event.admits(*filter, Bytes().u32(2)));
  CHECK_FALSE(event.admits(*filter, Bytes()));
  CHECK_FALSE(event.admits(*filter, Bytes().u32(2).u32(UINT32_MAX).padded("y")));
  CHECK_FALSE(event.admits(*filter, Bytes().u32(2).u32(1).padded("y"), kEventId + 1));
  CHECK(filter->left_out() == 6);
  // The filter does not apply to records of other types.
  Record instant{};
  instant.type = ARCTRACE_TYPE_INSTANT;
  CHECK(filter->admits(instant));
  CHECK(filter->left_out() == 6);
}

TEST_CASE("event filter: a field of the same name may be of another type elsewhere") {
  OneEvent event({{ARCTRACE_FIELD_U32, "f"}});
  REQUIRE(event.definitions.add_layout(
      event.definitions.thread(event.thread)->process,
      {kEventId + 1, 0, "other", {{ARCTRACE_FIELD_STRING, "f"}}}));
  auto filter = EventFilter::make(event.definitions, {asks(FieldOperator::kEqual, "x")});
  REQUIRE(filter.ok());
  CHECK_FALSE(event.admits(*filter, Bytes().u32(0)));
  CHECK(event.admits(*filter, Bytes().u32(1).padded("x"), kEventId + 1));
}

TEST_CASE("event filter: what no event can answer is refused") {
  const OneEvent event({{ARCTRACE_FIELD_U32, "count"},
                        {ARCTRACE_FIELD_BOOL, "done"},
                        {ARCTRACE_FIELD_STRING, "name"}});
  const auto refusal = [&](const std::string& condition) {
    const auto filter = EventFilter::make(event.definitions, {condition});
    CHECK(absl::IsInvalidArgument(filter.status()));
    return std::string(filter.status().message());
  };
  CHECK(
      refusal(asks(FieldOperator::kEqual, "1", "cuont")) ==
      "--where 'cuont = 1': no event has a field \"cuont\"; there are count, done, name; "
      "did you mean \"count\"?");
  CHECK(refusal(asks(FieldOperator::kEqual, "many", "count")) ==
        "--where 'count = many': \"many\" is not a number, and count is u32");
  CHECK(refusal(asks(FieldOperator::kMatches, "1*", "count")) ==
        "--where 'count ~ 1*': ~ compares texts, and count is u32");
  CHECK(refusal(asks(FieldOperator::kEqual, "maybe", "done")) ==
        "--where 'done = maybe': \"maybe\" is neither true nor false, and done is bool");
  CHECK(refusal(asks(FieldOperator::kLess, "true", "done")) ==
        "--where 'done < true': done is bool, which only = and != compare");
  CHECK(refusal("count = \"1\"") ==
        "--where 'count = \"1\"': \"1\" is not a number, and count is u32");
  for (const char* operand : {"0x", "0x1g", "1e", "--1", "0x10000000000000000", ""}) {
    CAPTURE(operand);
    refusal(asks(FieldOperator::kEqual, operand, "count"));
  }
  const OneEvent empty({});
  const auto filter =
      EventFilter::make(empty.definitions, {asks(FieldOperator::kEqual, "1")});
  CHECK(std::string(filter.status().message()) == "--where 'f = 1': no event has fields");
  CHECK(EventFilter::make(empty.definitions, {}).ok());
}

}  // namespace
}  // namespace arctrace::reader
