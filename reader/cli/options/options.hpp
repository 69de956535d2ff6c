// Options that several subcommands have.
#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arctrace::cli {

enum class Format : uint8_t { kText, kJson };

// The positional FILE, the default file if it is not given.
CLI::Option* add_file_option(CLI::App& app, std::string& path);
// The positional NAME of a session that there is.
CLI::Option* add_session_option(CLI::App& app, std::string& name);
// --format=text|json
CLI::Option* add_format_option(CLI::App& app, Format& format);

// -o, --output FILE: the default file if it is not given.
CLI::Option* add_output_option(CLI::App& app, std::string& path);

// For unsigned numbers: CLI11 takes -1 for the largest one.
CLI::Validator not_negative();
// For numbers with bounds.
CLI::Validator from_to(double min, double max);
CLI::Validator not_empty();

// "--output" of "-o,--output".
std::string long_name(const std::string& names);
// "drop, overwrite or stop"
std::string either_of(const std::vector<std::string>& words);

// An option whose value is one of a few words, in capitals or not; take(choice) is called
// with what it stands for.
template <class Choice, class Take>
CLI::Option* add_choice_option(CLI::App& app, const std::string& name,
                               const std::vector<std::pair<std::string, Choice>>& choices,
                               const Take& take, const std::string& help) {
  std::vector<std::string> words;
  std::string type;
  for (const auto& [word, choice] : choices) {
    words.push_back(word);
    type += (type.empty() ? "" : "|") + word;
  }
  return app
      .add_option_function<std::string>(
          name,
          [=](const std::string& text) {
            const std::string wanted = CLI::detail::to_lower(text);
            for (const auto& [word, choice] : choices) {
              if (word == wanted) return take(choice);
            }
            throw CLI::ValidationError(long_name(name),
                                       "\"" + text + "\" is not " + either_of(words));
          },
          help)
      ->type_name(type);
}

// The same; `value` may be an optional Choice.
template <class Choice, class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        const std::vector<std::pair<std::string, Choice>>& choices,
                        const std::string& help) {
  return add_choice_option(
      app, name, choices, [&value](const Choice& chosen) { value = chosen; }, help);
}

// An option whose value is a number of bytes, up to `max`, such as 64k: take(size).
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

// A span of time relative to the session's start.
struct TimeRange {
  int64_t from_ns = INT64_MIN;
  int64_t until_ns = INT64_MAX;  // exclusive
};

// -r, --time-range START~STOP
CLI::Option* add_time_range_option(CLI::App& app, TimeRange& range);

// "512", "64k", "1.5G", "2MiB", of 1024.
absl::StatusOr<uint64_t> parse_size(std::string_view text);
// "1.5ms", "2s", "0"; an error says what is wrong.
absl::StatusOr<int64_t> parse_time_ns(std::string_view text);
// "1ms~2s", "~2s", "1ms~"
absl::StatusOr<TimeRange> parse_time_range(std::string_view text);

}  // namespace arctrace::cli
