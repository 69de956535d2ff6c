// The table of functions by address: sizes, overlaps and aliases.
#include "reader/symbols/function_table.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace arctrace::reader {
namespace {

struct Given {
  uint64_t address, size, section_end;
  std::string name;
  uint8_t binding;
};

ElfSymbolTable make_table(const std::vector<Given>& given) {
  ElfSymbolTable table;
  table.names = std::string(1, '\0');
  for (const Given& symbol : given) {
    table.symbols.push_back({symbol.address, symbol.size, symbol.section_end,
                             static_cast<uint32_t>(table.names.size()), symbol.binding});
    table.names += symbol.name + '\0';
  }
  return table;
}

FunctionTable make_functions(const std::vector<Given>& given) {
  const std::vector<LoadSegment> segments{{0x100, 0x1000, true}, {0x2000, 0x3000, false}};
  const std::vector<ElfSymbolTable> tables{make_table(given)};
  return {segments, tables};
}

// The function's name, or "" for none.
std::string name_at(const FunctionTable& functions, uint64_t address) {
  const auto function = functions.find(address);
  return function ? std::string(function->name) : std::string();
}

TEST_CASE("a sized function has its bytes and no more") {
  const auto functions = make_functions(
      {{0x200, 0x10, 0x1000, "f", STB_GLOBAL}, {0x220, 0x10, 0x1000, "g", STB_GLOBAL}});
  CHECK(name_at(functions, 0x1ff) == "");
  CHECK(name_at(functions, 0x200) == "f");
  CHECK(name_at(functions, 0x20f) == "f");
  CHECK(name_at(functions, 0x210) == "");
  CHECK(name_at(functions, 0x220) == "g");
  CHECK(name_at(functions, 0x230) == "");
  CHECK(name_at(functions, 0) == "");
  CHECK(name_at(functions, UINT64_MAX) == "");
  CHECK(functions.find(0x20f)->start == 0x200);
  CHECK(functions.find(0x20f)->size == 0x10);
  CHECK(name_at(FunctionTable(), 0x200) == "");
}

TEST_CASE("an unsized function ends at the next symbol or its section's end") {
  const auto functions = make_functions({{0x200, 0, 0x280, "f", STB_GLOBAL},
                                         {0x220, 0, 0x280, "g", STB_GLOBAL},
                                         {0x240, 8, 0x280, "h", STB_GLOBAL},
                                         {0x250, 0, 0x280, "i", STB_GLOBAL},
                                         {0x300, 0, 0, "nowhere", STB_GLOBAL}});
  CHECK(name_at(functions, 0x21f) == "f");
  CHECK(name_at(functions, 0x220) == "g");
  CHECK(name_at(functions, 0x23f) == "g");
  CHECK(name_at(functions, 0x240) == "h");
  CHECK(name_at(functions, 0x248) == "");
  CHECK(name_at(functions, 0x27f) == "i");
  CHECK(name_at(functions, 0x280) == "");
  CHECK(name_at(functions, 0x300) == "");
  CHECK(functions.find(0x21f)->size == 0);
}

TEST_CASE("an unsized symbol inside a sized function does not take from it") {
  const auto functions = make_functions({{0x200, 0x20, 0x1000, "f", STB_LOCAL},
                                         {0x200, 0, 0x1000, "alias", STB_GLOBAL},
                                         {0x210, 0, 0x1000, "label", STB_GLOBAL}});
  CHECK(name_at(functions, 0x200) == "f");
  CHECK(name_at(functions, 0x218) == "f");
  CHECK(name_at(functions, 0x220) == "");
}

TEST_CASE("aliases: global, local, weak; few underscores; short; first") {
  const auto best = [](std::vector<Given> given) {
    std::string name;
    std::sort(given.begin(), given.end(),
              [](const Given& a, const Given& b) { return a.name < b.name; });
    do {
      const std::string now = name_at(make_functions(given), 0x208);
      CHECK((name.empty() || name == now));
      name = now;
    } while (std::next_permutation(
        given.begin(), given.end(),
        [](const Given& a, const Given& b) { return a.name < b.name; }));
    return name;
  };
  const auto alias = [](const std::string& name, uint8_t binding) {
    return Given{0x200, 0x10, 0x1000, name, binding};
  };
  CHECK(best({alias("w", STB_WEAK), alias("l", STB_LOCAL), alias("__g", STB_GLOBAL)}) ==
        "__g");
  CHECK(best({alias("w", STB_WEAK), alias("local", STB_LOCAL)}) == "local");
  CHECK(best({alias("__a", STB_GLOBAL), alias("_b", STB_GLOBAL), alias("cc", STB_GLOBAL),
              alias("cc@@V1", STB_GLOBAL)}) == "cc");
  CHECK(best({alias("_ZN1AC2Ev", STB_GLOBAL), alias("_ZN1AC1Ev", STB_GLOBAL)}) ==
        "_ZN1AC1Ev");
  // Crystal's names, which GNU ld takes for names with versions.
  for (const std::string whole :
       {"*Array(Int32)@Indexable(T)#each", "*Foo@Bar::baz", "*Foo@Bar(T)", "_f@A<T>"}) {
    CHECK(best({alias(whole, STB_GLOBAL), alias("f", STB_GLOBAL),
                alias(whole.substr(0, whole.find('@')), STB_GLOBAL)}) == whole);
  }
  CHECK(best({alias("f(int)@V1", STB_GLOBAL), alias("f(int)", STB_GLOBAL)}) == "f(int)");
}

TEST_CASE("an alias of another size keeps what is only its own") {
  const auto functions = make_functions({{0x200, 0x10, 0x1000, "head", STB_GLOBAL},
                                         {0x200, 0x40, 0x1000, "whole", STB_LOCAL}});
  CHECK(name_at(functions, 0x20f) == "head");
  CHECK(name_at(functions, 0x210) == "whole");
  CHECK(functions.find(0x210)->start == 0x200);
}

TEST_CASE("symbols stay inside the executable segments") {
  const auto functions =
      make_functions({{0xff0, UINT64_MAX - 8, 0, "overflows", STB_GLOBAL},
                      {0x2100, 0x10, 0x3000, "data", STB_GLOBAL},
                      {0x50, 0x200, 0x1000, "before", STB_GLOBAL},
                      {0x300, 0x10, 0x1000, "", STB_GLOBAL}});
  CHECK(name_at(functions, 0xfff) == "overflows");
  CHECK(functions.find(0xfff)->size == 0x10);
  CHECK(name_at(functions, 0x1000) == "");
  CHECK(name_at(functions, 0x2100) == "");
  CHECK(name_at(functions, 0x120) == "");
  CHECK(name_at(functions, 0x300) == "");
}

TEST_CASE("offsets outside the names give nothing") {
  ElfSymbolTable table = make_table({{0x200, 0x10, 0x1000, "f", STB_GLOBAL}});
  table.symbols.front().name = 100;
  const std::vector<LoadSegment> segments{{0x100, 0x1000, true}};
  CHECK(FunctionTable(segments, std::vector{table}).size() == 0);
}

// A second implementation of the rules, slow and plain: it checks every symbol.
std::string expected_name(const std::vector<Given>& given, uint64_t address) {
  const Given* best = nullptr;
  const auto rank = [](const Given& g) {
    return g.binding == STB_GLOBAL ? 0 : g.binding == STB_LOCAL ? 1 : 2;
  };
  for (const Given& g : given) {
    if (g.size == 0 || address < g.address || address - g.address >= g.size) continue;
    if (best == nullptr || g.address > best->address ||
        (g.address == best->address &&
         (rank(g) < rank(*best) ||
          (rank(g) == rank(*best) && g.name.size() < best->name.size()) ||
          (rank(g) == rank(*best) && g.name.size() == best->name.size() &&
           g.name < best->name)))) {
      best = &g;
    }
  }
  return best != nullptr ? best->name : "";
}

TEST_CASE("overlapping symbols: as a search of all of them") {
  const auto seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&random](uint64_t limit) { return random() % limit; };
  for (int round = 0; round < 300; ++round) {
    std::vector<Given> given;
    const uint64_t count = 1 + below(20);
    for (uint64_t i = 0; i < count; ++i) {
      given.push_back({0x200 + below(40), 1 + below(40), 0x1000, "n" + std::to_string(i),
                       static_cast<uint8_t>(below(3))});
    }
    const auto functions = make_functions(given);
    for (uint64_t address = 0x1f0; address < 0x270; ++address) {
      CAPTURE(address);
      CHECK(name_at(functions, address) == expected_name(given, address));
    }
  }
}

}  // namespace
}  // namespace arctrace::reader
