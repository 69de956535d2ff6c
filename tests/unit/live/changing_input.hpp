// Bytes in memory that a test changes between two readings, as a live session does.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/input.hpp"

namespace arctrace::testing {

class ChangingInput : public reader::Input {
 public:
  using Bytes = std::shared_ptr<std::vector<std::byte>>;

  // `meanwhile` is called after each reading with the number of bytes that were read, and
  // may change what later readings get.
  explicit ChangingInput(
      Bytes bytes, std::function<void(size_t)> meanwhile = [](size_t) {})
      : bytes_(std::move(bytes)), meanwhile_(std::move(meanwhile)) {}

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_->size(); }
  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    const size_t begin = std::min<size_t>(offset, bytes_->size());
    const size_t count = std::min<size_t>(into.size(), bytes_->size() - begin);
    std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(begin), count,
                into.begin());
    meanwhile_(count);
    return count;
  }

 private:
  const std::string name_ = "changing";
  Bytes bytes_;
  std::function<void(size_t)> meanwhile_;
};

}  // namespace arctrace::testing
