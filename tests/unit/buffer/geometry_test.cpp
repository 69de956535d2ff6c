// The geometry of a buffer: what is computed from its options, and which headers are
// refused.
#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <string>

#include "src/buffer/buffer_view.hpp"
#include "tests/support/test_session.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {
namespace {

Geometry counts(uint32_t block_size, uint32_t block_count, uint32_t slots = 4,
                uint32_t cpus = 0) {
  Geometry geometry;
  geometry.block_size = block_size;
  geometry.block_count = block_count;
  geometry.slot_count = slots;
  geometry.cpu_count = cpus;
  return geometry;
}

GeometryError error_of(Geometry geometry) { return layout_geometry(geometry); }

GeometryError read(const arctrace_session_header& header, uint64_t available) {
  Geometry out;
  return read_geometry_untrusted(header, ARCTRACE_SESSION_MAGIC, available, out);
}

TEST_CASE("geometry: the one layout of BUF-1") {
  Geometry geometry = counts(1024, 5, 3, 2);
  REQUIRE(layout_geometry(geometry) == GeometryError::kNone);
  CHECK(geometry.slots_offset == 8192 + 2 * 128);
  CHECK(geometry.blocks_offset == 12288);
  CHECK(geometry.total_size == 12288 + 8192);  // 5 KiB of blocks, rounded up

  Geometry exact = counts(4096, 2, 16, 0);  // the slots fill their page
  REQUIRE(layout_geometry(exact) == GeometryError::kNone);
  CHECK(exact.blocks_offset == 8192 + 4096);
  CHECK(exact.total_size == exact.blocks_offset + 8192);
}

TEST_CASE("geometry: the limits of BUF-2, each from both sides") {
  CHECK(error_of(counts(384, 2)) == GeometryError::kNone);
  CHECK(error_of(counts(320, 2)) == GeometryError::kBlockSize);
  CHECK(error_of(counts(400, 2)) == GeometryError::kBlockSize);
  CHECK(error_of(counts(0, 2)) == GeometryError::kBlockSize);
  CHECK(error_of(counts(16u << 20, 2)) == GeometryError::kNone);
  CHECK(error_of(counts((16u << 20) + 64, 2)) == GeometryError::kBlockSize);
  CHECK(error_of(counts(384, 1)) == GeometryError::kBlockCount);
  CHECK(error_of(counts(384, 1u << 24)) == GeometryError::kNone);
  CHECK(error_of(counts(384, (1u << 24) + 1)) == GeometryError::kBlockCount);
  CHECK(error_of(counts(384, 2, 0)) == GeometryError::kSlotCount);
  CHECK(error_of(counts(384, 2, 65535)) == GeometryError::kNone);
  CHECK(error_of(counts(384, 2, 65536)) == GeometryError::kSlotCount);
  CHECK(error_of(counts(384, 2, 1, 4096)) == GeometryError::kNone);
  CHECK(error_of(counts(384, 2, 1, 4097)) == GeometryError::kCpuCount);
  for (const uint32_t wrong : {0u, 4u, UINT32_MAX}) {
    Geometry geometry = counts(384, 2);
    geometry.mode = wrong;
    CHECK(layout_geometry(geometry) == GeometryError::kEnum);
    geometry = counts(384, 2);
    geometry.scope = wrong;
    CHECK(layout_geometry(geometry) == GeometryError::kEnum);
    geometry = counts(384, 2);
    geometry.clock = wrong;
    CHECK(layout_geometry(geometry) == GeometryError::kEnum);
  }
}

TEST_CASE("geometry: a foreign header is refused for what is wrong with it") {
  const arctrace_session_header good = session_header(ARCTRACE_SESSION_MAGIC);
  REQUIRE(read(good, good.total_size) == GeometryError::kNone);
  CHECK(read(good, good.total_size - 1) == GeometryError::kSize);

  const auto with = [&good](auto&& change) {
    arctrace_session_header header = good;
    change(header);
    return read(header, UINT64_MAX);
  };
  CHECK(with([](auto& h) { h.magic = ARCTRACE_FILE_MAGIC; }) == GeometryError::kMagic);
  CHECK(with([](auto& h) { h.byte_order = 0x04030201; }) == GeometryError::kByteOrder);
  CHECK(with([](auto& h) { ++h.version_major; }) == GeometryError::kVersion);
  CHECK(with([](auto& h) { h.features_required = 1; }) == GeometryError::kVersion);
  CHECK(with([](auto& h) { h.version_minor = 9; }) == GeometryError::kNone);
  CHECK(with([](auto& h) { h.features_optional = 1; }) == GeometryError::kNone);
  CHECK(with([](auto& h) { h.header_size += 64; }) == GeometryError::kLayout);
  CHECK(with([](auto& h) { h.slot_size += 64; }) == GeometryError::kLayout);
  CHECK(with([](auto& h) { h.cpu_slot_size += 64; }) == GeometryError::kLayout);
  CHECK(with([](auto& h) { h.block_header_size += 64; }) == GeometryError::kLayout);
  CHECK(with([](auto& h) { h.slots_offset += 64; }) == GeometryError::kLayout);
  CHECK(with([](auto& h) { h.blocks_offset += 4096; }) == GeometryError::kLayout);
  CHECK(with([](auto& h) { h.total_size += 4096; }) == GeometryError::kLayout);
  CHECK(with([](auto& h) { h.total_size = UINT64_MAX; }) == GeometryError::kLayout);
}

TEST_CASE("geometry: no damaged header gives offsets outside the mapping") {
  Random random(test_seed());
  const arctrace_session_header good = session_header(ARCTRACE_SESSION_MAGIC);
  constexpr uint32_t kFirst = offsetof(arctrace_session_header, header_size);
  constexpr uint32_t kEnd = offsetof(arctrace_session_header, creator_pid);
  for (int i = 0; i < 20000; ++i) {
    arctrace_session_header header = good;
    for (uint32_t changes = 1 + random.below(4); changes > 0; --changes) {
      const auto value = static_cast<uint32_t>(random.next() >> random.below(64));
      std::memcpy(reinterpret_cast<std::byte*>(&header) + kFirst +
                      size_t{random.below((kEnd - kFirst) / 4)} * 4,
                  &value, sizeof value);
    }
    Geometry out;
    const uint64_t available = random.next() >> random.below(64);
    if (read_geometry_untrusted(header, ARCTRACE_SESSION_MAGIC, available, out) !=
        GeometryError::kNone) {
      CHECK(out.total_size == 0);  // not changed
      continue;
    }
    CHECK(out.total_size <= available);
    CHECK(out.blocks_offset + uint64_t{out.block_count} * out.block_size <=
          out.total_size);
    CHECK(out.slots_offset + uint64_t{out.slot_count} * ARCTRACE_SLOT_SIZE <=
          out.blocks_offset);
    CHECK(record_length_max(out) <= ARCTRACE_RECORD_LENGTH_MAX);
  }
}

TEST_CASE("geometry: each error has words of its own") {
  std::set<std::string> texts;
  for (int error = 0; error <= static_cast<int>(GeometryError::kSize); ++error) {
    texts.insert(describe(static_cast<GeometryError>(error)));
  }
  CHECK(texts.size() == static_cast<size_t>(GeometryError::kSize) + 1);
}

TEST_CASE("geometry: the longest record fits the block and its 16 bits") {
  CHECK(record_length_max(counts(384, 2)) == 384 - 128);
  CHECK(record_length_max(counts(64u << 10, 2)) == (64u << 10) - 128);
  CHECK(record_length_max(counts(128u << 10, 2)) == ARCTRACE_RECORD_LENGTH_MAX);
}

}  // namespace
}  // namespace arctrace::testing
