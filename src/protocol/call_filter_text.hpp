// The text that says which filter of calls a process was started with (SPEC.md REC-13):
// what its entries begin with, besides the marks of the live filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arctrace {

inline constexpr std::string_view kFilterModule = "module:";
inline constexpr std::string_view kFilterDepth = "depth:";
inline constexpr std::string_view kFilterTime = "time:";
inline constexpr std::string_view kFilterSize = "size:";
// Begins a pattern that is a regular expression.
inline constexpr std::string_view kFilterRegex = "re:";
// Stands for entries that found no room.
inline constexpr std::string_view kFilterRest = "?";

inline constexpr size_t kCallFilterTextMax = 1024;  // bytes

// The text is the STRING of this id, which no name has.
inline constexpr uint32_t kCallFilterNameId = 0;

}  // namespace arctrace
