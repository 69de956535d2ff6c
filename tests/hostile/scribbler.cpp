#include "tests/hostile/scribbler.hpp"

#include <arctrace/format.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

class Scribbler {
 public:
  Scribbler(const std::string& path, uint64_t seed) : random_(seed) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE(pread(fd, &header_, sizeof header_, 0) == sizeof header_);
    REQUIRE(read_geometry_untrusted(header_, ARCTRACE_SESSION_MAGIC, UINT64_MAX,
                                    geometry_) == GeometryError::kNone);
    void* const base =
        mmap(nullptr, geometry_.total_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(base != MAP_FAILED);
    close(fd);
    base_ = static_cast<std::byte*>(base);
  }
  Scribbler(const Scribbler&) = delete;
  Scribbler& operator=(const Scribbler&) = delete;
  ~Scribbler() { munmap(base_, geometry_.total_size); }

  // Scribbles some words; returns how many.
  uint64_t burst() {
    const uint64_t before = words_;
    const uint32_t times = 1 + random_.below(200);
    for (uint32_t i = 0; i < times; ++i) {
      if (random_.below(8) == 0) {
        repair();
      } else {
        damage();
      }
    }
    return words_ - before;
  }
  // Lets the other processes run.
  void pause() {
    if (random_.below(4) != 0) usleep(random_.below(400));
  }

 private:
  uint64_t block_at(uint32_t index) const {
    return geometry_.blocks_offset + uint64_t{index} * geometry_.block_size;
  }
  uint32_t any_block() { return random_.below(geometry_.block_count); }
  uint32_t word_below(uint64_t size) {
    return static_cast<uint32_t>(random_.next() % (size / 4) * 4);
  }

  // The offset of a word, more often where there is much to break.
  uint64_t place() {
    switch (random_.below(10)) {
      case 0:
        return word_below(sizeof(arctrace_session_header));
      case 1:
      case 2:
        return ARCTRACE_CONTROL_OFFSET + word_below(sizeof(arctrace_control));
      case 3:
      case 4:
        return geometry_.slots_offset +
               word_below(uint64_t{geometry_.slot_count} * ARCTRACE_SLOT_SIZE);
      case 5:
      case 6:
      case 7:
        return block_at(any_block()) + word_below(ARCTRACE_BLOCK_HEADER_SIZE);
      default:
        return word_below(geometry_.total_size);
    }
  }

  uint32_t value(uint64_t at) {
    switch (random_.below(9)) {
      case 0:
        return 0;
      case 1:
        return UINT32_MAX;
      case 2:
        return load(at) ^ 1u << random_.below(32);
      case 3:
        return load(place());
      case 4:
        return random_.below(64);
      case 5:
        return any_block() + 1;
      case 6:
        return random_.below(geometry_.slot_count) << 16 | (1 + random_.below(6));
      case 7:
        return ARCTRACE_WORD0(random_.below(40), random_.below(0x10000)) |
               random_.below(2) << 31;
      default:
        return static_cast<uint32_t>(random_.next());
    }
  }

  void damage() {
    uint64_t at = place();
    const uint32_t run = random_.below(16) == 0 ? 1 + random_.below(64) : 1;
    for (uint32_t i = 0; i < run && at < geometry_.total_size; ++i, at += 4) {
      store(at, value(at));
    }
  }

  void repair() {
    switch (random_.below(4)) {
      case 0:
        copy(0, &header_, sizeof header_);
        break;
      case 1:
        store(ARCTRACE_CONTROL_OFFSET + offsetof(arctrace_control, gate),
              ARCTRACE_GATE_ALL);
        break;
      case 2:
        store(geometry_.slots_offset +
                  uint64_t{random_.below(geometry_.slot_count)} * ARCTRACE_SLOT_SIZE,
              0);
        break;
      default:
        free_block(block_at(any_block()));
        break;
    }
  }

  void free_block(uint64_t at) {
    const uint64_t head[2] = {
        BlockState{static_cast<uint32_t>(random_.next()), 0, ARCTRACE_PHASE_FREE}.pack(),
        geometry_.block_size};
    std::memset(base_ + at + sizeof head, 0xFF, geometry_.block_size - sizeof head);
    copy(at, head, sizeof head);
  }

  uint32_t load(uint64_t at) const {
    return *reinterpret_cast<volatile uint32_t*>(base_ + at);
  }
  void store(uint64_t at, uint32_t value) {
    *reinterpret_cast<volatile uint32_t*>(base_ + at) = value;
    ++words_;
  }
  void copy(uint64_t at, const void* from, size_t size) {
    std::memcpy(base_ + at, from, size);
    words_ += size / 4;
  }

  Random random_;
  arctrace_session_header header_{};
  Geometry geometry_;
  std::byte* base_ = nullptr;
  uint64_t words_ = 0;
};

}  // namespace

void scribble(const std::string& path, uint64_t seed, Stage& stage) {
  Scribbler scribbler(path, seed);
  stage.begun = true;
  while (!stage.ended) {
    stage.scribbled += scribbler.burst();
    scribbler.pause();
  }
}

}  // namespace arctrace::testing
