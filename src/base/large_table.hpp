// Where large tables of traced programs are.
#pragma once

#include <cstddef>
#include <type_traits>

// Keeps a zeroed table of more than a few hundred bytes apart from the other zeroed
// variables of its library. Each page costs a program that starts a fault when it is
// touched for the first time, and two if it is read before it is written. Of most tables
// a small program touches nothing, or the beginning, but single variables between them
// would each be on a page of their own. cmake/large_tables.ld puts the tables behind all
// other variables. The first one, of which there is one in each library, begins on their
// page. AddressSanitizer has no red zones around variables with a section.
#if defined(__SANITIZE_ADDRESS__)
#define ARCTRACE_LARGE_TABLE
#define ARCTRACE_FIRST_LARGE_TABLE
#else
#define ARCTRACE_LARGE_TABLE __attribute__((section(".bss.large")))
#define ARCTRACE_FIRST_LARGE_TABLE __attribute__((section(".bss.large.first")))
#endif

namespace arctrace {

// A table whose first kFirst entries, which are all that a small program needs, are among
// the other variables. `kRest` is a large table with the others.
template <auto& kRest, size_t kFirst>
class SplitTable {
 public:
  constexpr auto& operator[](size_t i) {
    return i < kFirst ? first_[i] : kRest[i - kFirst];
  }

 private:
  std::remove_reference_t<decltype(kRest[0])> first_[kFirst]{};
};

}  // namespace arctrace
