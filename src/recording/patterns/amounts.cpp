#include "src/recording/patterns/amounts.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace arctrace::recording {

absl::StatusOr<uint64_t> parse_size(std::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" is not a size such as 64k or 1.5G"));
  };
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, digits);
  double value = 0;
  if (!absl::SimpleAtod(std::string(number), &value)) return error();
  std::string unit =
      absl::AsciiStrToLower(std::string(text.substr(std::min(digits, text.size()))));
  if (unit.ends_with("ib") && unit.size() == 3) {
    unit.resize(1);
  } else if (unit.ends_with('b')) {
    unit.pop_back();
  }
  constexpr std::string_view kUnits = "kmgtpe";
  if (unit.size() > 1 || (!unit.empty() && kUnits.find(unit[0]) == kUnits.npos)) {
    return error();
  }
  const size_t power = unit.empty() ? 0 : kUnits.find(unit[0]) + 1;
  value = std::ldexp(value, static_cast<int>(10 * power));
  if (value >= 0x1p63) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" is too large"));
  }
  return static_cast<uint64_t>(value);
}

absl::StatusOr<int64_t> parse_time_ns(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration({text.data(), text.size()}, &duration)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", std::string(text), "\" is not a time such as 1.5ms, 20us, 300ns or 2s"));
  }
  return absl::ToInt64Nanoseconds(duration);
}

}  // namespace arctrace::recording
