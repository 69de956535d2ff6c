// Accesses to words that other processes may read or write: all of them are operations of
// IpcAtomics, each named after its memory order. The protocol (src/protocol) is a
// template over this policy, so that tests can run the same code under a scheduler. The
// lettered pairs (A1, A2 ...) at the call sites are listed, each with what it publishes,
// in docs/memory_ordering.md.
#pragma once

#include <boost/atomic/ipc_atomic_ref.hpp>
#include <boost/memory_order.hpp>
#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"

namespace arctrace {

struct IpcAtomics {
  template <class Word>
  static Word load_relaxed(Word& word) {
    return ref(word).load(boost::memory_order_relaxed);
  }
  template <class Word>
  static Word load_acquire(Word& word) {
    return ref(word).load(boost::memory_order_acquire);
  }
  // Loads a word that its writer may be storing plainly at this moment, because nobody
  // knows whether the writer is stopped. ThreadSanitizer would report that store.
  __attribute__((no_sanitize("thread"))) static uint32_t load_amid_plain_stores(
      uint32_t& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  }
  template <class Word>
  static void store_relaxed(Word& word, Word value) {
    ref(word).store(value, boost::memory_order_relaxed);
  }
  template <class Word>
  static void store_release(Word& word, Word value) {
    ref(word).store(value, boost::memory_order_release);
  }
  template <class Word>
  static Word fetch_add_relaxed(Word& word, Word value) {
    return ref(word).fetch_add(value, boost::memory_order_relaxed);
  }
  template <class Word>
  static Word fetch_add_acq_rel(Word& word, Word value) {
    return ref(word).fetch_add(value, boost::memory_order_acq_rel);
  }
  template <class Word>
  static Word fetch_or_relaxed(Word& word, Word value) {
    return ref(word).fetch_or(value, boost::memory_order_relaxed);
  }
  template <class Word>
  static Word fetch_and_relaxed(Word& word, Word value) {
    return ref(word).fetch_and(value, boost::memory_order_relaxed);
  }
  template <class Word>
  static Word exchange_acq_rel(Word& word, Word value) {
    return ref(word).exchange(value, boost::memory_order_acq_rel);
  }
  // Adds to a word that only the calling thread writes, outside of its signal handlers,
  // and others read. On x86-64 it is one instruction without a bus lock.
  static void add_to_own_relaxed(uint64_t& word, uint64_t value) {
#if defined(__x86_64__)
    asm volatile("addq %1, %0" : "+m"(word) : "er"(value) : "cc");
#else
    store_relaxed(word, load_relaxed(word) + value);
#endif
  }
  // As add_to_own_relaxed(), for a word that the calling thread's signal handlers write
  // too.
  static void add_amid_signals(uint64_t& word, uint64_t value) {
#if defined(__x86_64__)
    add_to_own_relaxed(word, value);
#else
    fetch_add_relaxed(word, value);
#endif
  }
  // Subtracts from such a word. False: it was less than `value`, and has wrapped.
  static bool subtract_amid_signals(uint32_t& word, uint32_t value) {
#if defined(__x86_64__)
    bool is_less;
    asm volatile("subl %2, %0" : "+m"(word), "=@ccb"(is_less) : "er"(value));
    return !is_less;
#else
    return fetch_add_relaxed(word, 0 - value) >= value;
#endif
  }
  // On failure `expected` holds the word that was found.
  template <class Word>
  static bool compare_exchange_acq_rel(Word& word, Word& expected, Word desired) {
    return ref(word).compare_exchange_strong(
        expected, desired, boost::memory_order_acq_rel, boost::memory_order_acquire);
  }
  // Sets bytes to 0xff. REQUIRES: no other thread accesses them meanwhile.
  static void fill_ones(std::byte* to, size_t size) { arctrace::fill_ones(to, size); }

 private:
  template <class Word>
  static boost::ipc_atomic_ref<Word> ref(Word& word) {
    static_assert(boost::ipc_atomic_ref<Word>::is_always_lock_free);
    return boost::ipc_atomic_ref<Word>(word);
  }
};

}  // namespace arctrace
