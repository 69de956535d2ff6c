// Exports of sums: folded, pprof, callgrind.
#include <doctest/doctest.h>
#include <zlib.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/kernel_script.hpp"
#include "tests/unit/export/exported.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// The lines of folded stacks, by the rule of the scripts that read them: the number comes
// after the last blank.
std::map<std::string, uint64_t> folded(const std::string& text) {
  std::map<std::string, uint64_t> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t blank = line.rfind(' ');
    REQUIRE(blank != std::string::npos);
    CHECK(
        lines.emplace(line.substr(0, blank), std::stoull(line.substr(blank + 1))).second);
  }
  return lines;
}

std::string gunzip(const std::string& bytes) {
  std::string out(size_t{1} << 22, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

// f waits 200 of its 1000 ns.
KernelScript waits() {
  KernelScript s;
  const ThreadIndex first = s.script.thread(s.process, 100, "first");
  s.task(0);
  s.task(100);
  s.script.enter(first, 1000, "f");
  s.leaves(100, 1100, false);
  s.woken(100, 1250, 0);
  s.comes(100, 1300);
  s.script.exit(first, 2000);
  return s;
}

}  // namespace

TEST_CASE("folded: a line for each stack with time of its own") {
  const RecordScript script = treetest();
  const auto lines = folded(Exported(script).to("folded"));
  CHECK(lines ==
        std::map<std::string, uint64_t>{{"treetest 7/7;main;mainA;mainAA", 10'000},
                                        {"treetest 7/7;main;mainA;mainAB", 20'000},
                                        {"treetest 7/7;main;mainB;mainBA", 30'000},
                                        {"treetest 7/7;main;mainB;mainBB", 40'000}});
}

TEST_CASE("folded: weights") {
  const KernelScript s = waits();
  Exported exported(s.script);
  const std::string f = "first 100/100;f";
  CHECK(folded(exported.to("folded")).at(f) == 1000);
  exported.settings.weight = ExportWeight::kCpu;
  CHECK(folded(exported.to("folded")).at(f) == 800);
  exported.settings.weight = ExportWeight::kOffCpu;
  CHECK(folded(exported.to("folded")).at(f) == 200);
  exported.settings.weight = ExportWeight::kCount;
  CHECK(folded(exported.to("folded")) == std::map<std::string, uint64_t>{{f, 1}});
}

TEST_CASE("folded: groups") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/prog");
  for (const uint32_t tid : {7u, 8u}) {
    const ThreadIndex thread = script.thread(process, tid, "t");
    script.enter(thread, 1000, "f");
    script.exit(thread, 1000 + 100 * tid);
  }
  Exported exported(script);
  exported.settings.grouping = Grouping::kProcess;
  CHECK(folded(exported.to("folded")).at("prog 7;f") == 1500);
  exported.settings.grouping = Grouping::kAll;
  CHECK(folded(exported.to("folded")).at("all;f") == 1500);
}

TEST_CASE("folded: threads of one name are one root") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/prog");
  for (const uint32_t tid : {7u, 8u, 9u}) {
    const ThreadIndex thread = script.thread(process, tid, tid == 9 ? "last" : "t");
    script.enter(thread, 1000, "f");
    script.exit(thread, 1000 + 100 * tid);
  }
  Exported exported(script);
  exported.settings.grouping = Grouping::kName;
  const std::map<std::string, uint64_t> sums = folded(exported.to("folded"));
  CHECK(sums.at("t;f") == 1500);
  CHECK(sums.at("last;f") == 900);
}

TEST_CASE("folded: names with semicolons, blanks and new lines stay on their line") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "p;1 2");
  script.enter(thread, 1000, "operator()(a; b) const 5\n6");
  script.exit(thread, 3000);
  const auto lines = folded(Exported(script).to("folded"));
  CHECK(lines.at("p:1 2 7/7;operator()(a: b) const 5\\n6") == 2000);
}

TEST_CASE("pprof: samples lead to their functions, and values add up") {
  const KernelScript s = waits();
  const std::string profile = gunzip(Exported(s.script).to("pprof"));
  std::vector<std::string> texts;
  std::map<uint64_t, uint64_t> function_of;  // by location
  std::map<uint64_t, uint64_t> name_of;      // by function
  std::vector<uint64_t> types;
  std::vector<std::pair<std::vector<uint64_t>, std::vector<int64_t>>> samples;
  for (protozero::pbf_reader r(profile); r.next();) {
    if (r.tag() == 6) {
      texts.emplace_back(r.get_view());
    } else if (r.tag() == 1) {
      protozero::pbf_reader type(r.get_view());
      REQUIRE(type.next(1));
      types.push_back(type.get_uint64());
    } else if (r.tag() == 2) {
      auto& [locations, values] = samples.emplace_back();
      for (protozero::pbf_reader sample(r.get_view()); sample.next();) {
        if (sample.tag() == 1) {
          for (const uint64_t id : sample.get_packed_uint64()) locations.push_back(id);
        } else if (sample.tag() == 2) {
          for (const int64_t value : sample.get_packed_int64()) values.push_back(value);
        } else {
          sample.skip();
        }
      }
    } else if (r.tag() == 4 || r.tag() == 5) {
      const bool is_location = r.tag() == 4;
      protozero::pbf_reader entry(r.get_view());
      REQUIRE(entry.next(1));
      const uint64_t id = entry.get_uint64();
      if (is_location) {
        REQUIRE(entry.next(4));
        protozero::pbf_reader line(entry.get_view());
        REQUIRE(line.next(1));
        function_of[id] = line.get_uint64();
      } else {
        REQUIRE(entry.next(2));
        name_of[id] = entry.get_uint64();
      }
    } else {
      r.skip();
    }
  }
  REQUIRE(!texts.empty());
  CHECK(texts[0].empty());
  std::vector<std::string> names;
  for (const uint64_t type : types) names.push_back(texts.at(type));
  CHECK(names == std::vector<std::string>{"calls", "wall", "cpu", "off-cpu"});
  REQUIRE(samples.size() == 1);
  CHECK(samples[0].second == std::vector<int64_t>{1, 1000, 800, 200});
  std::vector<std::string> stack;
  for (const uint64_t location : samples[0].first) {
    stack.push_back(texts.at(name_of.at(function_of.at(location))));
  }
  CHECK(stack == std::vector<std::string>{"f", "first 100/100"});
}

TEST_CASE("sums: a deep recursion takes space in proportion to its depth") {
  const auto recursion = [](int64_t depth) {
    RecordScript script;
    const ThreadIndex thread = script.program(7, "prog");
    int64_t now = 1000;
    for (int64_t i = 0; i < depth; ++i)
      script.enter(thread, now++, i % 2 ? "odd" : "even");
    for (int64_t i = 0; i < depth; ++i) script.exit(thread, now++);
    return script;
  };
  constexpr int64_t kDepth = 5000;
  const RecordScript deep = recursion(kDepth);
  const std::string text = Exported(deep).to("folded");
  // Sums by the innermost function are complete, and tell where functions are omitted.
  std::map<std::string, uint64_t> sums;
  size_t cut = 0;
  for (const auto& [stack, weight] : folded(text)) {
    sums[stack.substr(stack.rfind(';') + 1)] += weight;
    cut += stack.find(";[functions left out];") != std::string::npos;
  }
  // The innermost call takes 1 ns, each other call 2.
  CHECK(sums == std::map<std::string, uint64_t>{{"even", kDepth}, {"odd", kDepth - 1}});
  CHECK(cut == 2);
  const RecordScript twice = recursion(2 * kDepth);
  CHECK(Exported(twice).to("folded").size() < text.size() + 1000);
  const std::string profile = gunzip(Exported(deep).to("pprof"));
  CHECK(gunzip(Exported(twice).to("pprof")).size() < profile.size() + 1000);
  CHECK(profile.find("[functions left out]") != std::string::npos);
}

TEST_CASE("callgrind: own and inclusive costs, recursion counted once") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "f");
  script.enter(thread, 1100, "f");
  script.enter(thread, 1300, "g");
  script.exit(thread, 1700);
  script.exit(thread, 1800);
  script.exit(thread, 2000);
  const std::string text = Exported(script).to("callgrind");
  // "function: own" and "caller > callee: calls, inclusive".
  std::map<std::string, std::string> names, costs;
  std::string caller, callee, calls;
  const auto named = [&](const std::string& value) {
    const size_t end = value.find(')');
    const std::string id = value.substr(0, end + 1);
    if (value.size() > end + 1) names[id] = value.substr(end + 2);
    return names.at(id);
  };
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("fn=")) caller = named(line.substr(3));
    if (line.starts_with("cfn=")) callee = named(line.substr(4));
    if (line.starts_with("calls=")) calls = line.substr(6, line.find(' ') - 6);
    if (!line.starts_with("0 ")) continue;
    if (callee.empty()) {
      costs[caller] = line.substr(2);
    } else {
      std::string edge = caller;
      edge += " > " + callee;
      costs[edge] = calls + ", " + line.substr(2);
    }
    callee.clear();
  }
  CHECK(costs == std::map<std::string, std::string>{{"prog 7/7", "0"},
                                                    {"f", "600"},
                                                    {"g", "400"},
                                                    {"prog 7/7 > f", "1, 1000"},
                                                    {"f > f", "1, 0"},
                                                    {"f > g", "1, 400"}});
  CHECK(text.find("\ntotals: 1000\n") != std::string::npos);
}

