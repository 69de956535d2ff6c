// Targets for what `arctrace functions` reads: other people's programs, and the plans in
// its cache.
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "src/base/checksum.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_analysis/plan_file.hpp"
#include "src/recording/patching/module_code_file.hpp"
#include "tests/fuzz/exercise.hpp"
#include "tests/fuzz/targets.hpp"

namespace arctrace::fuzz {

void module_code(Bytes input) {
  const auto file = recording::module_code_of_bytes_untrusted(
      {reinterpret_cast<const char*>(input.data()), input.size()}, "input");
  if (!file.ok()) {
    require(file.status().message().find('\n') == std::string_view::npos,
            "an error is one line");
    return;
  }
  recorder::PatchPlan plan = recorder::analyse_patches_untrusted(file->code);
  plan.build_id = file->build_id;
  plan.stamp = file->stamp;
  const auto bytes = recorder::encode_plan(plan);
  require(bytes && recorder::decode_plan_untrusted(*bytes) == plan,
          "the cache keeps any plan");
}

void patch_plan(Bytes input) {
  // The target puts the right version and checksum in: no input would ever have the
  // latter, and a seed is of use also when the version has been raised.
  constexpr size_t kVersionAt = 8, kChecksumAt = 12;
  std::vector<std::byte> bytes(input.begin(), input.end());
  if (bytes.size() < kChecksumAt + 4) return;
  std::memcpy(bytes.data() + kVersionAt, &recorder::kPlanVersion,
              sizeof recorder::kPlanVersion);
  Checksum checksum;
  checksum.add(std::span(bytes).subspan(kChecksumAt + 4));
  const uint32_t value = checksum.value();
  std::memcpy(bytes.data() + kChecksumAt, &value, sizeof value);
  const std::optional<recorder::PatchPlan> plan = recorder::decode_plan_untrusted(bytes);
  if (plan) require(recorder::encode_plan(*plan) == bytes, "a plan has one form");
}

}  // namespace arctrace::fuzz
