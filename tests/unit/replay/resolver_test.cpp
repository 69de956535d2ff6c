// How an address becomes the name of a function.
#include "reader/replay/resolver.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/record_script.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

Module module_at(uint64_t start, const char* path, int64_t loaded_ns = INT64_MIN) {
  Module module;
  module.start = start;
  module.end = start + 0x1000;
  module.bias = start - 0x400;
  module.loaded_ns = loaded_ns;
  module.path = path;
  return module;
}

}  // namespace

TEST_CASE("keys without a symbol are named by their address") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  script.definitions.add_module(p, module_at(0x5000, "/lib/libx.so"));
  FunctionResolver resolver(script.definitions, nullptr);
  const auto name = [&](uint64_t key) {
    return resolver.functions()[resolver.resolve(p, key, 0)];
  };
  CHECK(name(0x5010).name == "libx.so+0x410");
  CHECK(name(0x5010).module == "/lib/libx.so");
  CHECK(name(0x9000).name == "0x9000");
  CHECK(name(0x9000).module.empty());
  CHECK(name(script.key("scope")).name == "scope");
  CHECK(name(ARCTRACE_FRAME_NAME_BIT | 77).name == "name#77");
}

TEST_CASE("a library call belongs to the first module that offers its name") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  Dl_info libc{};
  REQUIRE(dladdr(reinterpret_cast<void*>(&getppid), &libc) != 0);
  script.definitions.add_module(p, module_at(0x5000, "/not/there.so"));
  script.definitions.add_module(p, module_at(0x6000, libc.dli_fname, 100));
  script.definitions.add_module(p, module_at(0x8000, libc.dli_fname, 100));
  Symbolizer symbolizer;
  FunctionResolver resolver(script.definitions, &symbolizer);
  const auto module = [&](uint64_t key, int64_t time_ns) {
    return resolver.functions()[resolver.resolve(p, key, time_ns)].module;
  };
  const uint64_t scope = script.key("getppid");
  const uint64_t call = scope | ARCTRACE_FRAME_LIBRARY_BIT;
  CHECK(module(call, 50).empty());
  CHECK(module(call, 150) == libc.dli_fname);
  CHECK(module(scope, 150).empty());
  CHECK(module(script.key("no_such_function") | ARCTRACE_FRAME_LIBRARY_BIT, 150).empty());
}

TEST_CASE("a library call is never of the shim, nor of a module that is gone") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  Dl_info libc{};
  REQUIRE(dladdr(reinterpret_cast<void*>(&getppid), &libc) != 0);
  const TemporaryDirectory directory;
  const std::string shim = directory.path("libarctrace-shim.so");
  const std::string first = directory.path("libfirst.so");
  const std::string second = directory.path("libsecond.so");
  for (const std::string& name : {shim, first, second}) {
    std::filesystem::create_symlink(libc.dli_fname, name);
  }
  script.definitions.add_module(p, module_at(0x5000, shim.c_str()));
  script.definitions.add_module(p, module_at(0x6000, first.c_str()));
  script.definitions.add_module(p, module_at(0x8000, second.c_str()));
  script.definitions.end_module(p, 0x6000, 200);
  Symbolizer symbolizer;
  FunctionResolver resolver(script.definitions, &symbolizer);
  const uint64_t call = script.key("getppid") | ARCTRACE_FRAME_LIBRARY_BIT;
  const auto module = [&](int64_t time_ns) {
    return resolver.functions()[resolver.resolve(p, call, time_ns)].module;
  };
  CHECK(module(150) == first);
  CHECK(module(250) == second);
}

