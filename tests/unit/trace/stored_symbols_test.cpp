// Names that are stored in the trace file itself.
#include "reader/trace/stored_symbols.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reader/trace/key_scan.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::ModuleSymbols;
using reader::StoredSymbols;
using reader::Trace;
using Id = std::vector<std::byte>;

const Id kId = {std::byte{1}, std::byte{2}, std::byte{3}};

Bytes symbols_payload() {
  Bytes payload;
  payload.u32(ARCTRACE_SYMBOLS_PARTIAL).u32(0);
  payload.u32(2).u32(1).u32(3).u32(6).padded("\1\2\3").padded("/bin/a");
  payload.u64(0x1010).u64(0x1000).u32(7).u32(5).u32(4).padded("_Z1fv").padded("f.cc");
  payload.u64(0x2000).u64(0x2000).u32(0).u32(4).u32(0).padded("main");
  payload.u32(4).padded("free");
  payload.u32(1).u32(0).u32(0).u32(6).padded("/bin/b");
  payload.u64(0x1010).u64(0x1010).u32(0).u32(1).u32(0).padded("g");
  return payload;
}

TEST_CASE("stored functions are found by build-id, else by path") {
  StoredSymbols symbols;
  REQUIRE(symbols.add_untrusted(symbols_payload().data()));
  CHECK(symbols.functions() == 3);
  CHECK(symbols.modules() == 2);
  CHECK(symbols.is_partial());
  const auto* f = symbols.find("/elsewhere", kId, 0x1010);
  REQUIRE(f != nullptr);
  CHECK(f->name == "_Z1fv");
  CHECK(f->start == 0x1000);
  CHECK(f->file == "f.cc");
  CHECK(f->line == 7);
  CHECK(symbols.find("/bin/a", kId, 0x1011) == nullptr);
  CHECK(symbols.find("/bin/a", {}, 0x1010) == nullptr);
  CHECK(symbols.find("/bin/a", Id{std::byte{9}}, 0x1010) == nullptr);
  REQUIRE(symbols.find("/bin/b", {}, 0x1010) != nullptr);
  CHECK(symbols.find("/bin/b", {}, 0x1010)->name == "g");
}

TEST_CASE("stored exports are those of all modules, or of none") {
  StoredSymbols symbols;
  REQUIRE(symbols.add_untrusted(symbols_payload().data()));
  CHECK(symbols.exports("/moved/a", kId, "free") == true);
  CHECK(symbols.exports("/bin/b", {}, "free") == false);
  CHECK(symbols.exports("/never/seen", {}, "free") == false);
  CHECK(symbols.exports("/moved/a", kId, "malloc") == std::nullopt);
}

TEST_CASE("a chunk that ends anywhere gives what stands before, and is a finding") {
  const std::vector<std::byte> whole = symbols_payload().data();
  size_t accepted = 0;
  for (size_t size = 0; size < whole.size(); size += 4) {
    StoredSymbols symbols;
    if (symbols.add_untrusted(std::span(whole).first(size))) ++accepted;
    CHECK(symbols.functions() <= 2);
  }
  CHECK(accepted == 2);  // after the head, and after the first module
  // These counts and sizes are wrong.
  for (size_t at = 8; at < whole.size(); at += 4) {
    std::vector<std::byte> wrong = whole;
    std::fill_n(wrong.begin() + static_cast<ptrdiff_t>(at), 4, std::byte{0xFF});
    StoredSymbols symbols;
    symbols.add_untrusted(wrong);
    CHECK(symbols.functions() <= 3);
  }
}

