// Exports of single calls as rows and profiles: csv, ndjson, speedscope; and the spool.
#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "reader/export/lane_spool.hpp"
#include "tests/unit/export/exported.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// A call with args, one that did not end, and other records between them.
RecordScript some_calls() {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "main");
  script.enter(thread, 1100, "say \"a,b\"");
  script.arguments(
      thread, 1100,
      {{ARCTRACE_VALUE_STRING, 1, "x\ny"}, number_arg(ARCTRACE_VALUE_SIGNED, 2, 5, 4)});
  script.add(thread, 1200, ARCTRACE_TYPE_COUNTER,
             Bytes().u32(script.name_id("queue")).u64(12));
  script.result(thread, 1500, {number_arg(ARCTRACE_VALUE_SIGNED, 0, 7, 4)});
  script.exit(thread, 1500);
  return script;
}

// The fields of each line of comma-separated values, by the names in the first line.
std::vector<std::map<std::string, std::string>> csv_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        field += '"';
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        field += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',' || c == '\n') {
      rows.back().push_back(std::exchange(field, {}));
      if (c == '\n') rows.emplace_back();
    } else {
      field += c;
    }
  }
  rows.pop_back();
  std::vector<std::map<std::string, std::string>> named;
  for (size_t r = 1; r < rows.size(); ++r) {
    REQUIRE(rows[r].size() == rows[0].size());
    auto& row = named.emplace_back();
    for (size_t i = 0; i < rows[r].size(); ++i) row[rows[0][i]] = rows[r][i];
  }
  return named;
}

}  // namespace

TEST_CASE("csv: a line for each call and event") {
  const RecordScript script = some_calls();
  auto rows = csv_rows(Exported(script).to("csv"));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["type"] == "counter");
  CHECK(rows[0]["name"] == "queue");
  CHECK(rows[0]["fields"] == "value=12");
  CHECK(rows[1]["type"] == "call");
  CHECK(rows[1]["name"] == "say \"a,b\"");
  CHECK(rows[1]["args"] == "(\"x\\ny\", 5)");
  CHECK(rows[1]["retval"] == "7");
  CHECK(rows[1]["start_ns"] == "1100");
  CHECK(rows[1]["duration_ns"] == "400");
  CHECK(rows[1]["depth"] == "2");
  CHECK(rows[1]["pid"] == "7");
  CHECK(rows[2]["name"] == "main");
  CHECK(rows[2]["duration_ns"].empty());
  CHECK(rows[2]["flags"] == "open at the end");
}

TEST_CASE(
    "csv, ndjson: a thread without a name, of a program without one, has its number") {
  RecordScript script;
  const ThreadIndex thread = script.thread(script.process(7, ""), 8, "");
  script.enter(thread, 1000, "work");
  script.exit(thread, 1100);
  auto rows = csv_rows(Exported(script).to("csv"));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["thread"] == "process 7");
  CHECK(rows[0]["tid"] == "8");
  CHECK(Json::parse(Exported(script).to("ndjson")).at("thread") == "process 7");
}

namespace {

// A child of fork, whose frames begin at 20; and a function that a vfork child abandons.
RecordScript frames_that_are_no_calls() {
  RecordScript script;
  const ThreadIndex parent = script.program(100, "parent");
  const ThreadIndex child = script.program(200, "child", ARCTRACE_ORIGIN_FORK);
  Process& forked = *script.definitions.mutable_process(1);
  forked.parent_id = script.definitions.processes()[0].id;
  forked.forked_ns = 20;
  script.stack(parent, 0, {});
  script.enter(parent, 10, "main");
  script.enter(parent, 20, "fork");
  script.exit(parent, 25);
  script.stack(child, 30, {});
  script.exit_named(child, 30, "fork");
  script.exit_named(child, 40, "main");
  script.enter(parent, 50, "runs");
  script.vfork_begin(parent, 51);
  script.exit(parent, 60);
  script.vfork_end(parent, 70, 300);
  script.exit(parent, 80);
  script.exit(parent, 90);
  return script;
}

}  // namespace

TEST_CASE("csv, time lines: frames that other frames stand for are no calls") {
  const RecordScript script = frames_that_are_no_calls();
  std::map<std::string, std::string> shown;
  for (auto& row : csv_rows(Exported(script).to("csv"))) {
    if (row["type"] != "call" && row["type"] != "frame") continue;
    shown[row["name"]] += row["type"] + " " + row["pid"] + " at " + row["start_ns"] +
                          " " + row["flags"] + ";";
  }
  CHECK(shown["fork"] == "call 100 at 20 ;frame 200 at 20 inherited by fork;");
  CHECK(shown["main"] == "frame 200 at 20 inherited by fork;call 100 at 10 ;");
  CHECK(shown["runs"] == "call 100 at 50 ;frame 100 at 50 resumed after vfork;");
  const Json file = Json::parse(Exported(script).to("speedscope"));
  std::map<std::string, int> begins;
  for (const Json& profile : file.at("profiles")) {
    for (const Json& event : profile.at("events")) {
      const Json& frame =
          file.at("shared").at("frames").at(event.at("frame").get<size_t>());
      if (event.at("type") == "O") ++begins[frame.at("name")];
    }
  }
  std::map<std::string, int> in_chrome;
  const Json chrome = Json::parse(Exported(script).to("chrome"));
  for (const Json& event : chrome.at("traceEvents")) {
    if (event.at("ph") == "X" || event.at("ph") == "B") ++in_chrome[event.at("name")];
  }
  const std::map<std::string, int> expected = {
      {"fork", 1}, {"fork [inherited by fork]", 1},
      {"main", 1}, {"main [inherited by fork]", 1},
      {"runs", 1}, {"runs [resumed after vfork]", 1}};
  CHECK(Json(begins) == Json(expected));
  CHECK(Json(in_chrome) == Json(expected));
}

