#include "reader/cli/options/options.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "src/base/near_names.hpp"
#include "src/protocol/field_condition.hpp"
#include "src/recording/patterns/arg_spec.hpp"
#include "src/recording/patterns/function_pattern.hpp"

namespace arctrace::cli {

CLI::Option* add_file_option(CLI::App& app, std::string& path) {
  path = kDefaultFile;
  return app.add_option("file", path, "a trace file, a session, or a buffer's file")
      ->type_name("FILE")
      ->capture_default_str();
}

CLI::Option* add_files_option(CLI::App& app, std::vector<std::string>& paths) {
  paths = {kDefaultFile};
  return app.add_option("file", paths, "a trace file, a session, or a buffer's file")
      ->check(not_empty())
      ->type_name("FILE...")
      ->default_str(kDefaultFile);
}

CLI::Option* add_session_option(CLI::App& app, std::string& name) {
  return app.add_option("name", name, "the session's name, or its buffer's file")
      ->required()
      ->type_name("NAME");
}

CLI::Option* add_format_option(CLI::App& app, OutputFormat& format) {
  return add_choice<OutputFormat>(
             app, "--format", format,
             {{"text", OutputFormat::kText}, {"json", OutputFormat::kJson}},
             "the format of the output")
      ->default_str("text");
}

TimeRange time_range_of(const std::string& option, const std::string& text) {
  const absl::StatusOr<TimeRange> parsed = parse_time_range(text);
  if (parsed.ok()) return *parsed;
  throw CLI::ValidationError(option, std::string(parsed.status().message()));
}

CLI::Option* add_time_range_option(CLI::App& app, TimeRange& range) {
  return app
      .add_option_function<std::string>(
          "-r,--time-range",
          [&range](const std::string& text) {
            range = time_range_of("--time-range", text);
          },
          "only from START up to STOP, such as 1.5ms~2s: they count from the start of "
          "the "
          "session, negative ones from the trace's end, -2s~; each may be omitted; plain "
          "numbers are seconds")
      ->type_name("START~STOP");
}

CLI::Option* add_output_option(CLI::App& app, recording::OutputFile& output) {
  output.path = kDefaultFile;
  return app
      .add_option_function<std::string>(
          "-o,--output",
          [&output](const std::string& path) {
            output.path = path;
            output.is_named = true;
          },
          "the trace file to write; an existing one is kept as FILE.old; a FIFO or "
          "device "
          "is written into; -: standard output")
      ->check(not_empty())
      ->type_name("FILE")
      ->default_str(kDefaultFile);
}

CLI::Option* add_no_symbols_option(CLI::App& app, recording::OutputFile& output) {
  return app.add_flag_callback(
      "--no-symbols", [&output] { output.has_symbols = false; },
      "leave the names of functions out of the file: whoever reads it needs the programs "
      "as they were recorded");
}

CLI::Option* add_definitions_option(CLI::App& app, std::string& path) {
  return app
      .add_option("-d,--definitions", path,
                  "take names that the buffer lacks from FILE, which the session's "
                  "recorder wrote until it died, or writes")
      ->check(not_empty())
      ->type_name("FILE");
}

CLI::Option* add_word_option(CLI::App& app, const std::string& name,
                             const std::vector<std::string>& words,
                             const std::function<void(size_t)>& take,
                             const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [=](const std::string& text) {
            const std::string wanted = CLI::detail::to_lower(text);
            const auto word = std::find(words.begin(), words.end(), wanted);
            if (word == words.end()) {
              throw CLI::ValidationError(long_name(name), not_a_choice(text, words));
            }
            take(static_cast<size_t>(word - words.begin()));
          },
          help)
      ->type_name(absl::StrJoin(words, "|"));
}

CLI::Option* take_arcflow_names(CLI::Option* option) {
  return option->transform([](std::string name) {
    static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"base", "self"}, {"cum", "total"}, {"base%", "self%"}, {"cum%", "total%"}};
    for (const auto& [arcflow, ours] : kNames) {
      if (name == arcflow) return std::string(ours);
    }
    return name;
  });
}

