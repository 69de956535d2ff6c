// The shared atomics with a hook after each operation, so that a test can check the
// buffer, let another writer in, or let the writer die, between any two of them.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace::testing {

struct SpyAtomics {
  // Called after each operation with its number since reset(), from 0.
  static inline std::function<void(uint32_t)> hook;
  static inline uint32_t operations = 0;

  static void reset(std::function<void(uint32_t)> new_hook) {
    hook = std::move(new_hook);
    operations = 0;
  }

  template <class Word>
  static Word load_relaxed(Word& word) {
    return passed(IpcAtomics::load_relaxed(word));
  }
  template <class Word>
  static Word load_acquire(Word& word) {
    return passed(IpcAtomics::load_acquire(word));
  }
  template <class Word>
  static void store_relaxed(Word& word, Word value) {
    IpcAtomics::store_relaxed(word, value);
    passed(0);
  }
  template <class Word>
  static void store_release(Word& word, Word value) {
    IpcAtomics::store_release(word, value);
    passed(0);
  }
  template <class Word>
  static Word fetch_add_relaxed(Word& word, Word value) {
    return passed(IpcAtomics::fetch_add_relaxed(word, value));
  }
  template <class Word>
  static Word fetch_add_acq_rel(Word& word, Word value) {
    return passed(IpcAtomics::fetch_add_acq_rel(word, value));
  }
  template <class Word>
  static bool compare_exchange_acq_rel(Word& word, Word& expected, Word desired) {
    return passed(IpcAtomics::compare_exchange_acq_rel(word, expected, desired));
  }
  static void fill_ones(std::byte* to, size_t size) { IpcAtomics::fill_ones(to, size); }

 private:
  template <class Result>
  static Result passed(Result result) {
    const uint32_t number = operations++;
    if (hook) hook(number);
    return result;
  }
};

// A hook throws this to let the writer die between two operations.
struct Death {};

}  // namespace arctrace::testing