TEST_CASE("ndjson: an object for each call and event") {
  const RecordScript script = some_calls();
  std::istringstream in(Exported(script).to("ndjson"));
  std::vector<Json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(Json::parse(line));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].at("fields").at("value") == 12);
  CHECK(rows[1].at("args").at(1) == 5);
  CHECK(rows[1].at("retval") == 7);
  CHECK(rows[1].at("duration_ns") == 400);
  CHECK(rows[1].at("self_ns") == 400);
  CHECK(rows[2].at("duration_ns").is_null());
  CHECK(rows[2].at("flags") == Json{"open"});
}

TEST_CASE("speedscope: each profile's events nest, and all end") {
  RecordScript script;
  const ThreadIndex one = script.program(7, "one");
  const ThreadIndex two = script.program(8, "two");
  script.enter(one, 1000, "f");
  script.enter(two, 1100, "g");
  script.enter(one, 1200, "g");
  script.exit(two, 1300);
  script.exit(one, 1400);
  script.exit_named(two, 1500, "h");  // entered before tracing began
  script.enter(two, 1600, "f");
  script.exit(two, 1700);
  const Json file = Json::parse(Exported(script).to("speedscope"));
  const Json frames = file.at("shared").at("frames");
  std::map<std::string, std::string> texts;
  for (const Json& profile : file.at("profiles")) {
    std::string& text = texts[profile.at("name")];
    std::vector<Json> open;
    int64_t last = profile.at("startValue");
    for (const Json& event : profile.at("events")) {
      CHECK(event.at("at") >= last);
      last = event.at("at");
      const size_t frame = event.at("frame");
      text += event.at("type") == "O" ? " >" : " <";
      text += frames.at(frame).at("name").get<std::string>();
      if (event.at("type") == "O") {
        open.push_back(event.at("frame"));
      } else {
        REQUIRE(!open.empty());
        CHECK(open.back() == event.at("frame"));
        open.pop_back();
      }
    }
    CHECK(open.empty());
    CHECK(profile.at("endValue") == 1700);
  }
  CHECK(texts.at("one 7/7") == " >f >g <g <f");
  CHECK(texts.at("two 8/8") == " >h >g <g <h >f <f");
}

TEST_CASE("a spool gives back each lane's text, from disk and from memory") {
  LaneSpool spool;
  std::map<size_t, std::string> texts;
  for (int i = 0; i < 3000; ++i) {
    const size_t lane = static_cast<size_t>(i) % 3;
    const std::string text = "," + std::to_string(i);
    spool.add(lane, text);
    texts[lane] += text;
  }
  spool.add(1, std::string(50'000, 'x'));
  texts[1] += std::string(50'000, 'x');
  for (const auto& [lane, text] : texts) {
    std::string read;
    CHECK(spool
              .read(lane,
                    [&](std::string_view piece) {
                      read += piece;
                      return true;
                    })
              .ok());
    CHECK(read == text);
  }
}

TEST_CASE("a spool takes bounded memory, however many lanes there are") {
  LaneSpool spool;
  constexpr size_t kLanes = 10'000;
  constexpr size_t kText = 2500;
  for (size_t round = 0; round < 3; ++round) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      spool.add(lane, std::string(kText, static_cast<char>('a' + lane % 26)));
      REQUIRE(spool.memory() < LaneSpool::kMemoryMax);
    }
  }
  for (size_t lane = 0; lane < kLanes; lane += 999) {
    std::string read;
    const auto take = [&](std::string_view piece) {
      read += piece;
      return true;
    };
    CHECK(spool.read(lane, take).ok());
    CHECK(read == std::string(3 * kText, static_cast<char>('a' + lane % 26)));
  }
}

TEST_CASE("csv, ndjson: a row for each function of which calls were left out") {
  RecordScript script = treetest();
  script.definitions.mutable_process(0)->switched_off = {{script.key("mainAA"), 12'000}};
  script.definitions.add_name(0, 0, std::string("size:100\0", 9));
  Exported exported(script);
  auto rows = csv_rows(exported.to("csv"));
  std::erase_if(rows, [](auto& row) { return row["type"] != "left-out"; });
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["name"] == "mainAA");
  CHECK(rows[0]["start_ns"] == "12000");
  CHECK(rows[0]["duration_ns"].empty());  // lasts to the end
  CHECK(rows[0]["fields"] == "by=switched off");
  CHECK(rows[1]["name"] == "[functions without calls]");
  CHECK(rows[1]["start_ns"] == "0");
  CHECK(rows[1]["fields"] == "by=-Z 100");

  std::istringstream in(exported.to("ndjson"));
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  std::erase_if(lines, [](const Json& line) { return line.at("type") != "left-out"; });
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("name") == "mainAA");
  CHECK(lines[0].at("start_ns") == 12'000);
  CHECK(lines[0].at("duration_ns").is_null());
  CHECK(lines[0].at("fields") == Json{{"by", "switched off"}});
}