CLI::Option* add_size_option(CLI::App& app, const std::string& name,
                             const std::function<void(uint64_t)>& take, uint64_t max,
                             const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [=](const std::string& text) {
            const absl::StatusOr<uint64_t> parsed = recording::parse_size(text);
            if (!parsed.ok()) {
              throw CLI::ValidationError(long_name(name),
                                         std::string(parsed.status().message()));
            }
            if (*parsed > max) {
              throw CLI::ValidationError(long_name(name),
                                         "\"" + text + "\" is too large");
            }
            take(*parsed);
          },
          help)
      ->type_name("SIZE");
}

std::string long_name(const std::string& names) {
  return names.substr(names.rfind(',') + 1);
}

std::string either_of(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string not_a_choice(const std::string& value,
                         const std::vector<std::string>& words) {
  return absl::StrCat("\"", value, "\" is not ", either_of(words),
                      near_names(value, words));
}

CLI::Validator from_to(double min, double max) {
  return {[=](std::string& text) {
            double value = 0;
            const bool is_number = absl::SimpleAtod(text, &value);
            // NaN fails both comparisons.
            if (is_number && value >= min && value <= max) return std::string();
            return absl::StrCat("\"", text, "\" is not a number from ", min, " to ", max);
          },
          ""};
}

CLI::Validator process_id() {
  return {[](std::string& text) {
            pid_t pid = 0;
            if (absl::SimpleAtoi(text, &pid) && pid > 0) return std::string();
            return absl::StrCat("\"", text, "\" is not the id of a process");
          },
          ""};
}

CLI::Validator not_empty() {
  return {[](std::string& text) {
            return text.empty() ? "the value is empty" : std::string();
          },
          ""};
}

CLI::Validator not_negative() {
  return {[](std::string& text) {
            const size_t first = text.find_first_not_of(" \t\n\v\f\r");
            const bool negative = first != std::string::npos && text[first] == '-';
            return negative ? "\"" + text + "\" is negative" : std::string();
          },
          ""};
}

absl::StatusOr<TimeRange> parse_time_range(std::string_view text) {
  const size_t tilde = text.find('~');
  if (tilde == std::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text),
                     "\" is not a range START~STOP such as 1.5ms~2s, or -2s~"));
  }
  TimeRange range;
  const auto parse_end = [](std::string_view end, int64_t& out) {
    if (end.empty()) return absl::OkStatus();
    std::string time(end);
    double seconds = 0;
    if (absl::SimpleAtod(time, &seconds)) time += 's';
    const absl::StatusOr<int64_t> parsed = recording::parse_time_ns(time);
    if (parsed.ok()) out = *parsed;
    return parsed.status();
  };
  if (absl::Status s = parse_end(text.substr(0, tilde), range.from_ns); !s.ok()) return s;
  if (absl::Status s = parse_end(text.substr(tilde + 1), range.until_ns); !s.ok())
    return s;
  // Which of two ends is earlier is not known if one counts from the trace's end.
  const bool is_alike = is_from_end(range.from_ns) == is_from_end(range.until_ns);
  if (is_alike && range.from_ns > range.until_ns) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" ends before it starts"));
  }
  return range;
}

bool is_from_end(int64_t time_ns) { return time_ns < 0 && time_ns != INT64_MIN; }

void count_from_end(int64_t end_ns, TimeRange& range) {
  // The end is what a trace says, which may be anything. Not negative, it can't overflow.
  const int64_t since_start_ns = std::max(end_ns, int64_t{0});
  if (is_from_end(range.from_ns)) range.from_ns += since_start_ns;
  if (is_from_end(range.until_ns)) range.until_ns += since_start_ns;
}

namespace {

CLI::Option* add_checked_option(
    CLI::App& app, const std::string& name, std::vector<std::string>& values,
    const std::string& help, const char* type,
    std::optional<recording::Problem> problem_of(const std::string&)) {
  const auto message_of = [problem_of](const std::string& value) -> std::string {
    const auto problem = problem_of(value);
    if (!problem) return {};
    return absl::StrCat("\"", value, "\": ", problem->second);
  };
  return app.add_option(name, values, help)
      ->check(CLI::Validator(message_of, ""))
      ->type_name(type)
      ->allow_extra_args(false);
}

}  // namespace

