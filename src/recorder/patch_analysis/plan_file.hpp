// The binary form of a plan, and the cache that stores plans in that form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/recorder/patch_analysis/patch_plan.hpp"

namespace arctrace::recorder {

// The version is raised with each change of the form, and of what the analysis finds: a
// plan of another version is not used.
inline constexpr uint32_t kPlanVersion = 6;

// Larger plans are not stored.
inline constexpr size_t kPlanBytesMax = size_t{256} << 20;

// The bytes of the plan; nullopt: they would be more than kPlanBytesMax.
std::optional<std::vector<std::byte>> encode_plan(const PatchPlan& plan);

// nullopt unless the bytes are those of a plan of this version, each value of which is
// one that the analysis may find: functions in order, whole displaced instructions within
// them. The plan's writer alone answers for what it says about its module.
std::optional<PatchPlan> decode_plan_untrusted(std::span<const std::byte> bytes);

// The user's directory of plans, by build-id: $XDG_CACHE_HOME/arctrace/plans, or
// ~/.cache/arctrace/plans.
class PlanCache {
 public:
  // The directory is made by the first save().
  explicit PlanCache(std::string directory) : directory_(std::move(directory)) {}

  // The cache in the directory that the environment says; if it names none, a cache that
  // stores nothing.
  static PlanCache of_user();

  // The plan of the module with that build-id and stamp. nullopt: there is none, or
  // another user's, or its bytes are no plan. Costs the reading of the file.
  std::optional<PatchPlan> load(std::span<const std::byte> build_id,
                                uint64_t stamp) const;

  // Stores the plan, under a temporary name until it is whole. False: it was not stored,
  // because it has no build-id, or the directory cannot be written.
  bool save(const PatchPlan& plan) const;

  // The file of a build-id; empty if there is no directory or no build-id.
  std::string file_of(std::span<const std::byte> build_id) const;

 private:
  std::string directory_;
};

}  // namespace arctrace::recorder
