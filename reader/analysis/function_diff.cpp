#include "reader/analysis/function_diff.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/tree_groups.hpp"

namespace arctrace::reader {
namespace {

// Student's t for 95 % on both sides, by degrees of freedom from 1.
constexpr double kStudent[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                               2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                               2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
constexpr double kNormal = 1.960;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

double squares(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return sum;
}

std::vector<double> values_of(const std::vector<RunSums>& sums, uint64_t RunSums::*part) {
  std::vector<double> values;
  values.reserve(sums.size());
  for (const RunSums& run : sums) values.push_back(static_cast<double>(run.*part));
  return values;
}

uint64_t rounded_mean(const std::vector<RunSums>& sums, uint64_t RunSums::*part) {
  // One run is exact, however large its sums are.
  if (sums.size() == 1) return sums.front().*part;
  return static_cast<uint64_t>(std::llround(mean(values_of(sums, part))));
}

MeanSums means(const std::vector<RunSums>& sums) {
  if (sums.empty()) return {};
  return {mean(values_of(sums, &RunSums::calls)), rounded_mean(sums, &RunSums::self_ns),
          rounded_mean(sums, &RunSums::total_ns), rounded_mean(sums, &RunSums::off_ns),
          rounded_mean(sums, &RunSums::ready_ns)};
}

// As a double, which calls are; times of less than 104 days are exact in it.
double distance(uint64_t a, uint64_t b) {
  return static_cast<double>(a > b ? a - b : b - a);
}

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<double> noise_of(const std::vector<double>& a,
                               const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const size_t freedom = a.size() + b.size() - 2;
  const double t = freedom <= std::size(kStudent) ? kStudent[freedom - 1] : kNormal;
  const double variance = (squares(a) + squares(b)) / static_cast<double>(freedom);
  return t * std::sqrt(variance * (1 / static_cast<double>(a.size()) +
                                   1 / static_cast<double>(b.size())));
}

void FunctionDiff::add_run(DiffSide side, const Replay& replay) {
  const size_t run = runs_[static_cast<size_t>(side)]++;
  known_ = std::min(known_, replay.known_times());
  const TreeGroups groups(replay, Grouping::kAll);
  const TreeGroup& all = groups.groups().front();
  const Functions& functions = replay.functions();
  std::vector<std::string>& programs = programs_[static_cast<size_t>(side)];
  for (const Process& process : replay.definitions().processes()) {
    std::string name = file_name(process.executable);
    if (!name.empty() && !contains(programs, name)) programs.push_back(std::move(name));
  }
  for (const FunctionTotal& total :
       function_totals(*all.tree, functions, all.root, SortKey::kEntry)) {
    if (total.function != kRootFunction && total.function == functions.own_work()) {
      continue;
    }
    const Function& function = functions[total.function];
    Runs& found = functions_[{function.name, file_name(function.module)}];
    found.module = function.module;
    std::vector<RunSums>& sums = found.sides[static_cast<size_t>(side)];
    sums.resize(run + 1);
    sums[run].calls += total.calls;
    sums[run].self_ns += total.self_ns;
    sums[run].total_ns += total.total_ns;
    sums[run].off_ns += total.cpu.off_ns;
    sums[run].ready_ns += total.cpu.ready_ns;
  }
}

std::optional<ProgramPair> FunctionDiff::paired_programs() const {
  const auto first_of_one_side = [this](DiffSide side, DiffSide other) {
    const std::vector<std::string>& programs = programs_[static_cast<size_t>(side)];
    const auto found =
        std::find_if(programs.begin(), programs.end(), [&](const std::string& name) {
          return !contains(programs_[static_cast<size_t>(other)], name);
        });
    return found == programs.end() ? std::string() : *found;
  };
  ProgramPair pair = {first_of_one_side(DiffSide::kBefore, DiffSide::kAfter),
                      first_of_one_side(DiffSide::kAfter, DiffSide::kBefore)};
  if (pair.before.empty() || pair.after.empty()) return std::nullopt;
  return pair;
}

FunctionDiff::ByKey FunctionDiff::paired_functions() const {
  const std::optional<ProgramPair> pair = paired_programs();
  if (!pair.has_value()) return functions_;
  ByKey paired;
  for (const auto& [key, runs] : functions_) {
    const auto& [name, file] = key;
    if (file != pair->before && file != pair->after) {
      paired[key] = runs;
      continue;
    }
    Runs& found = paired[{name, pair->after}];
    // The path of the side after, which has this one's name.
    if (found.module.empty() || file == pair->after) found.module = runs.module;
    for (size_t side = 0; side < 2; ++side) {
      if (!runs.sides[side].empty()) found.sides[side] = runs.sides[side];
    }
  }
  return paired;
}

std::vector<FunctionChange> FunctionDiff::changes(SortKey sort) const {
  std::vector<FunctionChange> all;
  for (const auto& [key, runs] : paired_functions()) {
    std::array<std::vector<RunSums>, 2> sides = runs.sides;
    for (size_t side = 0; side < 2; ++side) sides[side].resize(runs_[side]);
    FunctionChange change;
    change.name = key.first;
    change.module = runs.module;
    change.before = means(sides[0]);
    change.after = means(sides[1]);
    const auto noise = [&](uint64_t RunSums::*part) -> std::optional<uint64_t> {
      const std::optional<double> found =
          noise_of(values_of(sides[0], part), values_of(sides[1], part));
      if (!found.has_value()) return std::nullopt;
      return static_cast<uint64_t>(std::llround(*found));
    };
    change.self_noise_ns = noise(&RunSums::self_ns);
    change.total_noise_ns = noise(&RunSums::total_ns);
    all.push_back(std::move(change));
  }
  const auto size_of = [sort](const FunctionChange& change) {
    switch (sort) {
      case SortKey::kTotal:
        return distance(change.before.total_ns, change.after.total_ns);
      case SortKey::kCalls:
        return std::abs(change.before.calls - change.after.calls);
      case SortKey::kSelf:
        return distance(change.before.self_ns, change.after.self_ns);
      default:
        return 0.0;  // as they are: by name
    }
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const FunctionChange& a, const FunctionChange& b) {
                     return size_of(a) > size_of(b);
                   });
  return all;
}

}  // namespace arctrace::reader
