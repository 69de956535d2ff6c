#include "reader/cli/options/options.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "src/base/near_names.hpp"
#include "src/recording/patterns/amounts.hpp"

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
          "only from START up to STOP, which count from the start of the session, "
          "such as 1.5ms~2s; each may be omitted")
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
            // NaN passes neither comparison.
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
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", std::string(text), "\" is not a range START~STOP such as 1.5ms~2s"));
  }
  TimeRange range;
  const auto parse_end = [](std::string_view end, int64_t& out) {
    if (end.empty()) return absl::OkStatus();
    const absl::StatusOr<int64_t> parsed = recording::parse_time_ns(end);
    if (parsed.ok()) out = *parsed;
    return parsed.status();
  };
  if (absl::Status s = parse_end(text.substr(0, tilde), range.from_ns); !s.ok()) return s;
  if (absl::Status s = parse_end(text.substr(tilde + 1), range.until_ns); !s.ok())
    return s;
  if (range.from_ns > range.until_ns) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" ends before it starts"));
  }
  return range;
}

}  // namespace arctrace::cli
