// The binary form of a plan, in which the cache keeps it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "src/recorder/patch_analysis/patch_plan.hpp"

namespace arctrace {

// Raised with each change of the form, and of what the analysis finds: a plan of another
// version is no plan.
inline constexpr uint32_t kPlanVersion = 3;

// Plans of more bytes are not kept.
inline constexpr size_t kPlanBytesMax = size_t{256} << 20;

// nullopt: it would have more than kPlanBytesMax bytes.
std::optional<std::vector<std::byte>> encode_plan(const PatchPlan& plan);

// nullopt unless the bytes are those of a plan of this version, each value of which is
// one that the analysis may find: functions in order, whole displaced instructions within
// them. Whether it is right about its module is for whoever wrote it.
std::optional<PatchPlan> decode_plan_untrusted(std::span<const std::byte> bytes);

}  // namespace arctrace
