// The floor that every cost is compared with: one clock read and the plain stores of a
// record of the same size, into memory that has been touched before.
#pragma once

#include <arctrace/format.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/buffer/clock.hpp"

namespace arctrace::bench {

// Fixed at compile time, so that the floor has no branch; a session with another clock is
// refused (live_session.cpp).
#if defined(__x86_64__)
inline constexpr uint32_t kFloorClock = ARCTRACE_CLOCK_TSC;
#else
inline constexpr uint32_t kFloorClock = ARCTRACE_CLOCK_CNTVCT;
#endif

// As large as the default buffer, because a record's cost depends on the cache that its
// place is in.
class FloorRing {
 public:
  FloorRing() {
    void* base = mmap(nullptr, kSize + kSlack, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base == MAP_FAILED) {
      std::perror("mmap");
      std::exit(1);
    }
    base_ = static_cast<std::byte*>(base);
    std::memset(base_, 0xFF, kSize + kSlack);
  }
  FloorRing(const FloorRing&) = delete;
  FloorRing& operator=(const FloorRing&) = delete;
  ~FloorRing() { munmap(base_, kSize + kSlack); }

  // A record of kBytes (8, 16, 20 or 24) with its length, the time and `payload`.
  template <uint32_t kBytes>
  void store(uint64_t payload) {
    static_assert(kBytes == 8 || kBytes == 16 || kBytes == 20 || kBytes == 24);
    std::byte* place = base_ + (position_ & (kSize - 1));
    position_ += kBytes;
    const uint64_t ticks = read_ticks(kFloorClock);
    store_word(place, uint32_t{kBytes});
    if constexpr (kBytes == 8) {
      store_word(place + 4, static_cast<uint32_t>(ticks));
    } else if constexpr (kBytes == 16) {
      store_word(place + 4, static_cast<uint32_t>(payload));
      store_word(place + 8, ticks);
    } else if constexpr (kBytes == 20) {
      store_word(place + 4, ticks);
      store_word(place + 12, payload);
    } else {
      store_word(place + 4, uint32_t{1});
      store_word(place + 8, ticks);
      store_word(place + 16, payload);
    }
  }

 private:
  static constexpr size_t kSize = size_t{64} << 20;
  static constexpr size_t kSlack = 4096;  // the last record may pass the end

  template <class Word>
  static void store_word(std::byte* to, Word value) {
    std::memcpy(to, &value, sizeof value);
  }

  std::byte* base_;
  uint64_t position_ = 0;
};

}  // namespace arctrace::bench
