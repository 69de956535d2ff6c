// What to do next, and what the recording lacks.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reader/report/own_functions_hint.hpp"
#include "reader/report/report_summary.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {

std::string joined_text(const Definitions& definitions) {
  const size_t joined = definitions.programs_joined_running();
  if (joined == 0) return {};
  const std::string what =
      joined == 1 ? "the program did before it was joined"
                  : absl::StrCat(joined, " programs did before each was joined");
  return absl::StrCat("  what ", what, " is not in the trace");
}

SummarySection hints_section(const SummaryFacts& facts, const TextStyle& style) {
  SummarySection section;
  const Functions& functions = facts.replay.functions();
  const std::vector<FunctionTotal> totals = hottest_functions(facts);
  if (std::string hint = own_functions_hint(facts.replay, facts.session, facts.summary,
                                            facts.enabled, style.width);
      !hint.empty()) {
    section.rows.push_back(std::move(hint));
  }
  if (!facts.replay.has_dispatches()) {
    section.rows.emplace_back(
        "time on the CPU and waiting are not told apart: record with --kernel");
  }
  if (facts.symbol_findings != nullptr) {
    std::string missing = missing_lines_text(*facts.symbol_findings);
    if (!missing.empty()) section.rows.push_back(std::move(missing));
  }
  const auto hottest = std::find_if(totals.begin(), totals.end(), [&](const auto& total) {
    // Frames that are no functions have no graph worth looking at.
    return facts.times.find(facts.all, total.function) != nullptr &&
           !functions[total.function].name.starts_with('[') &&
           escaped(functions[total.function].name).find('\'') == std::string::npos;
  });
  section.rows.emplace_back("more:  arctrace report --view=tree");
  if (hottest != totals.end()) {
    const std::string name = "'" + escaped(functions[hottest->function].name) + "'";
    section.rows.push_back("       arctrace graph " + name);
    section.rows.push_back("       arctrace report --view=slowest -F " + name);
  }
  return section;
}

}  // namespace arctrace::reader
