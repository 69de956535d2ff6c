#include "reader/cli/options.hpp"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include "reader/cli/commands.hpp"

namespace arctrace::cli {

CLI::Option* add_file_option(CLI::App& app, std::string& path) {
  path = kDefaultFile;
  return app.add_option("file", path, "trace file, or a buffer's file")
      ->type_name("FILE")
      ->capture_default_str();
}

CLI::Option* add_format_option(CLI::App& app, Format& format) {
  static const std::map<std::string, Format> kFormats = {{"text", Format::kText},
                                                         {"json", Format::kJson}};
  CLI::CheckedTransformer transformer(kFormats, CLI::ignore_case);
  transformer.description("text|json");
  return app.add_option("--format", format, "how to print it")
      ->transform(transformer)
      ->type_name("")
      ->default_str("text");
}

CLI::Option* add_time_range_option(CLI::App& app, TimeRange& range) {
  return app
      .add_option_function<std::string>(
          "-r,--time-range",
          [&range](const std::string& text) {
            const absl::StatusOr<TimeRange> parsed = parse_time_range(text);
            if (!parsed.ok()) {
              throw CLI::ValidationError("--time-range",
                                         std::string(parsed.status().message()));
            }
            range = *parsed;
          },
          "only from START up to STOP, counted from the session's start, such as "
          "1.5ms~2s; either may be left out")
      ->type_name("START~STOP");
}

CLI::Validator not_negative() {
  return {[](std::string& text) {
            const size_t first = text.find_first_not_of(" \t\n\v\f\r");
            const bool negative = first != std::string::npos && text[first] == '-';
            return negative ? "\"" + text + "\" is negative" : std::string();
          },
          ""};
}

absl::StatusOr<int64_t> parse_time_ns(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration({text.data(), text.size()}, &duration)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", std::string(text), "\" is not a time such as 1.5ms, 20us, 300ns or 2s"));
  }
  return absl::ToInt64Nanoseconds(duration);
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
    const absl::StatusOr<int64_t> parsed = parse_time_ns(end);
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
