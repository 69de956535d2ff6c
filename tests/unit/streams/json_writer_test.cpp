// The JSON writer: its syntax, escapes, numbers and pieces.
#include "reader/streams/json_writer.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

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
  json.value(int64_t{-2});
  json.value("x\"y\n");
  json.begin_object();
  json.end();
  json.begin_array();
  json.end();
  json.end();
  json.member("c", true);
  json.members("");
  json.members("\"d\":4");
  json.member("e", "f");
  json.end();
  json.finish();
  CHECK(out.text ==
        "{\"a\":1,\"b\":[-2,\"x\\\"y\\n\",{},[]],\"c\":true,\"d\":4,"
        "\"e\":\"f\"}\n");
}

TEST_CASE("strings") {
  const auto written = [](std::string_view text) {
    Collected out;
    JsonWriter json(out.write());
    json.begin_array();
    json.value(text);
    json.end();
    json.finish();
    return out.text.substr(1, out.text.size() - 3);
  };
  CHECK(written("plain") == "\"plain\"");
  CHECK(written("a\"b\\c\n") == R"("a\"b\\c\n")");
  CHECK(written("größe") == "\"größe\"");
  CHECK(written("\xff") == "\"\xef\xbf\xbd\"");
  CHECK(written(std::string_view("\0\x7f", 2)) == "\"\\u0000\\u007f\"");
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (uint64_t i = random() % 20; i > 0; --i) {
      text += static_cast<char>(random() % 3 == 0 ? random() : random() % 64 + 0x80);
    }
    CHECK(nlohmann::json::parse(written(text)).is_string());
  }
}

TEST_CASE("a large value is handed over in pieces, and stops when it is not wanted") {
  Collected out;
  JsonWriter json(out.write());
  json.begin_array();
  for (int i = 0; i < 100'000; ++i) {
    json.begin_array();
    json.value(uint64_t{12345});
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

TEST_CASE("values of each kind") {
  Collected out;
  JsonWriter json(out.write());
  json.begin_array();
  json.value(UINT64_MAX);
  json.value(INT64_MIN);
  json.value(uint16_t{7});
  json.value(true);
  json.value(nullptr);
  json.value(std::optional<uint32_t>());
  json.value(std::optional<std::string>("x"));
  json.value(0.1);
  json.value(1e300);
  json.value(3.0);
  json.value(std::numeric_limits<double>::infinity());
  json.digits("1.5e-07");
  json.digits("-inf");
  json.end();
  json.finish();
  CHECK(out.text ==
        "[18446744073709551615,-9223372036854775808,7,true,null,null,\"x\",0.1,1e+300,"
        "3.0,null,1.5e-07,\"-inf\"]\n");
}

TEST_CASE("several values are a line each") {
  Collected out;
  JsonWriter json(out.write());
  for (int i = 0; i < 2; ++i) {
    json.begin_object();
    json.member("i", i);
    json.end();
  }
  json.finish();
  CHECK(out.text == "{\"i\":0}\n{\"i\":1}\n");
}

TEST_CASE("the indented layout is that of nlohmann::json") {
  Collected out;
  JsonWriter json(out.write(), JsonWriter::Layout::kIndented);
  json.begin_object();
  json.member("a", 1);
  json.key("empty").begin_array();
  json.end();
  json.key("none").begin_object();
  json.end();
  json.key("list").begin_array();
  json.value(1);
  json.begin_object();
  json.member("b\n", "c\xff");
  json.end();
  json.begin_array();
  json.value(nullptr);
  json.end();
  json.end();
  json.end();
  json.finish();
  const auto parsed = nlohmann::ordered_json::parse(out.text);
  CHECK(out.text == parsed.dump(2) + "\n");
  CHECK(parsed.size() == 4);
}

TEST_CASE("members that are written apart join an object") {
  const auto write = [](JsonWriter& json) {
    json.member("b", 1);
    json.key("c").begin_array();
    json.end();
  };
  CHECK(json_members([](JsonWriter&) {}) == "");
  CHECK(json_members(write) == "\"b\":1,\"c\":[]");
  Collected out;
  JsonWriter json(out.write());
  json.begin_object();
  json.members(json_members(write));
  json.member("d", 2);
  json.end();
  json.finish();
  CHECK(out.text == "{\"b\":1,\"c\":[],\"d\":2}\n");
}
