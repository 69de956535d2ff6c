// Which names are stored in a trace, and which of them are used when it is read.
#include "reader/replay/used_symbols.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "reader/replay/resolver.hpp"
#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// The function is not static, so that the symbol tables have it in any build.
extern "C" __attribute__((noinline, visibility("default"))) int used_symbols_fixture(
    int x) {
  return x + 1;
}

// These have the names of a program of Ada's.
extern "C" __attribute__((noinline, visibility("default"))) int shop__serve(int x) {
  return x + 2;
}
extern "C" __attribute__((noinline, used, visibility("default"))) int adainit(int x) {
  return x + 3;
}

Module module_of(const void* address) {
  Dl_info facts{};
  link_map* map = nullptr;
  REQUIRE(dladdr1(address, &facts, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0);
  Module module;
  module.bias = map->l_addr;  // differs from the beginning where addresses are fixed
  module.start = reinterpret_cast<uint64_t>(facts.dli_fbase);
  module.end = module.start + (uint64_t{1} << 32);
  module.path = std::filesystem::canonical(facts.dli_fname);
  return module;
}

constexpr auto kGoesOn = [] { return true; };

}  // namespace

TEST_CASE("names, exports and lines of the keys are found and serve without the files") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  Module own = module_of(reinterpret_cast<void*>(&used_symbols_fixture));
  Module libc = module_of(reinterpret_cast<void*>(&getppid));
  libc.end = libc.start + 0x1000;
  if (own.start < libc.start) own.end = std::min(own.end, libc.start);
  script.definitions.add_module(p, own);
  script.definitions.add_module(p, libc);
  const auto address = reinterpret_cast<uint64_t>(&used_symbols_fixture);
  const uint64_t call = script.key("getppid") | ARCTRACE_FRAME_LIBRARY_BIT;
  const UsedKeys keys = {{p, address}, {p, call}, {p, script.key("scope")}, {p, 0x10}};
  const UsedSymbols used =
      find_used_symbols(script.definitions, keys, WithSource::kYes, {}, kGoesOn);
  CHECK_FALSE(used.is_partial);
  CHECK(used.functions == 1);
  CHECK(used.findings.empty());

  // The same process; neither of its files exists now.
  RecordScript reading;
  const ProcessIndex q = reading.process(1, "/bin/a");
  REQUIRE(reading.key("getppid") == script.key("getppid"));
  own.path = "/not/there/own";
  libc.path = "/not/there/libc";
  reading.definitions.add_module(q, own);
  reading.definitions.add_module(q, libc);
  std::vector<ModuleSymbols> moved = used.modules;
  for (ModuleSymbols& module : moved) {
    module.path = module.functions.empty() ? libc.path : own.path;
  }
  for (const auto& chunk : encode_symbols(moved, 0)) {
    CHECK(reading.definitions.mutable_symbols().add_untrusted(chunk));
  }
  Symbolizer symbolizer;
  FunctionResolver resolver(reading.definitions, &symbolizer);
  const FunctionId function = resolver.resolve(q, address, 0);
  CHECK(resolver.functions()[function].name == "used_symbols_fixture");
  CHECK(resolver.functions()[resolver.resolve(q, call, 0)].module == libc.path);
  CHECK(symbolizer.findings().empty());
  FunctionResolver without(reading.definitions, nullptr);
  CHECK(without.functions()[without.resolve(q, address, 0)].name.starts_with("own+0x"));
}

TEST_CASE("names of a program of Ada's are Ada's, also without the file") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  Module own = module_of(reinterpret_cast<void*>(&shop__serve));
  script.definitions.add_module(p, own);
  const auto address = reinterpret_cast<uint64_t>(&shop__serve);
  const auto name_in = [&](RecordScript& in) {
    Symbolizer symbolizer;
    FunctionResolver resolver(in.definitions, &symbolizer);
    return resolver.functions()[resolver.resolve(p, address, 0)].name;
  };
  CHECK(name_in(script) == "shop.serve");
  // The function that tells so is stored though it was not called, and once more from
  // what is stored.
  std::vector<ModuleSymbols> stored;
  for (const bool has_file : {true, false}) {
    CAPTURE(has_file);
    RecordScript reading;
    REQUIRE(reading.process(1, "/bin/a") == p);
    if (!has_file) own.path = "/not/there/own";
    reading.definitions.add_module(p, own);
    for (ModuleSymbols& module : stored) module.path = own.path;
    for (const auto& chunk : encode_symbols(stored, 0)) {
      REQUIRE(reading.definitions.mutable_symbols().add_untrusted(chunk));
    }
    CHECK(name_in(reading) == "shop.serve");
    stored = find_used_symbols(reading.definitions, {{p, address}}, WithSource::kNo, {},
                               kGoesOn)
                 .modules;
    REQUIRE(stored.size() == 1);
    CHECK(stored[0].functions.size() == 2);
    CHECK(std::is_sorted(stored[0].functions.begin(), stored[0].functions.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; }));
  }
}

TEST_CASE("a stored name comes before the file's, and a stored line before its own") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  const Module own = module_of(reinterpret_cast<void*>(&used_symbols_fixture));
  script.definitions.add_module(p, own);
  const auto address = reinterpret_cast<uint64_t>(&used_symbols_fixture);
  const uint64_t in_file = address - own.bias;
  ModuleSymbols stored{own.path, {}, {{in_file, {in_file, "_Z3oldv", "old.cc", 3}}}, {}};
  for (const auto& chunk : encode_symbols({&stored, 1}, 0)) {
    script.definitions.mutable_symbols().add_untrusted(chunk);
  }
  Symbolizer symbolizer;
  FunctionResolver resolver(script.definitions, &symbolizer);
  const FunctionId function = resolver.resolve(p, address, 0);
  CHECK(resolver.functions()[function].name == "old()");
  CHECK(resolver.source_line(function) == "old.cc:3");
  // An archive retains the names of the file.
  const UsedSymbols used = find_used_symbols(script.definitions, {{p, address}},
                                             WithSource::kYes, {}, kGoesOn);
  REQUIRE(used.modules.size() == 1);
  REQUIRE(used.modules[0].functions.size() == 1);
  CHECK(used.modules[0].functions[0].second.name == "_Z3oldv");
  CHECK(used.modules[0].functions[0].second.line == 3);
}

TEST_CASE("a search that is stopped has no exports, because half of them would mislead") {
  RecordScript script;
  const ProcessIndex p = script.process(1, "/bin/a");
  const Module libc = module_of(reinterpret_cast<void*>(&getppid));
  Module other = libc;
  other.start = 0x1000;
  other.end = 0x2000;
  other.path = "/not/there";
  script.definitions.add_module(p, libc);
  script.definitions.add_module(p, other);
  const UsedKeys keys = {{p, script.key("getppid") | ARCTRACE_FRAME_LIBRARY_BIT}};
  int asked = 0;
  const UsedSymbols whole =
      find_used_symbols(script.definitions, keys, WithSource::kNo, {}, kGoesOn);
  REQUIRE(whole.modules.size() == 1);
  CHECK(whole.modules[0].exports == std::vector<std::string>{"getppid"});
  const UsedSymbols half = find_used_symbols(script.definitions, keys, WithSource::kNo,
                                             {}, [&asked] { return ++asked < 2; });
  CHECK(half.is_partial);
  for (const ModuleSymbols& module : half.modules) CHECK(module.exports.empty());
}
