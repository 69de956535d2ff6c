// The definitions that a process writes: itself, its threads, names and layouts, again in
// each generation.
#include "src/writer/definitions.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "src/api/shim_interface.h"
#include "src/os/process_facts.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// The names that each process has defined, by id.
std::map<uint32_t, std::map<uint32_t, std::string>> names_of(const DecodedTrace& trace) {
  std::map<uint32_t, std::map<uint32_t, std::string>> names;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_STRING)) {
    const std::string name = record.text(12, record.u32(8));
    CHECK(record.body.size() == 12 + (name.size() + 3) / 4 * 4);
    std::string& known = names[record.u32(0)][record.u32(4)];
    CHECK((known.empty() || known == name));  // D2
    known = name;
  }
  return names;
}

TEST_CASE("definitions: a process defines itself") {
  TestSession test(small_buffer(8192, 32));
  CHECK_CHILD([&] { join(test); });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  const std::vector<DecodedRecord> processes = trace.of_type(ARCTRACE_TYPE_PROCESS);
  REQUIRE(processes.size() == 1);
  const DecodedRecord& process = processes[0];
  CHECK(process.u32(0) == 1);
  CHECK(process.u32(4) == 0);
  CHECK(process.u32(8) == trace.blocks[0].header.pid);
  CHECK(process.u32(12) == static_cast<uint32_t>(getpid()));
  CHECK(process.u32(16) == geteuid());
  CHECK(process.u32(20) == ARCTRACE_ORIGIN_EXEC);
  CHECK(process.u64(24) <= process.ticks);
  const uint32_t n = process.u32(32);
  const uint32_t m = process.u32(36);
  CHECK(process.text(40, n) == std::filesystem::read_symlink("/proc/self/exe").string());
  std::ifstream file("/proc/self/cmdline");
  const std::string arguments((std::istreambuf_iterator<char>(file)),
                              std::istreambuf_iterator<char>());
  CHECK(process.text(40 + (n + 3) / 4 * 4, m) == arguments);
}

TEST_CASE("definitions: threads have names, and new ones when they change") {
  TestSession test(small_buffer(4096, 32));
  CHECK_CHILD([&] {
    join(test);
    std::thread([] {
      pthread_setname_np(pthread_self(), "kernel's name");
      arctrace_instant(1);
      arctrace_thread_name("our name");
      arctrace_thread_name(std::string(100, 'n').c_str());
      arctrace_thread_name(nullptr);
    }).join();
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  std::vector<std::string> names;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_THREAD)) {
    if (record.u32(0) == 2) names.push_back(record.text(24, record.u32(12)));
  }
  CHECK(names.size() == 4);
  CHECK(names == std::vector<std::string>{"kernel's name", "our name",
                                          std::string(63, 'n'), "kernel's name"});
}

TEST_CASE("definitions: a new collector gets them from threads in the chain, too") {
  recorder::BufferOptions options = small_buffer(4096, 32);
  options.scope = ARCTRACE_SCOPE_SHARED;
  TestSession test(options);
  CHECK_CHILD([&] {
    join(test);
    for (uint32_t event = 1; event < 3; ++event) arctrace_write(event, nullptr, 0);
    recorder::demand_definitions(test.buffer().view());
    for (uint32_t event = 3; event < 5; ++event) arctrace_write(event, nullptr, 0);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_PROCESS).size() == 2);
  CHECK(trace.of_type(ARCTRACE_TYPE_THREAD).size() == 2);
}

TEST_CASE("definitions: what was defined before joining is written then, once") {
  TestSession test(small_buffer(4096, 32));
  uint32_t id = 0;
  CHECK_CHILD([&] {
    id = arctrace_define_name("early");
    CHECK(id == 1);
    const arctrace_field fields[] = {{"a", ARCTRACE_FIELD_U8},
                                     {"text", ARCTRACE_FIELD_STRING}};
    CHECK(arctrace_define_event("early event", 3, fields, 2) == 1);
    join(test);
    CHECK(arctrace_define_name("late") == 2);
    CHECK(arctrace_define_event("plain", 0, nullptr, 0) == 2);
    arctrace_instant(1);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_STRING).size() == 2);
  auto names = names_of(trace);
  CHECK(names[1][1] == "early");
  CHECK(names[1][2] == "late");
  const std::vector<DecodedRecord> layouts = trace.of_type(ARCTRACE_TYPE_EVENT_LAYOUT);
  REQUIRE(layouts.size() == 2);
  const DecodedRecord& layout = layouts[0];
  CHECK(layout.u32(4) == 1);
  CHECK(layout.u32(8) == 3);
  CHECK(layout.u32(12) == 2);
  CHECK(layout.text(20, layout.u32(16)) == "early event");
  CHECK(layout.u32(32) == ARCTRACE_FIELD_U8);
  CHECK(layout.text(40, layout.u32(36)) == "a");
  CHECK(layout.u32(44) == ARCTRACE_FIELD_STRING);
  CHECK(layout.text(52, layout.u32(48)) == "text");
  CHECK(layout.body.size() == 56);
}

