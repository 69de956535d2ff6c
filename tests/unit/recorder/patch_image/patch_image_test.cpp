// The image that a process maps so that its functions are patched, and why a process gets
// none.
#include "src/recorder/patch_image/patch_image.hpp"

#include <arctrace/format.h>
#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <string>

#include "tests/unit/recorder/patch_analysis/built_module.hpp"

namespace arctrace::testing {
namespace {

constexpr uint64_t kBias = 0x555500000000;
const std::string kFree = "7ffff0000000-7ffff0001000 rw-p 00000000 00:00 0 [stack]\n";

struct Image {
  shim::PatchTable table{};
  std::optional<shim::PatchSkips> skipped;  // the first skipped function
  uint64_t skipped_function = 0;
};

Image make_image(const BuiltModule& module, const std::string& maps) {
  const recorder::ModuleCode code = module.make();
  const recorder::PatchPlan plan = module.plan();
  recorder::PatchRequest request;
  request.bias = kBias;
  for (const recorder::FunctionPlan& function : plan.functions) {
    REQUIRE(function.verdict == recorder::PatchVerdict::kPatchable);
    request.functions.push_back(&function);
  }
  const std::vector<std::byte> bytes =
      recorder::make_patch_image(code, request, recorder::AddressSpace(maps));
  Image image;
  constexpr size_t kAt = shim::kPatchTableOffset;
  REQUIRE(bytes.size() >= kAt + sizeof image.table);
  std::memcpy(&image.table, &bytes[kAt], sizeof image.table);
  CHECK(image.table.bytes == bytes.size());
  if (image.table.skips_size == 0) return image;
  const size_t skips_at = kAt + sizeof image.table;
  REQUIRE(bytes.size() >= skips_at + sizeof(shim::PatchSkips) + 8);
  image.skipped.emplace();
  std::memcpy(&*image.skipped, &bytes[skips_at], sizeof *image.skipped);
  std::memcpy(&image.skipped_function, &bytes[skips_at + sizeof *image.skipped], 8);
  return image;
}

TEST_CASE("patch image: unwind rules that change within a moved instruction") {
  BuiltModule module;
  module.add("moved", kPrologue + kRet, {0x41, 0x0E, 16});  // after the push
  const uint64_t within = module.add("within", kPrologue + kRet, {0x42, 0x0E, 16});
  const Image image = make_image(module, kFree);
  CHECK(image.table.function_count == 1);
  CHECK(image.table.refusal == 0);
  REQUIRE(image.skipped);
  CHECK(image.skipped->verdict == ARCTRACE_PATCH_UNMOVED_RULES);
  CHECK(image.skipped->count == 1);
  CHECK(image.skipped->listed == 1);
  CHECK(image.skipped_function == kBias + within);
}

TEST_CASE("patch image: it is within reach of the module, where nothing is mapped") {
  BuiltModule module;
  module.add("f", kPrologue + kRet);
  const Image free = make_image(module, kFree);
  CHECK(free.table.refusal == 0);
  CHECK(free.table.function_count == 1);
  CHECK(free.table.low % 4096 == 0);
  CHECK(free.table.high <= kBias);
  CHECK(kBias - free.table.low < uint64_t{1} << 31);
  // The addresses below the module are taken.
  const Image above = make_image(module, "555400000000-555500040000 r-xp 0 00:00 0 f\n");
  CHECK(above.table.refusal == 0);
  CHECK(above.table.low >= kBias);
  CHECK(above.table.high - kBias < uint64_t{1} << 31);
  const Image none = make_image(module, "555400000000-555600000000 r-xp 0 00:00 0 f\n");
  CHECK(none.table.refusal == ARCTRACE_PATCH_NO_ROOM);
  CHECK(none.table.function_count == 0);
}

// With or without an image, the shim finds them after the skipped functions.
TEST_CASE("patch image: functions that an earlier image has") {
  BuiltModule module;
  module.add("f", kPrologue + kRet);
  const recorder::ModuleCode code = module.make();
  const recorder::PatchPlan plan = module.plan();
  for (const bool has_functions : {false, true}) {
    recorder::PatchRequest request;
    request.bias = kBias;
    if (has_functions) request.functions.push_back(&plan.functions.front());
    request.skipped[ARCTRACE_PATCH_SMALL] = {3, {0x10}};
    request.again = {{kBias + 0x20, 1}, {kBias + 0x30, 0}};
    const std::vector<std::byte> bytes =
        recorder::make_patch_image(code, request, recorder::AddressSpace(kFree));
    shim::PatchTable table{};
    size_t at = shim::kPatchTableOffset;
    REQUIRE(bytes.size() >= at + sizeof table);
    std::memcpy(&table, &bytes[at], sizeof table);
    CHECK(table.function_count == (has_functions ? 1 : 0));
    CHECK(table.skips_size == sizeof(shim::PatchSkips) + 8);
    REQUIRE(table.again_count == 2);
    at += sizeof table + table.skips_size;
    shim::PatchAgain again[2];
    REQUIRE(bytes.size() >= at + sizeof again);
    std::memcpy(again, &bytes[at], sizeof again);
    CHECK(again[0].function == kBias + 0x20);
    CHECK(again[0].is_named == 1);
    CHECK(again[1].function == kBias + 0x30);
    CHECK(again[1].is_named == 0);
  }
}

}  // namespace
}  // namespace arctrace::testing
