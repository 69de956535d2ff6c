// Names of generated code, by address and by time.
#include <doctest/doctest.h>

#include "reader/replay/resolver.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_script.hpp"

namespace arctrace::reader {
namespace {

ProcessIndex add_process(Definitions& definitions, uint32_t id, uint32_t parent = 0,
                         int64_t start_ns = 0) {
  Process process;
  process.id = id;
  process.parent_id = parent;
  process.origin = parent == 0 ? ARCTRACE_ORIGIN_EXEC : ARCTRACE_ORIGIN_FORK;
  process.start_ns = start_ns;
  return definitions.add_process(process);
}

void add_code(Definitions& definitions, ProcessIndex process, uint64_t start,
              uint64_t end, int64_t since_ns, const std::string& name) {
  definitions.mutable_process(process)->code.push_back({start, end, since_ns, name});
}

std::string name_at(GeneratedCode& code, uint64_t address, int64_t time_ns) {
  const GeneratedCode::Found found = code.find(address, time_ns);
  return found.code == nullptr ? "" : found.code->name;
}

TEST_CASE("code is where it is, and nowhere else") {
  Definitions definitions;
  const ProcessIndex p = add_process(definitions, 1);
  add_code(definitions, p, 100, 110, 0, "a");
  GeneratedCode code(definitions, p);
  CHECK(name_at(code, 99, 0).empty());
  CHECK(name_at(code, 100, 0) == "a");
  CHECK(name_at(code, 109, 0) == "a");
  CHECK(name_at(code, 110, 0).empty());
  GeneratedCode of_nobody(definitions, kNoIndex);
  CHECK(name_at(of_nobody, 100, 0).empty());
}

TEST_CASE("code that replaces other code does so from its time on") {
  Definitions definitions;
  const ProcessIndex p = add_process(definitions, 1);
  add_code(definitions, p, 100, 200, 50, "new");  // recorded in any order
  add_code(definitions, p, 100, 200, 10, "old");
  GeneratedCode code(definitions, p);
  CHECK(name_at(code, 150, 5) == "old");  // the code ran before its load was recorded
  CHECK(code.find(150, 5).until_ns == 10);
  CHECK(name_at(code, 150, 10) == "old");
  CHECK(code.find(150, 10).until_ns == 50);
  CHECK(name_at(code, 150, 49) == "old");
  CHECK(name_at(code, 150, 50) == "new");
  CHECK(code.find(150, 50).until_ns == INT64_MAX);
}

TEST_CASE(
    "of equal times the one recorded later stands, and what it does not cover stays") {
  Definitions definitions;
  const ProcessIndex p = add_process(definitions, 1);
  add_code(definitions, p, 100, 200, 0, "outer");
  add_code(definitions, p, 120, 130, 0, "inner");
  add_code(definitions, p, 190, 250, 0, "across");
  add_code(definitions, p, 90, 105, 0, "before");
  GeneratedCode code(definitions, p);
  CHECK(name_at(code, 95, 0) == "before");
  CHECK(name_at(code, 104, 0) == "before");
  CHECK(name_at(code, 105, 0) == "outer");
  CHECK(name_at(code, 120, 0) == "inner");
  CHECK(name_at(code, 130, 0) == "outer");
  CHECK(name_at(code, 189, 0) == "outer");
  CHECK(name_at(code, 190, 0) == "across");
  CHECK(name_at(code, 249, 0) == "across");
  CHECK(name_at(code, 250, 0).empty());
}

TEST_CASE("a fork child has what its parent had then, below its own") {
  Definitions definitions;
  const ProcessIndex parent = add_process(definitions, 1);
  const ProcessIndex child = add_process(definitions, 2, 1, 100);
  add_code(definitions, parent, 1000, 1010, 50, "parent");
  add_code(definitions, parent, 2000, 2010, 50, "both");
  add_code(definitions, parent, 1000, 1010, 150, "parent_later");
  add_code(definitions, child, 2000, 2010, 100, "child");
  GeneratedCode of_parent(definitions, parent);
  GeneratedCode of_child(definitions, child);
  CHECK(name_at(of_child, 1000, 200) == "parent");
  CHECK(name_at(of_child, 2000, 200) == "child");
  CHECK(name_at(of_parent, 1000, 200) == "parent_later");
  CHECK(name_at(of_parent, 2000, 200) == "both");
}

TEST_CASE("parents in a ring end") {
  Definitions definitions;
  const ProcessIndex a = add_process(definitions, 1, 2);
  add_process(definitions, 2, 1);
  add_code(definitions, a, 100, 110, 0, "a");
  GeneratedCode code(definitions, a);
  CHECK(name_at(code, 100, 0) == "a");
}

// Compares with READ-4 as SPEC.md words it, address by address.
TEST_CASE("any code, at any time, is as READ-4 says") {
  testing::Random random(testing::test_seed());
  for (int round = 0; round < 300; ++round) {
    Definitions definitions;
    const ProcessIndex p = add_process(definitions, 1);
    const uint32_t count = random.below(12);
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t start = random.below(40);
      add_code(definitions, p, start, start + 1 + random.below(15),
               int64_t{random.below(8)}, std::to_string(i));
    }
    const std::vector<Code>& all = definitions.process(p)->code;
    GeneratedCode code(definitions, p);
    for (int64_t time = 0; time < 9; ++time) {
      for (uint64_t address = 0; address < 60; ++address) {
        const Code* last = nullptr;
        const Code* first = nullptr;
        for (const Code& each : all) {
          if (address < each.start || address >= each.end) continue;
          if (each.since_ns <= time &&
              (last == nullptr || each.since_ns >= last->since_ns)) {
            last = &each;
          }
          if (first == nullptr || each.since_ns < first->since_ns) first = &each;
        }
        REQUIRE(code.find(address, time).code == (last != nullptr ? last : first));
      }
    }
  }
}

}  // namespace
}  // namespace arctrace::reader