TEST_CASE("definitions: what can't be defined has id 0 and leaves no trace") {
  TestSession test(small_buffer(4096, 32));
  CHECK_CHILD([&] {
    join(test);
    const arctrace_field wrong[] = {{"a", ARCTRACE_FIELD_U8}, {"b", 0}, {"c", 14}};
    CHECK(arctrace_define_event("wrong type", 0, wrong, 2) == 0);
    CHECK(arctrace_define_event("wrong type", 0, wrong + 2, 1) == 0);
    CHECK(arctrace_define_event("wrong level", 8, wrong, 1) == 0);
    const std::vector<arctrace_field> many(65, wrong[0]);
    CHECK(arctrace_define_event("too many", 0, many.data(), many.size()) == 0);
    CHECK(arctrace_define_event("as many", 0, many.data(), 64) != 0);
  });
  CHECK(test.finish().of_type(ARCTRACE_TYPE_EVENT_LAYOUT).size() == 1);
}

TEST_CASE("definitions: a fork child repeats what it inherited under its own identity") {
  TestSession test(small_buffer(4096, 64));
  CHECK_CHILD([&] {
    join(test);
    const uint32_t before = arctrace_define_name("before the fork");
    CHECK_CHILD([before] {
      arctrace_instant(before);
      arctrace_instant(arctrace_define_name("the child's"));
    });
    arctrace_instant(arctrace_define_name("the parent's"));
    CHECK_CHILD([] { arctrace_instant(2); });
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(joined(undefined_uses(trace)) == "");
  auto names = names_of(trace);
  CHECK(names[1] ==
        std::map<uint32_t, std::string>{{1, "before the fork"}, {2, "the parent's"}});
  CHECK(names[2] ==
        std::map<uint32_t, std::string>{{1, "before the fork"}, {2, "the child's"}});
  CHECK(names[3] == names[1]);
  std::map<uint32_t, std::set<std::string>> modules;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_MODULE)) {
    modules[record.u32(0)].insert(record.text(56, 200));
  }
  CHECK(modules[1].size() > 3);
  CHECK(modules[2] == modules[1]);
  CHECK(modules[3] == modules[1]);
}

