#include "reader/render/json_writer.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace arctrace::reader;

namespace {

struct Collected {
  std::string text;
  int pieces = 0;
  int wanted = 1 << 30;
  WriteText write() {
    return [this](std::string_view piece) {
      text += piece;
      return ++pieces < wanted;
    };
  }
};

}  // namespace

TEST_CASE("commas stand where they belong") {
  Collected out;
  JsonWriter json(out.write());
  json.begin_object();
  json.member("a", uint64_t{1});
  json.key("b").begin_array();
  json.number(int64_t{-2});
  json.text("x\"y\n");
  json.begin_object();
  json.end();
  json.begin_array();
  json.end();
  json.end();
  json.member("c", true);
  json.members(",\"d\":4");
  json.member("e", "f");
  json.end();
  json.finish();
  CHECK(out.text ==
        "{\"a\":1,\"b\":[-2,\"x\\\"y\\n\",{},[]],\"c\":true,\"d\":4,"
        "\"e\":\"f\"}\n");
}

TEST_CASE("bytes that are no UTF-8 leave it valid") {
  Collected out;
  JsonWriter json(out.write());
  json.begin_array();
  json.text("\xff\x80 ok \x01");
  json.end();
  json.finish();
  CHECK(nlohmann::json::accept(out.text));
}

TEST_CASE("a large value is handed over in pieces, and stops when it is not wanted") {
  Collected out;
  JsonWriter json(out.write());
  json.begin_array();
  for (int i = 0; i < 100'000; ++i) {
    json.begin_array();
    json.number(uint64_t{12345});
    json.end();
  }
  json.end();
  json.finish();
  CHECK(out.pieces > 5);
  CHECK(nlohmann::json::parse(out.text).size() == 100'000);

  Collected less;
  less.wanted = 2;
  JsonWriter stopped(less.write());
  stopped.begin_array();
  for (int i = 0; i < 100'000; ++i) {
    stopped.begin_array();
    stopped.end();
  }
  stopped.end();
  stopped.finish();
  CHECK_FALSE(stopped.good());
  CHECK(less.pieces == 2);
}