TEST_CASE(
    "a fork child's library calls are its parent's until it has modules of its own") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  const ProcessIndex child = script.process(2, "/bin/a", ARCTRACE_ORIGIN_FORK);
  script.definitions.mutable_process(child)->parent_id =
      script.definitions.process(p)->id;
  script.definitions.mutable_process(child)->start_ns = 200;
  Dl_info libc{};
  REQUIRE(dladdr(reinterpret_cast<void*>(&getppid), &libc) != 0);
  const TemporaryDirectory directory;
  const std::string later = directory.path("liblater.so");
  std::filesystem::create_symlink(libc.dli_fname, later);
  script.definitions.add_module(p, module_at(0x5000, libc.dli_fname));
  script.definitions.add_module(p, module_at(0x6000, later.c_str(), 250));
  script.definitions.add_module(child, module_at(0x5000, later.c_str(), 300));
  Symbolizer symbolizer;
  FunctionResolver resolver(script.definitions, &symbolizer);
  const uint64_t call = script.key("getppid") | ARCTRACE_FRAME_LIBRARY_BIT;
  const auto module = [&](int64_t time_ns) {
    return resolver.functions()[resolver.resolve(child, call, time_ns)].module;
  };
  CHECK(module(150) == libc.dli_fname);
  CHECK(module(280) == libc.dli_fname);  // the second library was loaded after the fork
  CHECK(module(350) == later);
}

TEST_CASE("the same function of two processes is one") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  const ProcessIndex q = script.process(2, "/bin/a");
  script.definitions.add_module(p, module_at(0x5000, "/lib/libx.so"));
  script.definitions.add_module(q, module_at(0x7000, "/lib/libx.so"));
  FunctionResolver resolver(script.definitions, nullptr);
  CHECK(resolver.resolve(p, 0x5010, 0) == resolver.resolve(q, 0x7010, 0));
  CHECK(resolver.resolve(p, 0x5010, 0) != resolver.resolve(q, 0x7014, 0));
  CHECK(resolver.resolve(kNoIndex, 0x5010, 0) != resolver.resolve(p, 0x5010, 0));
}

TEST_CASE("an address means what the map in force says") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  Definitions& definitions = script.definitions;
  definitions.add_module(p, module_at(0x5000, "/lib/one.so", 100));
  definitions.end_module(p, 0x5000, 200);
  definitions.add_module(p, module_at(0x5000, "/lib/two.so", 300));
  FunctionResolver resolver(definitions, nullptr);
  const auto name = [&](int64_t time_ns) {
    return resolver.functions()[resolver.resolve(p, 0x5010, time_ns)].name;
  };
  CHECK(name(50) == "one.so+0x410");  // used before its load was recorded
  CHECK(name(150) == "one.so+0x410");
  CHECK(name(250) == "two.so+0x410");
  CHECK(name(350) == "two.so+0x410");
}

TEST_CASE("an address that is in no module may be in one later") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  Definitions& definitions = script.definitions;
  definitions.add_module(p, module_at(0x5000, "/lib/one.so", 100));
  definitions.end_module(p, 0x5000, 200);
  FunctionResolver resolver(definitions, nullptr);
  CHECK(resolver.functions()[resolver.resolve(p, 0x5010, 150)].name == "one.so+0x410");
  CHECK(resolver.functions()[resolver.resolve(p, 0x5010, 200)].name == "0x5010");
  CHECK(resolver.functions()[resolver.resolve(p, 0x5010, 999)].name == "0x5010");
}

TEST_CASE("generated code has the name that held at the time, in no module only") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  script.definitions.add_module(p, module_at(0x5000, "/lib/libx.so"));
  Process& process = *script.definitions.mutable_process(p);
  process.code.push_back({0x9000, 0x9100, 100, "compiled"});
  process.code.push_back({0x9000, 0x9100, 200, "_Z5againv"});
  process.code.push_back({0x5000, 0x5100, 0, "not_this"});
  FunctionResolver resolver(script.definitions, nullptr);
  const auto function = [&](uint64_t key, int64_t time_ns) {
    return resolver.functions()[resolver.resolve(p, key, time_ns)];
  };
  CHECK(function(0x9010, 150).name == "compiled");
  CHECK(function(0x9010, 150).module == "[jit]");
  CHECK(function(0x9100, 150).name == "0x9100");
  CHECK(function(0x9010, 200).name == "again()");
  CHECK(function(0x9010, 201).name == "again()");
  CHECK(function(0x5010, 201).name == "libx.so+0x410");
  CHECK(resolver.source_line(resolver.resolve(p, 0x9010, 201)).empty());
}
