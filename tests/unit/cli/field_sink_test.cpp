#include "reader/cli/field_sink.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace arctrace::cli {
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
  std::string text = "{\"first\":0";
  JsonFields fields(text);
  put_everything(fields);
  const auto json = nlohmann::json::parse(text + "}");
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

}  // namespace
}  // namespace arctrace::cli