TEST_CASE("what is encoded is decoded, in chunks of a bounded size") {
  std::vector<ModuleSymbols> modules(2);
  modules[0] = {"/bin/a", kId, {}, {"malloc", "free"}};
  for (uint64_t i = 0; i < 3000; ++i) {
    modules[0].functions.push_back(
        {i * 16, {i * 16, "f" + std::to_string(i), "/src/" + std::string(900, 'x'), 5}});
  }
  modules[0].functions.push_back({1, {1, std::string(70'000, 'n'), "", 0}});  // too long
  modules[1] = {"/bin/empty", {}, {}, {}};
  const auto chunks = reader::encode_symbols(modules, ARCTRACE_SYMBOLS_LINES);
  CHECK(chunks.size() == 3);
  StoredSymbols symbols;
  for (const std::vector<std::byte>& chunk : chunks) {
    CHECK(chunk.size() % 4 == 0);
    CHECK(chunk.size() < StoredSymbols::kChunkBytesMax);
    CHECK(symbols.add_untrusted(chunk));
  }
  CHECK(symbols.functions() == 3000);
  CHECK(symbols.modules() == 1);
  CHECK_FALSE(symbols.is_partial());
  CHECK(symbols.find("", kId, uint64_t{16} * 2999)->name == "f2999");
  CHECK(symbols.find("", kId, 0)->file.size() == 905);
  CHECK(symbols.exports("", kId, "free") == true);
  CHECK(reader::encode_symbols({}, 0).empty());
}

TEST_CASE("a file's symbols are read, damaged ones are findings of F10") {
  FileBuilder file;
  file.program({}, 1, "main", 0).finish(10);
  file.chunk(ARCTRACE_CHUNK_SYMBOLS, symbols_payload());
  Trace trace = open_bytes(file.file());
  collect(trace);
  CHECK(rules_of(trace).empty());
  CHECK(trace.definitions().symbols().functions() == 3);
  CHECK(trace.end().sequence == 2);
  CHECK(trace.end().offset == file.file().size() - 32 - symbols_payload().size());

  FileBuilder cut;
  cut.program({}, 1, "main", 0).finish(10);
  cut.chunk(ARCTRACE_CHUNK_SYMBOLS, symbols_payload().u32(1));
  cut.chunk(ARCTRACE_CHUNK_SYMBOLS, Bytes());
  Trace damaged = open_bytes(cut.file());
  collect(damaged);
  CHECK(rules_of(damaged) == std::vector<std::string>{"F10", "F10"});
  CHECK(damaged.definitions().symbols().functions() == 3);

  FileBuilder large;
  large.program({}, 1, "main", 0).finish(10);
  large.chunk(ARCTRACE_CHUNK_SYMBOLS, Bytes().fill((16u << 20) + 4, 0));
  Trace refused = open_bytes(large.file());
  collect(refused);
  CHECK(rules_of(refused) == std::vector<std::string>{"F10"});
}

TEST_CASE("keys are found wherever records have them") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(
      BlockBuilder::exclusive(1, 0, 1, 100)
          .stack(100, {0xA0})
          .enter(101, 0xB0)
          .exit(102)
          .add(ARCTRACE_TYPE_EXIT_NAMED, 103, key_body(0xC0))
          .add(ARCTRACE_TYPE_COROUTINE, 104, Bytes().u32(1).u32(1).u32(1).u64(0xD0))
          .add(ARCTRACE_TYPE_ENTER, 105, key_body(0xE0), true),
      0, 1);
  file.block(BlockBuilder::shared(2, 200)
                 .add_full(ARCTRACE_TYPE_ENTER, 1, 200, key_body(0xF0))
                 .add_full(ARCTRACE_TYPE_ENTER, 77, 201, key_body(0x1F0)),
             0, 2);
  file.block(
      BlockBuilder::shared(3, 300, ARCTRACE_CLASS_DEFINITIONS)
          .add_full(
              ARCTRACE_TYPE_WAITING, 1, 300,
              Bytes().u32(1).u32(1).u64(5).u64(0).u32(2).u64(0x110).u64(1).u64(0x120).u64(
                  2))
          .add_full(ARCTRACE_TYPE_PATCHES, 1, 300,
                    Bytes().u32(1).u32(5).u32(9).u32(1).u32(0).u64(0x130)),
      0, 3);
  file.finish(400);
  const Trace trace = open_bytes(file.file());
  const auto input = reader::memory_input("file", file.file());
  reader::UsedKeys keys;
  const auto all = reader::scan_keys_untrusted(
      *input, trace, [] { return true; }, keys);
  REQUIRE(all.ok());
  CHECK(*all);
  std::vector<uint64_t> found;
  for (const auto& [process, key] : keys) {
    CHECK(process == 0);
    found.push_back(key);
  }
  std::sort(found.begin(), found.end());
  CHECK(found ==
        std::vector<uint64_t>{0xA0, 0xB0, 0xC0, 0xD0, 0xF0, 0x110, 0x120, 0x130});

  keys.clear();
  const auto none = reader::scan_keys_untrusted(
      *input, trace, [] { return false; }, keys);
  REQUIRE(none.ok());
  CHECK_FALSE(*none);
  CHECK(keys.empty());
}

}  // namespace
}  // namespace arctrace::testing