TEST_CASE("callgrind, pprof: remarks on functions of which calls were left out") {
  RecordScript script = treetest();
  CHECK(Exported(script).to("callgrind").find("left out") == std::string::npos);
  script.definitions.mutable_process(0)->switched_off = {{script.key("mainAA"), 12'000}};
  script.definitions.add_name(0, 0, std::string("size:100\0", 9));
  const std::string off = "calls of mainAA left out: switched off from 12.0 us on";
  const std::string small = "functions left out: -Z 100";
  const std::string text = Exported(script).to("callgrind");
  CHECK(text.find("\ndesc: " + off + "\ndesc: " + small + "\npositions: line\n") !=
        std::string::npos);
  const std::string profile = gunzip(Exported(script).to("pprof"));
  std::vector<std::string> texts;
  std::vector<int64_t> comments;
  for (protozero::pbf_reader reader(profile); reader.next();) {
    if (reader.tag() == 6) {
      texts.push_back(reader.get_string());
    } else if (reader.tag() == 13) {
      comments.push_back(reader.get_int64());
    } else {
      reader.skip();
    }
  }
  REQUIRE(comments.size() == 2);
  CHECK(texts.at(static_cast<size_t>(comments[0])) == off);
  CHECK(texts.at(static_cast<size_t>(comments[1])) == small);
}
