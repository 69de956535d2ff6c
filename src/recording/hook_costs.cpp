// Stores measured costs in the user's cache directory, and finds those for a session.
#include "src/recording/hook_costs.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/cache/user_cache.hpp"
#include "src/recording/session_variables.hpp"

namespace arctrace::recording {
namespace {

constexpr uint64_t kFileBytesMax = 16384;
// A user with several builds alternates between them; each would cost a measurement
// otherwise.
constexpr size_t kBuildsMax = 8;

constexpr size_t kValidityWords = 4;

// The boot of the machine and the build of the shim for which the figures are valid.
// Empty: the boot is not known.
std::string validity(const std::string& shim) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat status {};
  if (boot.empty() || ::stat(shim.c_str(), &status) != 0) return {};
  return absl::StrCat(boot, " ", status.st_ino, " ", status.st_size, " ",
                      status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec);
}

// The figures of one build.
struct BuildCosts {
  std::string valid;
  std::vector<arctrace_hook_cost> costs;
};

// For each build a line that says for what its figures are valid, and a line for each
// kind.
std::string text_of(const std::vector<BuildCosts>& builds) {
  std::string text;
  for (const BuildCosts& build : builds) {
    absl::StrAppend(&text, build.valid, "\n");
    for (const arctrace_hook_cost& cost : build.costs) {
      absl::StrAppend(&text, cost.kind, " ", cost.inside_ps, " ", cost.outside_ps, "\n");
    }
  }
  return text;
}

// The builds in the text; empty if it is no such text.
std::vector<BuildCosts> builds_in(std::string_view text) {
  std::vector<BuildCosts> builds;
  for (const absl::string_view line : absl::StrSplit(
           absl::string_view(text.data(), text.size()), '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() == kValidityWords) {
      builds.push_back({.valid = std::string(line), .costs = {}});
      continue;
    }
    arctrace_hook_cost cost{};
    uint32_t kind = 0, inside_ps = 0, outside_ps = 0;
    if (builds.empty() || words.size() != 3 || !absl::SimpleAtoi(words[0], &kind) ||
        !absl::SimpleAtoi(words[1], &inside_ps) ||
        !absl::SimpleAtoi(words[2], &outside_ps)) {
      return {};
    }
    cost = {.kind = kind, .inside_ps = inside_ps, .outside_ps = outside_ps};
    builds.back().costs.push_back(cost);
  }
  return builds;
}

// The file of the figures, and what they must be valid for; a part is empty if there is
// none.
struct Place {
  std::string shim, valid, path;
  bool is_known() const { return !valid.empty() && !path.empty(); }
};

Place place() {
  absl::StatusOr<std::string> shim = find_shim();
  if (!shim.ok()) return {};
  const std::string cache = recorder::user_cache_directory();
  Place found;
  found.valid = validity(*shim);
  found.shim = *std::move(shim);
  if (!cache.empty()) found.path = cache + "/hook-costs";
  return found;
}

std::vector<BuildCosts> builds_kept_at(const Place& place) {
  const auto bytes = recorder::read_own_file(place.path, kFileBytesMax);
  if (!bytes) return {};
  return builds_in({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

std::optional<std::vector<arctrace_hook_cost>> costs_kept_at(const Place& place) {
  if (!place.is_known()) return std::nullopt;
  for (BuildCosts& build : builds_kept_at(place)) {
    if (build.valid == place.valid) return std::move(build.costs);
  }
  return std::nullopt;
}

// Whether the file can be written; tries it by writing its present contents.
bool can_keep(const Place& place) {
  const std::string text = text_of(builds_kept_at(place));
  return recorder::write_own_file(place.path, std::as_bytes(std::span(text)));
}

// Stores the figures before those of the other builds: of this boot, and as many as are
// retained. If two recorders do so at a time, one will measure again.
void keep(const Place& place, const std::vector<arctrace_hook_cost>& costs) {
  const std::string boot = place.valid.substr(0, place.valid.find(' ') + 1);
  std::vector<BuildCosts> kept = {{place.valid, costs}};
  for (BuildCosts& build : builds_kept_at(place)) {
    const bool holds = build.valid.starts_with(boot) && build.valid != place.valid;
    if (holds && kept.size() < kBuildsMax) kept.push_back(std::move(build));
  }
  const std::string text = text_of(kept);
  recorder::write_own_file(place.path, std::as_bytes(std::span(text)));
}

std::vector<arctrace_hook_cost> kept_costs() {
  return costs_kept_at(place()).value_or(std::vector<arctrace_hook_cost>());
}

}  // namespace

std::vector<arctrace_hook_cost> hook_costs() {
  const Place here = place();
  if (auto costs = costs_kept_at(here)) return *std::move(costs);
  // If nothing can be stored, each recording would take that time.
  if (!here.is_known() || !can_keep(here)) return {};
  // The result that it cannot be measured is stored, too.
  auto costs = measure_hook_costs(here.shim).value_or(std::vector<arctrace_hook_cost>());
  keep(here, costs);
  return costs;
}

std::vector<arctrace_hook_cost> hook_costs_of(const recorder::Buffer& buffer) {
  const arctrace_session_header& header = buffer.header();
  if (!recorder::is_of_this_boot(
          {header.start_ticks, header.start_monotonic_ns, header.start_realtime_ns},
          header.clock, header.ticks_per_second)) {
    return {};
  }
  const bool is_overwritten = header.mode == ARCTRACE_MODE_OVERWRITE && !buffer.is_copy();
  return is_overwritten ? kept_costs() : hook_costs();
}

std::vector<arctrace_hook_cost> hook_costs_of(const reader::Session& session) {
  if (!recorder::is_of_this_boot(
          {session.start_ticks, session.start_monotonic_ns, session.start_realtime_ns},
          session.clock, session.ticks_per_second)) {
    return {};
  }
  return kept_costs();
}

}  // namespace arctrace::recording