TEST_CASE("definitions: the filter of calls is no name, and ends with the session") {
  TestSession test(small_buffer(4096, 64));
  CHECK_CHILD([&] {
    join(test);
    arctrace_shim_set_filter_text("depth:3", sizeof "depth:3");
    arctrace_instant(arctrace_define_name("a name"));
    CHECK(writer::find_name(0).text.empty());
    static int names;
    writer::for_each_name([](writer::Definition&) { ++names; });
    CHECK(names == 1);
    CHECK_CHILD([] { arctrace_instant(1); });
    writer::retire_filter_text();
    CHECK_CHILD([] { arctrace_instant(1); });
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  auto names = names_of(trace);
  const std::map<uint32_t, std::string> filtered = {{0, std::string("depth:3\0", 8)},
                                                    {1, "a name"}};
  CHECK(names[1] == filtered);
  CHECK(names[2] == filtered);
  CHECK(names[3] == std::map<uint32_t, std::string>{{1, "a name"}});
}

TEST_CASE(
    "definitions: blocks too small for a text cut it, and record its length there") {
  const std::string name(1024, 'x');
  const std::string name_in_pieces = name.substr(0, 1023);
  const std::vector<arctrace_field> fields = {{"first", ARCTRACE_FIELD_U32},
                                              {name.c_str(), ARCTRACE_FIELD_U64}};
  for (const uint32_t block_size : {384u, 448u, 512u, 1024u, 1216u, 2048u}) {
    CAPTURE(block_size);
    TestSession test(small_buffer(block_size, 400));
    CHECK_CHILD([&] {
      join(test);
      CHECK(arctrace_define_name(name.c_str()) == 1);
      CHECK(arctrace_define_name((name + "y").c_str()) == 2);
      CHECK(arctrace_define_name(name_in_pieces.c_str()) == 3);
      CHECK(arctrace_define_event("event", 0, fields.data(), 2) == 1);
      arctrace_thread_name(name.c_str());
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(joined(undefined_uses(trace)) == "");
    for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_STRING)) {
      const uint32_t length = record.u32(8);
      CHECK(record.body.size() == 12 + (length + 3) / 4 * 4);
      CHECK(record.text(12, length) == name.substr(0, length));
      CHECK(length == std::min<size_t>(record.u32(4) == 3 ? 1023 : 1024,
                                       block_size - 128 - 16 - 12));
    }
    const std::vector<DecodedRecord> layouts = trace.of_type(ARCTRACE_TYPE_EVENT_LAYOUT);
    REQUIRE(layouts.size() == 1);
    const uint32_t length = layouts[0].u32(48);
    CHECK(layouts[0].body.size() == 52 + (length + 3) / 4 * 4);
    CHECK(layouts[0].text(52, length) == name.substr(0, length));
    CHECK(trace.of_type(ARCTRACE_TYPE_PROCESS).size() == 1);
  }
}

TEST_CASE("definitions: without room they wait, and come when there is some") {
  TestSession test(small_buffer(512, 24));
  CHECK_CHILD([&] {
    join(test);
    while (arctrace_lost(nullptr) == 0) arctrace_instant(0);
    uint32_t id = 0;
    for (int i = 0; i < 20; ++i)
      id = arctrace_define_name("a name for which there is no room");
    test.drain().round();
    arctrace_instant(id);
    arctrace_flush();
    test.drain().round();
    arctrace_instant(id);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(names_of(trace)[1].size() == 20);
  });
}

TEST_CASE("definitions: a process without room for them asks the kernel once who it is") {
  constexpr uint32_t kBlocks = 32;
  recorder::BufferOptions options = small_buffer(4096, kBlocks);
  options.mode = ARCTRACE_MODE_OVERWRITE;
  TestSession test(options);
  CHECK_CHILD([&] {
    prctl(PR_SET_NAME, "early");
    test.view().control().definition_blocks = kBlocks / 2;  // all that they get
    join(test);
    const auto write_blocks = [] {
      for (uint32_t i = 0; i < 4096; ++i) arctrace_write(i, nullptr, 0);
    };
    write_blocks();
    CHECK(std::string(last_process_facts().thread_name) == "early");
    prctl(PR_SET_NAME, "late");
    write_blocks();
    CHECK(std::string(last_process_facts().thread_name) == "early");
    CHECK(test.snapshot().of_type(ARCTRACE_TYPE_PROCESS).empty());
    test.view().control().definition_blocks = 0;
    write_blocks();
    CHECK(test.snapshot().of_type(ARCTRACE_TYPE_PROCESS).size() == 1);
  });
}

TEST_CASE("definitions: in drop mode, too, and then once for each round") {
  constexpr uint32_t kBlocks = 32;
  TestSession test(small_buffer(4096, kBlocks));
  CHECK_CHILD([&] {
    prctl(PR_SET_NAME, "early");
    for (uint32_t i = 0; i < kBlocks; ++i)
      test.view().block_header(i).state = ARCTRACE_PHASE_CLOSED;
    join(test);
    const auto write_some = [&] {
      for (uint32_t i = 0; i < 64; ++i) {
        ++test.view().control().freed;  // makes the writer search for space again
        arctrace_instant(0);
      }
    };
    write_some();
    CHECK(std::string(last_process_facts().thread_name) == "early");
    prctl(PR_SET_NAME, "late");
    write_some();
    CHECK(std::string(last_process_facts().thread_name) == "early");
    for (uint32_t i = 0; i < kBlocks; ++i)
      test.view().block_header(i).state = ARCTRACE_PHASE_FREE;
    write_some();
    CHECK(std::string(last_process_facts().thread_name) == "early");
    test.view().control().definitions_round = 1;
    arctrace_flush();
    write_some();
    CHECK(std::string(last_process_facts().thread_name) == "late");
  });
}

TEST_CASE("definitions: many at once, by many threads, all arrive") {
  TestSession test(small_buffer(4096, 2000, 64));
  constexpr int kThreads = 8;
  constexpr int kEach = 2000;  // more than one chunk of the registry
  CHECK_CHILD([&] {
    join(test);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kEach; ++i) {
          const std::string name =
              "thread " + std::to_string(t) + " name " + std::to_string(i);
          CHECK(arctrace_define_name(name.c_str()) != 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    arctrace_instant(1);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  std::set<std::string> names;
  auto by_process = names_of(trace);
  for (const auto& [id, name] : by_process[1]) names.insert(name);
  CHECK(names.size() == size_t{kThreads} * kEach);
}

TEST_CASE("definitions: a burst of them wakes the collector past the high-water mark") {
  recorder::BufferOptions options = small_buffer(4096, 64);
  options.high_water_percent = 50;
  const TestSession test(options);
  arctrace_control& control = test.view().control();
  CHECK_CHILD([&] {
    join(test);
    control.wake = 0;  // the collector had to read the gate
    while (control.taken < 31) arctrace_define_name("a name of many");
    CHECK(control.wake == 0);
    while (control.taken < 32) arctrace_define_name("a name of many");
    CHECK(control.wake == 1);
    control.wake = 0;  // the collector sleeps again, and there is no block
    for (int i = 0; i < 10'000; ++i) arctrace_define_name("a name of many");
    CHECK(control.wake == 1);
  });
}

}  // namespace
}  // namespace arctrace::testing
