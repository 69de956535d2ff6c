// The shared atomics, with a stop before each operation at which another task may run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "tests/interleavings/explorer.hpp"

namespace arctrace::testing {

struct SchedulingAtomics {
  template <class Word>
  static Word load_relaxed(Word& word) {
    return reading(word), IpcAtomics::load_relaxed(word);
  }
  template <class Word>
  static Word load_acquire(Word& word) {
    return reading(word), IpcAtomics::load_acquire(word);
  }
  template <class Word>
  static void store_relaxed(Word& word, Word value) {
    writing(word), IpcAtomics::store_relaxed(word, value);
  }
  template <class Word>
  static void store_release(Word& word, Word value) {
    writing(word), IpcAtomics::store_release(word, value);
  }
  template <class Word>
  static Word fetch_add_relaxed(Word& word, Word value) {
    return writing(word), IpcAtomics::fetch_add_relaxed(word, value);
  }
  template <class Word>
  static Word fetch_add_acq_rel(Word& word, Word value) {
    return writing(word), IpcAtomics::fetch_add_acq_rel(word, value);
  }
  static void fill_ones(std::byte* to, size_t size) {
    before_access({reinterpret_cast<uintptr_t>(to), size, true});
    IpcAtomics::fill_ones(to, size);
  }
  template <class Word>
  static bool compare_exchange_acq_rel(Word& word, Word& expected, Word desired) {
    return writing(word), IpcAtomics::compare_exchange_acq_rel(word, expected, desired);
  }

 private:
  template <class Word>
  static void reading(const Word& word) {
    before_access({reinterpret_cast<uintptr_t>(&word), sizeof word, false});
  }
  template <class Word>
  static void writing(const Word& word) {
    before_access({reinterpret_cast<uintptr_t>(&word), sizeof word, true});
  }
};

}  // namespace arctrace::testing
