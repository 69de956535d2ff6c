#include "reader/cli/record/recording_warnings.hpp"

#include <absl/strings/str_cat.h>

#include <set>
#include <utility>
#include <vector>

#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/recording/patterns/unmatched_events.hpp"
#include "src/recording/patterns/unmatched_patterns.hpp"

namespace arctrace::cli {

void warn_untraced(const std::string& program, uint32_t why) {
  reader::print_warning(
      absl::StrCat("can't trace ", program, ": it is ", reader::untraced_text(why)));
}

void warn_of_untraced(const CollectorSummary& summary) {
  constexpr size_t kShownMax = 5;
  const std::set<UntracedProgram>& programs = summary.totals.untraced.programs();
  size_t shown = 0;
  for (const UntracedProgram& program : programs) {
    if (shown++ == kShownMax) break;
    warn_untraced(reader::escaped(program.path), program.why);
  }
  if (programs.size() > kShownMax) {
    reader::print_warning(absl::StrCat(
        "can't trace ", reader::count_text(programs.size() - kShownMax, "more program"),
        ": arctrace dump shows them as UNTRACED"));
  }
}

void warn_of_unmatched_events(const CollectorSummary& summary,
                              const recording::RecordFilterOptions& filter) {
  const DefinedEvents& defined = summary.totals.events;
  std::vector<std::string> lines;
  if (defined.has_all_events()) {
    lines = recording::unmatched_events(filter, defined.levels(), defined.fields());
  }
  if (defined.has_all_names()) {
    for (std::string& line : recording::unmatched_instants(filter, defined.names())) {
      lines.push_back(std::move(line));
    }
  }
  for (const std::string& line : lines) reader::print_warning(line);
}

void warn_of_identities(const CollectorSummary& summary) {
  const std::string text = reader::identities_text(summary.processes, summary.threads);
  if (!text.empty()) reader::print_warning(text);
}

void warn_of_unmatched(const recording::CallFilterOptions& filter, uint64_t matched,
                       const std::string& command) {
  for (const std::string& line :
       recording::unmatched_patterns(filter, matched, command)) {
    reader::print_warning(line);
  }
}

bool warn_of_missing_room(const BufferView& buffer) {
  const uint32_t count = IpcAtomics::load_relaxed(buffer.control().without_room);
  if (count == 0) return false;
  reader::print_warning(
      absl::StrCat(reader::count_text(count, "program"), count == 1 ? " is" : " are",
                   " not recorded, without room in memory for the buffer of ",
                   reader::bytes_text(buffer.geometry().total_size),
                   " (ulimit -v): a smaller one may fit, such as -b 4M"));
  return true;
}

}  // namespace arctrace::cli
