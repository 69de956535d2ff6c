// Options that several subcommands have, and the parsers of their values.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/render/output.hpp"
#include "reader/render/terminal.hpp"
#include "reader/trace/record.hpp"
#include "src/recording/options.hpp"
#include "src/recording/patterns/arg_spec.hpp"

namespace CLI {

// CLI11's types, for headers. All of its code is inline, so that a unit that includes
// <CLI/CLI.hpp> takes ten seconds more to compile. Only source files that create or read
// options include it.
class App;
class Option;
class Validator;

}  // namespace CLI

namespace arctrace::cli {

// The trace file that is written and read if none is named.
inline constexpr const char* kDefaultFile = "arctrace.data";

enum class OutputFormat : uint8_t { kText, kJson };

// The positional FILE, the default file if it is not given.
CLI::Option* add_file_option(CLI::App& app, std::string& path);
// The positional FILE of a command that reads a recording, which may be several files
// (record --size-limit).
CLI::Option* add_files_option(CLI::App& app, std::vector<std::string>& paths);
// What the help of such a command says of its files.
inline constexpr const char* kFilesNote =
    "Several FILEs are those of one recording with --size-limit, in any order.";
// The positional NAME of an existing session.
CLI::Option* add_session_option(CLI::App& app, std::string& name);
// --format=text|json
CLI::Option* add_format_option(CLI::App& app, OutputFormat& format);

// -o, --output FILE: the default file if it is not given.
CLI::Option* add_output_option(CLI::App& app, recording::OutputFile& output);
// --no-symbols
CLI::Option* add_no_symbols_option(CLI::App& app, recording::OutputFile& output);
// -d, --definitions FILE
CLI::Option* add_definitions_option(CLI::App& app, std::string& path);

// Validators. not_negative() is for unsigned numbers: CLI11 would read -1 as the largest
// one.
CLI::Validator not_negative();
CLI::Validator from_to(double min, double max);
// The id of a process, from 1.
CLI::Validator process_id();
CLI::Validator not_empty();

// "--output" of "-o,--output".
std::string long_name(const std::string& names);
// "drop, overwrite or stop"
std::string either_of(const std::vector<std::string>& words);
// Returns what is wrong with an option's value that is none of `words`.
std::string not_a_choice(const std::string& value, const std::vector<std::string>& words);

// Adds an option whose value is one of `words`, in capitals or not. Calls take() with the
// word's index.
CLI::Option* add_word_option(CLI::App& app, const std::string& name,
                             const std::vector<std::string>& words,
                             const std::function<void(size_t)>& take,
                             const std::string& help);

// Adds an option whose words stand for choices. Calls take(choice).
template <class Choice, class Take>
CLI::Option* add_choice_option(CLI::App& app, const std::string& name,
                               const std::vector<std::pair<std::string, Choice>>& choices,
                               const Take& take, const std::string& help) {
  std::vector<std::string> words;
  words.reserve(choices.size());
  for (const auto& [word, choice] : choices) words.push_back(word);
  return add_word_option(
      app, name, words, [=](size_t i) { take(choices[i].second); }, help);
}

// Adds such an option that stores the choice in `value`, which may be an optional Choice.
template <class Choice, class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        const std::vector<std::pair<std::string, Choice>>& choices,
                        const std::string& help) {
  return add_choice_option(
      app, name, choices, [&value](const Choice& chosen) { value = chosen; }, help);
}

// Adds an option whose value is a number of bytes, up to `max`, such as 64k. Calls
// take(bytes).
CLI::Option* add_size_option(CLI::App& app, const std::string& name,
                             const std::function<void(uint64_t)>& take, uint64_t max,
                             const std::string& help);
template <class Size>
CLI::Option* add_size_option(CLI::App& app, const std::string& name, Size& size,
                             const std::string& help) {
  return add_size_option(
      app, name, [&size](uint64_t bytes) { size = static_cast<Size>(bytes); },
      std::numeric_limits<Size>::max(), help);
}

// Makes the option take "base" and "cum" for "self" and "total", too: the arcflow reports
// use these words for the times, and so do the keys of the JSON output.
CLI::Option* take_arcflow_names(CLI::Option* option);

using reader::TimeRange;

// Returns what a START~STOP on the command line means. If it is none, throws what CLI11
// throws for a wrong value of `option`.
TimeRange time_range_of(const std::string& option, const std::string& text);

// -r, --time-range START~STOP
CLI::Option* add_time_range_option(CLI::App& app, TimeRange& range);

// Whether an end of a range counts from the trace's end: it is negative.
bool is_from_end(int64_t time_ns);

// Makes such ends count from the session's start, as others do.
void count_from_end(int64_t end_ns, TimeRange& range);

// Parses "1ms~2s", "~2s", "1ms~", "-2s~", "1~2.5"; plain numbers are seconds, and
// negative times count from the trace's end. START is not after STOP. The error quotes
// the text and says what it should be.
absl::StatusOr<TimeRange> parse_time_range(std::string_view text);

// Adds an option whose values are globs (src/base/glob.hpp). Each time it is given, its
// value is added to `globs`. Parsing fails for a value that is no glob.
CLI::Option* add_glob_option(CLI::App& app, const std::string& name,
                             std::vector<std::string>& globs, const std::string& help);

// Adds an option whose values are patterns of functions: globs, or regular expressions
// after "re:" (reader/symbols/name_patterns.hpp).
CLI::Option* add_pattern_option(CLI::App& app, const std::string& name,
                                std::vector<std::string>& patterns,
                                const std::string& help);

// Returns what is wrong with "FIELD OP VALUE", such as "id >= 10", and where; nullopt:
// nothing. The operator is the first of these signs in the text: = == != < <= > >= ~
std::optional<recording::Problem> condition_problem(const std::string& text);

// Adds the option, each of whose values is added to `conditions`, which must outlive
// `app`. `scope`: what the help adds at its end, such as "; with flow"; may be empty.
// `verb`: what is done only with events that meet the conditions: "show" or "record".
CLI::Option* add_where_option(CLI::App& app, std::vector<std::string>& conditions,
                              const std::string& scope, const char* verb = "show");

// Options that say how text appears on a terminal.
struct TerminalOptions {
  reader::ColorMode color = reader::ColorMode::kAuto;
  bool wide = false;
  bool full_names = false;  // of functions
  bool no_pager = false;

  reader::TextStyle style() const { return reader::terminal_style(color, wide); }
  // Makes `output` show text as the options say.
  void apply_to(reader::Output& output) const { output.show_text(style(), !no_pager); }
};

// --wide, --full-names and --no-pager. `options` must outlive `app`.
void add_text_options(CLI::App& app, TerminalOptions& options,
                      const std::string& group = "Options");
// Adds the options of add_text_options(), and --color.
void add_terminal_options(CLI::App& app, TerminalOptions& options,
                          const std::string& group);

}  // namespace arctrace::cli
