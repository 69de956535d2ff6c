// 64 functions that call each other in a binary tree; built with -finstrument-functions.
#include "bench/call_tree.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace {

constexpr size_t kFunctions = 64;
using Function = void (*)(unsigned levels);

template <size_t kIndex>
__attribute__((noinline)) void function(unsigned levels);

template <size_t... kIndexes>
constexpr std::array<Function, kFunctions> table(
    std::index_sequence<kIndexes...> /*all*/) {
  return {function<kIndexes>...};
}
constexpr std::array<Function, kFunctions> kTable =
    table(std::make_index_sequence<kFunctions>());

template <size_t kIndex>
void function(unsigned levels) {
  if (levels == 1) return;
  constexpr Function kLeft = std::get<(2 * kIndex + 1) % kFunctions>(kTable);
  constexpr Function kRight = std::get<(2 * kIndex + 2) % kFunctions>(kTable);
  kLeft(levels - 1);
  kRight(levels - 1);
}

}  // namespace

void call_tree(unsigned levels) { function<0>(levels); }
