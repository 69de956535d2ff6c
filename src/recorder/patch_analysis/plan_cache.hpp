// The user's directory of plans, by build-id: $XDG_CACHE_HOME/arctrace/plans, or
// ~/.cache/arctrace/plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/recorder/patch_analysis/patch_plan.hpp"

namespace arctrace {

class PlanCache {
 public:
  // The directory is made by the first save().
  explicit PlanCache(std::string directory) : directory_(std::move(directory)) {}

  // Where the environment says; a cache without a directory, which keeps nothing, if it
  // names none.
  static PlanCache of_user();

  // The plan of the module with that build-id and stamp. nullopt: there is none, or
  // another user's, or its bytes are no plan. Costs the reading of the file.
  std::optional<PatchPlan> load(std::span<const std::byte> build_id,
                                uint64_t stamp) const;

  // Keeps the plan, under a temporary name until it is whole. False: it is not kept,
  // because it has no build-id, or the directory cannot be written.
  bool save(const PatchPlan& plan) const;

  // The file of a build-id; empty if there is no directory or no build-id.
  std::string file_of(std::span<const std::byte> build_id) const;

 private:
  std::string directory_;
};

}  // namespace arctrace
