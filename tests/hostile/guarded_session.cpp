#include "tests/hostile/guarded_session.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/mman.h>

#include "src/buffer/clock.hpp"
#include "src/process/gate.hpp"
#include "src/process/session.hpp"
#include "src/protocol/live_filter.hpp"

namespace arctrace::testing {

void join_guarded(const std::string& path) {
  // Larger than what any 32-bit index of a block or slot could lead astray by one block
  // or slot, and small enough for the address space.
  constexpr size_t kGuard = size_t{64} << 20;
  REQUIRE(writer::join_session(path.c_str()) == 0);
  const Geometry geometry = writer::session.view.geometry();
  const size_t size = geometry.total_size;
  void* const region = mmap(nullptr, size + 2 * kGuard, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(region != MAP_FAILED);
  std::byte* const middle = static_cast<std::byte*>(region) + kGuard;
  REQUIRE(mremap(writer::session.view.base(), size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
                 middle) == middle);
  writer::session.view = BufferView(middle, geometry);
  writer::open_gate(writer::session.view, writer::session.clock, false);
}

}  // namespace arctrace::testing
