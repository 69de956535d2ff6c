// The definitions of a trace: processes, threads, modules, names and layouts, and
// which repetitions are refused.
#include "reader/trace/definitions.hpp"

#include <doctest/doctest.h>

#include <string>

namespace arctrace::reader {
namespace {

Process make_process(uint32_t id, uint32_t parent = 0, uint32_t origin = 0) {
  Process process;
  process.id = id;
  process.parent_id = parent;
  process.origin = origin;
  return process;
}

Module make_module(uint64_t start, uint64_t end, int64_t loaded_ns, std::string path) {
  Module module;
  module.start = start;
  module.end = end;
  module.loaded_ns = loaded_ns;
  module.path = std::move(path);
  return module;
}

std::string path_at(const Definitions& definitions, ProcessIndex process,
                    uint64_t address, int64_t time_ns) {
  const Module* module = definitions.module_at(process, address, time_ns);
  return module == nullptr ? "" : module->path;
}

TEST_CASE("ids belong to a process, and to its fork children") {
  Definitions definitions;
  const ProcessIndex parent = definitions.add_process(make_process(1));
  const ProcessIndex other = definitions.add_process(make_process(2, 1));
  const ProcessIndex child =
      definitions.add_process(make_process(3, 1, ARCTRACE_ORIGIN_FORK));
  const ProcessIndex grandchild =
      definitions.add_process(make_process(4, 3, ARCTRACE_ORIGIN_FORK));
  REQUIRE(definitions.add_name(parent, 7, "parent's"));
  REQUIRE(definitions.add_name(child, 8, "child's"));
  REQUIRE(definitions.add_name(parent, 8, "not the child's"));
  REQUIRE(definitions.add_layout(parent, {9, 0, "event", {}}));

  CHECK(definitions.name(parent, 7) == "parent's");
  CHECK(definitions.name(other, 7) == std::nullopt);
  CHECK(definitions.name(grandchild, 7) == "parent's");
  CHECK(definitions.name(grandchild, 8) == "child's");
  CHECK(definitions.name(kNoIndex, 7) == std::nullopt);
  CHECK(definitions.layout(grandchild, 9) != nullptr);
  CHECK(definitions.layout(other, 9) == nullptr);
}

TEST_CASE("an id defined again means the same or is refused") {
  Definitions definitions;
  const ProcessIndex process = definitions.add_process(make_process(1));
  CHECK(definitions.add_name(process, 1, "one"));
  CHECK(definitions.add_name(process, 1, "one"));
  CHECK_FALSE(definitions.add_name(process, 1, "two"));
  CHECK(definitions.name(process, 1) == "one");
  CHECK(definitions.add_layout(process, {1, 0, "e", {{ARCTRACE_FIELD_U8, "f"}}}));
  CHECK(definitions.add_layout(process, {1, 0, "e", {{ARCTRACE_FIELD_U8, "f"}}}));
  CHECK_FALSE(definitions.add_layout(process, {1, 0, "e", {{ARCTRACE_FIELD_I8, "f"}}}));
}

TEST_CASE("a ring of forks ends") {
  Definitions definitions;
  const ProcessIndex a =
      definitions.add_process(make_process(1, 2, ARCTRACE_ORIGIN_FORK));
  definitions.add_process(make_process(2, 1, ARCTRACE_ORIGIN_FORK));
  CHECK(definitions.name(a, 7) == std::nullopt);
  CHECK(definitions.layout(a, 7) == nullptr);
  CHECK(definitions.module_at(a, 7, 7) == nullptr);
}

TEST_CASE("an address belongs to the module that is loaded at its time") {
  Definitions definitions;
  const ProcessIndex process = definitions.add_process(make_process(1));
  definitions.add_module(process, make_module(0x5000, 0x6000, 0, "main"));
  definitions.add_module(process, make_module(0x1000, 0x2000, 10, "first"));
  CHECK(definitions.end_module(process, 0x1000, 20));
  CHECK_FALSE(definitions.end_module(process, 0x1000, 21));
  definitions.add_module(process, make_module(0x1000, 0x3000, 30, "second"));
  definitions.add_module(process, make_module(0x1800, 0x2000, 40, "third"));

  CHECK(path_at(definitions, process, 0x5fff, 5) == "main");
  CHECK(path_at(definitions, process, 0x6000, 5) == "");
  CHECK(path_at(definitions, process, 0x4fff, 5) == "");
  CHECK(path_at(definitions, process, 0x1000, 10) == "first");
  CHECK(path_at(definitions, process, 0x1000, 19) == "first");
  CHECK(path_at(definitions, process, 0x1900, 30) == "second");
  CHECK(path_at(definitions, process, 0x1900, 40) == "third");
  // The third module replaced the second one, whose end was never recorded.
  CHECK(path_at(definitions, process, 0x1000, 40) == "");
  // An address that is used before its module was recorded belongs to the next module
  // there.
  CHECK(path_at(definitions, process, 0x1900, 5) == "first");
  CHECK(path_at(definitions, process, 0x1900, 25) == "second");
  CHECK(path_at(definitions, process, 0x2800, 5) == "second");
}

TEST_CASE("a module defined again stays the same one") {
  Definitions definitions;
  const ProcessIndex process = definitions.add_process(make_process(1));
  definitions.add_module(process, make_module(0x1000, 0x2000, 10, "a"));
  definitions.add_module(process, make_module(0x1000, 0x2000, 20, "a"));
  CHECK(definitions.process(process)->modules.size() == 1);
  definitions.add_module(process, make_module(0x1000, 0x2000, 30, "b"));
  CHECK(definitions.process(process)->modules.size() == 2);
  CHECK(path_at(definitions, process, 0x1000, 29) == "a");
  CHECK(path_at(definitions, process, 0x1000, 30) == "b");
}

TEST_CASE("a module's end recorded again, and late, ends no later one") {
  Definitions definitions;
  const ProcessIndex process = definitions.add_process(make_process(1));
  CHECK_FALSE(definitions.end_module(process, 0x1000, 5));
  definitions.add_module(process, make_module(0x1000, 0x2000, 10, "a"));
  CHECK(definitions.end_module(process, 0x1000, 20));
  definitions.add_module(process, make_module(0x1000, 0x2000, 10, "a"));
  CHECK(path_at(definitions, process, 0x1000, 25) == "");
  CHECK(definitions.end_module(process, 0x1000, 20));
  CHECK_FALSE(definitions.end_module(process, 0x1000, 25));
  definitions.add_module(process, make_module(0x1000, 0x2000, 30, "b"));
  CHECK(definitions.end_module(process, 0x1000, 20));
  CHECK(path_at(definitions, process, 0x1000, 35) == "b");
  CHECK(definitions.end_module(process, 0x1000, 40));
  CHECK(path_at(definitions, process, 0x1000, 45) == "");
}

TEST_CASE("a module loaded many times over is found among them") {
  Definitions definitions;
  const ProcessIndex process = definitions.add_process(make_process(1));
  for (int64_t i = 0; i < 1000; ++i) {
    definitions.add_module(process,
                           make_module(0x1000, 0x2000, i * 10, std::to_string(i)));
    CHECK(definitions.end_module(process, 0x1000, i * 10 + 5));
  }
  CHECK(path_at(definitions, process, 0x1234, 5004) == "500");
  CHECK(path_at(definitions, process, 0x1234, 5006) == "501");
  CHECK(path_at(definitions, process, 0x1234, 9996) == "");
}

TEST_CASE("the kind of a module's hooks is that of the one that is loaded then") {
  Definitions definitions;
  const ProcessIndex process = definitions.add_process(make_process(1));
  definitions.add_module(process, make_module(0x1000, 0x2000, 10, "first"));
  CHECK(definitions.end_module(process, 0x1000, 20));
  definitions.add_module(process, make_module(0x1000, 0x3000, 30, "second"));
  const auto kinds = [&] {
    const Process& facts = *definitions.process(process);
    return std::pair(facts.modules[0].hook_kind, facts.modules[1].hook_kind);
  };
  // No module is there at that time, or ever.
  definitions.set_hook_kind(process, 0x1800, 9, ARCTRACE_HOOK_XRAY);
  definitions.set_hook_kind(process, 0x1800, 20, ARCTRACE_HOOK_XRAY);
  definitions.set_hook_kind(process, 0x3000, 40, ARCTRACE_HOOK_XRAY);
  definitions.set_hook_kind(process + 1, 0x1800, 40, ARCTRACE_HOOK_XRAY);
  CHECK(kinds() == std::pair(0u, 0u));
  CHECK_FALSE(definitions.process(process)->has_hook_kinds);
  definitions.set_hook_kind(process, 0x1800, 10, ARCTRACE_HOOK_RETURN);
  CHECK(definitions.process(process)->has_hook_kinds);
  definitions.set_hook_kind(process, 0x1000, 10, ARCTRACE_HOOK_XRAY);
  CHECK(kinds() == std::pair(uint32_t{ARCTRACE_HOOK_RETURN}, 0u));
  definitions.set_hook_kind(process, 0x2800, 31, ARCTRACE_HOOK_XRAY);
  CHECK(kinds() ==
        std::pair(uint32_t{ARCTRACE_HOOK_RETURN}, uint32_t{ARCTRACE_HOOK_XRAY}));
}

TEST_CASE("a fork child has its parent's modules as they were at the fork") {
  Definitions definitions;
  const ProcessIndex parent = definitions.add_process(make_process(1));
  Process fork = make_process(2, 1, ARCTRACE_ORIGIN_FORK);
  fork.start_ns = 50;
  const ProcessIndex child = definitions.add_process(std::move(fork));
  definitions.add_module(parent, make_module(0x1000, 0x2000, 0, "a"));
  CHECK(definitions.end_module(parent, 0x1000, 60));
  definitions.add_module(child, make_module(0x3000, 0x4000, 70, "b"));
  CHECK(path_at(definitions, child, 0x1000, 100) == "a");
  CHECK(path_at(definitions, parent, 0x1000, 100) == "");
  CHECK(path_at(definitions, child, 0x3000, 100) == "b");
}

TEST_CASE("a thread has the name of the moment") {
  Definitions definitions;
  Thread thread;
  thread.writer = 5;
  thread.names = {{10, "first"}, {20, "second"}};
  const ThreadIndex index = definitions.add_thread(std::move(thread));
  CHECK(definitions.find_thread(5) == index);
  CHECK(definitions.find_thread(6) == kNoIndex);
  CHECK(definitions.thread_name(index, 5) == "first");
  CHECK(definitions.thread_name(index, 10) == "first");
  CHECK(definitions.thread_name(index, 20) == "second");
  CHECK(definitions.thread_name(kNoIndex, 20) == "");
}

}  // namespace
}  // namespace arctrace::reader
