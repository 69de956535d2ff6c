// The fields of a record as text and as JSON.
#include "reader/streams/field_sink.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/trace_builder.hpp"

namespace arctrace::reader {
namespace {

void put_everything(FieldSink& out) {
  out.title("function", "f(int)");
  out.text("text", "a\"b\n\xff");
  out.number("number", UINT64_MAX);
  out.signed_number("signed", INT64_MIN);
  out.hex("hex", 0xABC);
  out.real("real", "1.5e-07");
  out.real("none", "-inf");
  out.boolean("yes", true);
  out.begin_list("list");
  out.text("", "x");
  out.text("", "y");
  out.end();
  out.begin_object("object");
  out.number("a", 1);
  out.boolean("b", false);
  out.end();
  out.begin_list("empty");
  out.end();
}

// Puts members into an object that has one already, and parses it.
template <class Put>
nlohmann::json parsed(const Put& put) {
  const std::string members = json_members([&](JsonWriter& json) {
    json.member("first", 0);
    JsonFields fields(json);
    put(fields);
  });
  return nlohmann::json::parse("{" + members + "}");
}

TEST_CASE("text") {
  std::string text;
  TextFields fields(text);
  put_everything(fields);
  CHECK(
      text ==
      "f(int) text=\"a\\\"b\\n\\xff\" number=18446744073709551615 "
      "signed=-9223372036854775808 hex=0xabc real=1.5e-07 none=-inf yes=true list=[x, y] "
      "a=1 b=false empty=[]");
}

TEST_CASE("JSON") {
  const auto json = parsed([](FieldSink& fields) { put_everything(fields); });
  CHECK(json["function"] == "f(int)");
  CHECK(json["text"] == "a\"b\n\xef\xbf\xbd");
  CHECK(json["number"] == UINT64_MAX);
  CHECK(json["signed"] == INT64_MIN);
  CHECK(json["hex"] == "0xabc");
  CHECK(json["real"] == 1.5e-07);
  CHECK(json["none"] == "-inf");
  CHECK(json["yes"] == true);
  CHECK(json["list"] == nlohmann::json({"x", "y"}));
  CHECK(json["object"] == nlohmann::json({{"a", 1}, {"b", false}}));
  CHECK(json["empty"].empty());
}

TEST_CASE("arguments and results") {
  using testing::number_arg;
  const auto args =
      testing::args_body({{ARCTRACE_VALUE_STRING, 1, "a\"\n"},
                          {ARCTRACE_VALUE_STRING_CUT, 2, "abc"},
                          number_arg(ARCTRACE_VALUE_STRING_LOST, 3, 8, 8),
                          number_arg(ARCTRACE_VALUE_POINTER, 4, 0, 8),
                          number_arg(ARCTRACE_VALUE_POINTER, 5, 0x10, 8),
                          number_arg(ARCTRACE_VALUE_OPEN_FLAGS, 6, 0, 4),
                          number_arg(ARCTRACE_VALUE_SIGNED, 7, uint64_t(-3), 4),
                          number_arg(ARCTRACE_VALUE_UNSIGNED, 8, UINT64_MAX, 8),
                          number_arg(ARCTRACE_VALUE_CHAR, 9, 'c', 1),
                          number_arg(ARCTRACE_VALUE_FLOAT, 1, 0x3FC00000, 4),
                          number_arg(ARCTRACE_VALUE_FLOAT, 2, 0x7FC00000, 4),
                          number_arg(ARCTRACE_VALUE_BOOL, 9, 1, 1)});
  const auto retval =
      testing::args_body({number_arg(ARCTRACE_VALUE_SIGNED, 0, uint64_t(-1), 4),
                          number_arg(ARCTRACE_VALUE_ERRNO, 0, 2, 4)});
  const auto json = parsed([&](FieldSink& fields) {
    fields.args(args.data(), "");
    fields.retval(retval.data(), "");
  });
  CHECK(json["args"] == nlohmann::json::parse(R"(["a\"\n", {"cut": "abc"},
      {"unreadable": "0x8"}, null, "0x10", "O_RDONLY", -3, 18446744073709551615, "c", 1.5,
      "nan", true])"));
  CHECK_FALSE(json.contains("arg_names"));
  CHECK(json["retval"] == -1);
  CHECK(json["errno"] == "ENOENT");
  for (const auto& [number, word] : {std::pair(0, ""), std::pair(16, "EBUSY")}) {
    const auto body = testing::args_body(
        {number_arg(ARCTRACE_VALUE_ERRNO, 0, static_cast<uint64_t>(number), 4)});
    const auto lone = parsed([&](FieldSink& fields) { fields.retval(body.data(), ""); });
    CHECK(lone["retval"] == number);
    CHECK(lone.value("errno", "") == word);
  }
  const auto named = testing::args_body({number_arg(ARCTRACE_VALUE_SIGNED, 1, 3, 4)});
  CHECK(parsed([&](FieldSink& fields) {
          fields.args(named.data(), "n\"");
        })["arg_names"] == nlohmann::json({"n\""}));
  std::string text;
  TextFields line(text);
  line.title("function", "open");
  line.args(testing::args_body({{ARCTRACE_VALUE_STRING, 1, "x"}}).data(), "");
  CHECK(text == "open(\"x\")");
}

}  // namespace
}  // namespace arctrace::reader
