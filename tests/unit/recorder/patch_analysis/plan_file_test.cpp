// Plans in the cache are written and read back; which ones are not read.
#include "src/recorder/patch_analysis/plan_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "src/base/checksum.hpp"
#include "tests/support/random.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_session.hpp"
#include "tests/unit/recorder/patch_analysis/built_module.hpp"

namespace arctrace::testing {
namespace {

constexpr size_t kChecksumAt = 12;

recorder::PatchPlan some_plan() {
  BuiltModule module;
  module.add("first", kEndbr + kPrologue + kRet);
  module.add("", relative({0x48, 0x8B, 0x05}, module.next(), kData) + kRet);
  module.add("third", kRet);
  module.add("pushes", kPrologue + kRet);
  module.add("calls", kPrologue + Code{0xFF, 0xD0} + kRet);
  module.add("fourth", Code{0x85, 0xFF, 0x74, 0x05} + Code(7, 0x90) + kRet);
  recorder::PatchPlan plan = module.plan();
  plan.build_id = {std::byte{0xAB}, std::byte{0xCD}};
  plan.stamp = 77;
  plan.findings = {"one", "two"};
  return plan;
}

void correct_checksum(std::vector<std::byte>& bytes) {
  Checksum checksum;
  checksum.add(std::span(bytes).subspan(kChecksumAt + 4));
  const uint32_t value = checksum.value();
  std::memcpy(bytes.data() + kChecksumAt, &value, sizeof value);
}

TEST_CASE("plan file: what is written is read") {
  const recorder::PatchPlan plan = some_plan();
  const auto bytes = recorder::encode_plan(plan);
  REQUIRE(bytes);
  const auto read = recorder::decode_plan_untrusted(*bytes);
  REQUIRE(read);
  CHECK(*read == plan);
  CHECK(recorder::decode_plan_untrusted(*recorder::encode_plan({})) ==
        recorder::PatchPlan());
}

TEST_CASE("plan file: no other bytes are a plan") {
  const std::vector<std::byte> bytes = *recorder::encode_plan(some_plan());
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(recorder::decode_plan_untrusted(std::span(bytes).first(size)));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> changed = bytes;
    changed[i] ^= std::byte{1};
    CHECK_FALSE(recorder::decode_plan_untrusted(changed));
  }
}

TEST_CASE("plan file: with a right checksum each value is one that is written") {
  const std::vector<std::byte> bytes = *recorder::encode_plan(some_plan());
  Random random(test_seed());
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> changed = bytes;
    const uint32_t changes = 1 + random.below(3);
    for (uint32_t n = 0; n < changes; ++n) {
      const auto at = 16 + random.below(static_cast<uint32_t>(bytes.size()) - 16);
      changed[at] = static_cast<std::byte>(random.below(256) >> random.below(8));
    }
    correct_checksum(changed);
    const auto read = recorder::decode_plan_untrusted(changed);
    if (!read) continue;
    ++accepted;
    REQUIRE(recorder::encode_plan(*read) == changed);
    for (const recorder::FunctionPlan& function : read->functions) {
      REQUIRE(function.kept + function.displaced <= function.size);
    }
  }
  CHECK(accepted > 0);  // names, for example
}

TEST_CASE("plan cache: by build-id and stamp, only one's own files") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/a/plans";
  const recorder::PlanCache cache(path);
  const recorder::PatchPlan plan = some_plan();
  CHECK_FALSE(cache.load(plan.build_id, plan.stamp));
  REQUIRE(cache.save(plan));
  CHECK(cache.file_of(plan.build_id) == path + "/abcd.plan");
  CHECK(cache.load(plan.build_id, plan.stamp) == plan);
  CHECK_FALSE(cache.load(plan.build_id, plan.stamp + 1));
  CHECK(std::distance(std::filesystem::directory_iterator(path), {}) == 1);
  // The file has another module's plan.
  std::filesystem::rename(path + "/abcd.plan", path + "/ab.plan");
  CHECK_FALSE(cache.load(std::span(plan.build_id).first(1), plan.stamp));
  // These are a file that others may write, a link, a directory.
  REQUIRE(cache.save(plan));
  REQUIRE(::chmod((path + "/abcd.plan").c_str(), 0666) == 0);
  CHECK_FALSE(cache.load(plan.build_id, plan.stamp));
  std::filesystem::rename(path + "/abcd.plan", path + "/real");
  std::filesystem::create_symlink("real", path + "/abcd.plan");
  CHECK_FALSE(cache.load(plan.build_id, plan.stamp));
  std::filesystem::remove(path + "/abcd.plan");
  std::filesystem::create_directory(path + "/abcd.plan");
  CHECK_FALSE(cache.load(plan.build_id, plan.stamp));
  CHECK_FALSE(cache.save(plan));
  CHECK(std::distance(std::filesystem::directory_iterator(path), {}) == 3);
  // There is no directory to store it in, or no name to store it by.
  CHECK_FALSE(recorder::PlanCache("").save(plan));
  CHECK_FALSE(recorder::PlanCache("/proc/nowhere").save(plan));
  recorder::PatchPlan nameless = plan;
  nameless.build_id.clear();
  CHECK_FALSE(cache.save(nameless));
}

}  // namespace
}  // namespace arctrace::testing
