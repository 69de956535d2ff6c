#include "src/recorder/patch_analysis/plan_cache.hpp"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "src/recorder/cache/user_cache.hpp"
#include "src/recorder/patch_analysis/plan_file.hpp"

namespace arctrace {

PlanCache PlanCache::of_user() {
  const std::string cache = user_cache_directory();
  return PlanCache(cache.empty() ? "" : cache + "/plans");
}

std::string PlanCache::file_of(std::span<const std::byte> build_id) const {
  if (directory_.empty() || build_id.empty()) return "";
  const std::string id(reinterpret_cast<const char*>(build_id.data()), build_id.size());
  return absl::StrCat(directory_, "/", absl::BytesToHexString(id), ".plan");
}

std::optional<PatchPlan> PlanCache::load(std::span<const std::byte> build_id,
                                         uint64_t stamp) const {
  const std::string path = file_of(build_id);
  if (path.empty()) return std::nullopt;
  const std::optional<std::vector<std::byte>> bytes = read_own_file(path, kPlanBytesMax);
  if (!bytes) return std::nullopt;
  std::optional<PatchPlan> plan = decode_plan_untrusted(*bytes);
  if (!plan || plan->stamp != stamp ||
      !std::equal(plan->build_id.begin(), plan->build_id.end(), build_id.begin(),
                  build_id.end())) {
    return std::nullopt;
  }
  return plan;
}

bool PlanCache::save(const PatchPlan& plan) const {
  const std::string path = file_of(plan.build_id);
  const std::optional<std::vector<std::byte>> bytes = encode_plan(plan);
  return !path.empty() && bytes && write_own_file(path, *bytes);
}

}  // namespace arctrace
