// The functions that make a child with a copy of the caller's stack, and those that do
// not.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

class ForkFunctions {
 public:
  // `functions` must outlive this object.
  explicit ForkFunctions(const Functions& functions) : functions_(functions) {}

  // By name. Each function is looked at once.
  bool contains(FunctionId function) {
    for (FunctionId next = static_cast<FunctionId>(is_fork_.size()); next <= function;
         ++next) {
      is_fork_.push_back(is_name(functions_[next].name));
    }
    return is_fork_[function];
  }

  // Whether no child begins in it: it is libc's, and not one of these. Its callbacks may
  // fork, by a call of their own.
  bool is_other_of_libc(FunctionId function) {
    return functions_[function].module.ends_with("/libc.so.6") && !contains(function);
  }

 private:
  static bool is_name(std::string_view name) {
    constexpr std::array<std::string_view, 5> kForkNames = {"fork", "_Fork", "__fork",
                                                            "forkpty", "daemon"};
    return std::find(kForkNames.begin(), kForkNames.end(), name) != kForkNames.end();
  }

  const Functions& functions_;
  std::vector<bool> is_fork_;  // by FunctionId
};

}  // namespace arctrace::reader