CLI::Option* add_glob_option(CLI::App& app, const std::string& name,
                             std::vector<std::string>& globs, const std::string& help) {
  return add_checked_option(app, name, globs, help, "GLOB", recording::glob_problem);
}

CLI::Option* add_pattern_option(CLI::App& app, const std::string& name,
                                std::vector<std::string>& patterns,
                                const std::string& help) {
  return add_checked_option(app, name, patterns, help, "PATTERN",
                            recording::pattern_problem);
}

namespace {

constexpr std::string_view kOperatorSigns = "=!<>~";

}  // namespace

std::optional<recording::Problem> condition_problem(const std::string& text) {
  const FieldCondition condition = split_condition(text);
  const size_t at = std::min(text.find_first_of(kOperatorSigns), text.size());
  if (condition.op == FieldOperator::kNone) {
    return recording::Problem{at, "not a condition such as \"id = 5\": = != < <= > >= ~"};
  }
  if (condition.field.empty())
    return recording::Problem{0, "no field before the operator"};
  const bool has_two_signs =
      text[at] != '~' && at + 1 < text.size() && text[at + 1] == '=';
  const size_t behind = at + (has_two_signs ? 2 : 1);
  if (condition.is_quoted) {
    if (condition.op != FieldOperator::kMatches) return std::nullopt;
  } else if (condition.operand.empty()) {
    return recording::Problem{behind,
                              "no value after the operator; \"\" is an empty text"};
  } else if (kOperatorSigns.find(condition.operand.front()) != std::string_view::npos) {
    return recording::Problem{
        behind,
        "no such operator, only = != < <= > >= ~; a value that begins with one "
        "of these signs stands between double quotes"};
  }
  if (condition.op == FieldOperator::kMatches) {
    if (const std::optional<recording::Problem> problem =
            recording::glob_problem(std::string(condition.operand))) {
      const auto begins = static_cast<size_t>(condition.operand.data() - text.data());
      return recording::Problem{begins + problem->first, problem->second};
    }
  }
  return std::nullopt;
}

CLI::Option* add_where_option(CLI::App& app, std::vector<std::string>& conditions,
                              const std::string& scope, const char* verb) {
  const auto take = [&conditions](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (const std::optional<recording::Problem> problem = condition_problem(text)) {
        throw CLI::ValidationError("--where",
                                   absl::StrCat("\"", text, "\": ", problem->second));
      }
      conditions.push_back(text);
    }
  };
  return app
      .add_option_function<std::vector<std::string>>(
          "--where", take,
          absl::StrCat("of events of the API, ", verb,
                       " only those of whose fields CONDITION holds: FIELD OP VALUE, "
                       "such as 'id >= 10', where OP is = != < <= > >= "
                       "or, for a GLOB of texts, ~; may be repeated, and then all must "
                       "hold. Events that are left out are counted",
                       scope))
      ->allow_extra_args(false)
      ->type_name("CONDITION");
}

void add_text_options(CLI::App& app, TerminalOptions& options, const std::string& group) {
  app.add_flag("--wide", options.wide,
               "do not cut names and columns to the width of the terminal")
      ->group(group);
  app.add_flag_callback(
         "--full-names", [&options] { options.wide = options.full_names = true; },
         "the same, and show C++ functions with return types, template arguments and "
         "parameters, and copies by their own names")
      ->group(group);
  app.add_flag("--no-pager", options.no_pager,
               "do not show the text through $ARCTRACE_PAGER, else $PAGER, else less")
      ->group(group);
}

void add_terminal_options(CLI::App& app, TerminalOptions& options,
                          const std::string& group) {
  add_choice<reader::ColorMode>(app, "--color", options.color,
                                {{"auto", reader::ColorMode::kAuto},
                                 {"always", reader::ColorMode::kAlways},
                                 {"never", reader::ColorMode::kNever}},
                                "auto: on a terminal, unless NO_COLOR is set")
      ->group(group);
  add_text_options(app, options, group);
}

}  // namespace arctrace::cli
