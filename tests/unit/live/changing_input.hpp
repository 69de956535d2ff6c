// Bytes in memory that a test changes between two readings, as a live session does.
#pragma once

#include <algorithm>
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

  explicit ChangingInput(Bytes bytes) : bytes_(std::move(bytes)) {}

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_->size(); }
  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    if (offset >= bytes_->size()) return size_t{0};
    const size_t count = std::min<size_t>(into.size(), bytes_->size() - offset);
    std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset), count,
                into.begin());
    return count;
  }

 private:
  const std::string name_ = "changing";
  Bytes bytes_;
};

}  // namespace arctrace::testing
