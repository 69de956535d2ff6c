// Collects findings: keeps a bounded number, and counts all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/record.hpp"
#include "reader/trace/rules.hpp"

namespace arctrace::reader {

class FindingLog {
 public:
  explicit FindingLog(size_t max_kept) : max_kept_(max_kept) {}

  void add(Rule rule, std::string message, uint64_t chunk = 0, uint32_t offset = 0) {
    add({std::string(text_of(rule).id), std::move(message), chunk, offset});
  }
  void add(Finding finding) {
    ++count_;
    if (kept_.size() < max_kept_) kept_.push_back(std::move(finding));
  }

  // Adds what another log found: those that it kept, and how many it counted.
  void add_all(std::span<const Finding> kept, uint64_t count) {
    for (const Finding& finding : kept) add(finding);
    count_ += count - std::min<uint64_t>(count, kept.size());
  }

  const std::vector<Finding>& kept() const { return kept_; }
  uint64_t count() const { return count_; }

  // forget(mark()) drops the findings that were added after mark().
  struct Mark {
    size_t kept = 0;
    uint64_t count = 0;
  };
  Mark mark() const { return {kept_.size(), count_}; }
  void forget(Mark to) {
    kept_.resize(to.kept);
    count_ = to.count;
  }

 private:
  size_t max_kept_;
  std::vector<Finding> kept_;
  uint64_t count_ = 0;
};

}  // namespace arctrace::reader
