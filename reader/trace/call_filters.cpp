#include "reader/trace/call_filters.hpp"

#include <utility>

#include "src/protocol/live_filter.hpp"

namespace arctrace::reader {
namespace {

// The entries of the live filter. A "?" is of one of the two filters: of the other one,
// if the text has entries of this one.
std::vector<std::string> live_entries(std::string_view text) {
  std::vector<std::string> entries;
  bool is_unknown = false;
  for_each_filter_entry(text, [&](std::string_view entry) {
    is_unknown |= entry == kUnknownFilter;
    if (entry.starts_with(kFilterMark) || entry.starts_with(kNotraceMark)) {
      entries.emplace_back(entry);
    }
  });
  if (is_unknown && entries.empty()) entries.emplace_back(kUnknownFilter);
  return entries;
}

}  // namespace

std::vector<std::string> filter_entries(std::string_view text) {
  std::vector<std::string> entries;
  for_each_filter_entry(text,
                        [&](std::string_view entry) { entries.emplace_back(entry); });
  if (!text.empty() && text.back() != '\0') entries.back() = kUnknownFilter;
  return entries;
}

void LiveFilters::add(int64_t time_ns, std::string_view text) {
  std::vector<std::string> entries = live_entries(text);
  const bool is_open = !filters_.empty() && filters_.back().to_ns == INT64_MAX;
  if (is_open ? filters_.back().entries == entries : entries.empty()) return;
  if (filters_.size() == kMax) {
    filters_.back().to_ns = INT64_MAX;
    filters_.back().entries = {std::string(kUnknownFilter)};
    return;
  }
  if (is_open) filters_.back().to_ns = time_ns;
  if (!entries.empty()) filters_.push_back({time_ns, INT64_MAX, std::move(entries)});
}

}  // namespace arctrace::reader
