// Checks the filter options, and encodes them.
#include "src/recording/patterns/filters.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <string_view>
#include <utility>
#include <variant>

#include "reader/trace/event_fields.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/protocol/record_filter.hpp"
#include "src/recording/patterns/arg_spec.hpp"
#include "src/recording/patterns/function_pattern.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::recording {

namespace {

template <class Value>
void append(std::string& text, std::string_view mark, const Value& value) {
  absl::StrAppend(&text, std::string(mark), value);
  text += '\0';
}

// The entry that WhereEntry parses.
std::string where_entry(const std::string& text) {
  const FieldCondition condition = split_condition(text);
  const RealBits real = reader::real_bits_of(condition);
  if (real.is_known) {
    return absl::StrFormat("%s #%016x%08x", text, real.f64, real.f32);
  }
  if (condition.is_quoted || !WhereEntry(text).has_real) return text;
  // The text ends with the operand.
  const auto begin = static_cast<size_t>(condition.operand.data() - text.data());
  return absl::StrCat(text.substr(0, begin), "\"", std::string(condition.operand), "\"");
}

}  // namespace

bool RecordFilterOptions::empty() const {
  return events.empty() && not_events.empty() && !level && instants.empty() &&
         not_instants.empty() && where.empty() && pids.empty() && tids.empty();
}

std::string RecordFilterOptions::text() const {
  std::string text;
  for (const std::string& glob : events) append(text, kFilterEvent, glob);
  for (const std::string& glob : not_events) append(text, kFilterNotEvent, glob);
  if (level) append(text, kFilterLevel, *level);
  for (const std::string& glob : instants) append(text, kFilterInstant, glob);
  for (const std::string& glob : not_instants) append(text, kFilterNotInstant, glob);
  for (const std::string& one : where) append(text, kFilterWhere, where_entry(one));
  for (const uint32_t pid : pids) append(text, kFilterPid, pid);
  for (const uint32_t tid : tids) append(text, kFilterTid, tid);
  return text;
}

namespace {

using PatternKind = shim::Pattern::Kind;

bool has_args(const PatternOption& option) { return option.kind == PatternKind::kArgs; }

// A pattern of -P, which may be for libraries.
std::optional<Problem> patch_problem(const std::string& text) {
  const shim::PatchPattern split = shim::split_patch_pattern(text);
  if (split.library.empty()) {
    if (!text.starts_with(shim::kLibraryMark)) return pattern_problem(text);
    return Problem{shim::kLibraryMark.size(), "no library's name after lib:"};
  }
  std::optional<Problem> problem = glob_problem(std::string(split.library));
  if (problem) {
    problem->first += shim::kLibraryMark.size();
    return problem;
  }
  if (split.function.empty()) return Problem{text.size(), "no pattern after the library"};
  problem = pattern_problem(std::string(split.function));
  if (problem) problem->first += text.size() - split.function.size();
  return problem;
}

std::optional<Problem> time_problem(const std::string& time) {
  const absl::StatusOr<int64_t> parsed = parse_time_ns(time);
  if (parsed.ok() && *parsed >= 0) return std::nullopt;
  if (parsed.ok()) return Problem{0, "is negative"};
  const size_t unit = time.find_first_not_of("0123456789.");
  return Problem{unit == std::string::npos ? time.size() : unit,
                 "not a time such as 1.5ms, 20us, 300ns or 2s"};
}

}  // namespace

std::array<PatternOption, 8> pattern_options(const CallFilterOptions& options) {
  return {{{"-F", PatternKind::kFilter, &options.filter},
           {"-N", PatternKind::kNotrace, &options.notrace},
           {"-L", PatternKind::kModule, &options.modules},
           {"--entry-only", PatternKind::kEntryOnly, &options.entry_only},
           {"-P", PatternKind::kPatch, &options.patch},
           {"-A", PatternKind::kArgs, &options.args},
           {"-R", PatternKind::kArgs, &options.retvals},
           {"--snapshot-when", PatternKind::kWhen, &options.snapshot_when}}};
}

std::string pattern_of(const PatternOption& option, const std::string& text) {
  if (option.kind == PatternKind::kPatch && text == ".") return "*";  // uftrace's word
  if (option.kind == PatternKind::kWhen) {
    return std::get<SnapshotCondition>(parse_snapshot_condition(text)).pattern;
  }
  return has_args(option) ? text.substr(0, text.rfind('@')) : text;
}

std::string SpecProblem::text() const {
  const std::string shown = reader::escaped(value);
  const size_t column = reader::escaped(value.substr(0, offset)).size();
  std::string line = absl::StrCat(option, " \"", shown, "\": ", what);
  if (shown.empty()) return line;
  return absl::StrCat(line, "\n  ", shown, "\n  ", std::string(column, ' '), "^");
}

std::optional<SpecProblem> find_problem(const CallFilterOptions& options) {
  for (const PatternOption& kind : pattern_options(options)) {
    for (const std::string& text : *kind.patterns) {
      if (kind.kind == PatternKind::kWhen) {
        const auto parsed = parse_snapshot_condition(text);
        if (const auto* problem = std::get_if<Problem>(&parsed)) {
          return SpecProblem{kind.option, text, problem->first, problem->second};
        }
      }
      const std::string pattern = pattern_of(kind, text);
      if (kind.kind == PatternKind::kPatch && pattern.starts_with("py:") &&
          !pattern.starts_with("py::")) {
        return SpecProblem{kind.option, text, 0,
                           "a Python program's functions are not patched: they are "
                           "recorded by python3 -m arctrace_python PROGRAM.py"};
      }
      std::optional<Problem> problem = kind.kind == PatternKind::kPatch
                                           ? patch_problem(pattern)
                                           : pattern_problem(pattern);
      if (!problem && has_args(kind)) {
        problem = arg_spec_problem(text, kind.patterns == &options.retvals);
      }
      if (problem) return SpecProblem{kind.option, text, problem->first, problem->second};
    }
  }
  if (options.time.empty()) return std::nullopt;
  const auto problem = time_problem(options.time);
  if (!problem) return std::nullopt;
  return SpecProblem{"-t", options.time, problem->first, problem->second};
}

void encode(const CallFilterOptions& options, shim::OptionsEncoder& encoder) {
  for (const PatternOption& option : pattern_options(options)) {
    for (const std::string& text : *option.patterns) {
      const std::string pattern = pattern_of(option, text);
      if (option.kind == PatternKind::kWhen) {
        encoder.add_condition(
            std::get<SnapshotCondition>(parse_snapshot_condition(text)).code, pattern);
      } else if (has_args(option)) {
        const bool of_result = option.patterns == &options.retvals;
        encoder.add_args(encoded_arg_specs(text, of_result), pattern);
      } else {
        encoder.add_pattern(option.kind, pattern);
      }
    }
  }
  if (options.auto_args) encoder.set_auto_args();
  if (options.depth) encoder.set_depth_max(*options.depth);
  if (!options.time.empty()) {
    encoder.set_min_ns(static_cast<uint64_t>(*parse_time_ns(options.time)));
  }
  if (options.size) encoder.set_size_min(*options.size);
}

}  // namespace arctrace::recording
