#include "tests/stress/cuts.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstring>

#include "src/process/session.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/writer/thread_state.hpp"
#include "tests/support/effort.hpp"

namespace arctrace::testing {

recorder::BufferOptions buffer_with(arctrace_scope scope, uint32_t block_size,
                                    uint32_t blocks) {
  recorder::BufferOptions options = small_buffer(block_size, blocks);
  options.scope = scope;
  return options;
}

void prepare_own_blocks() {
  writer::ThreadState& state = *writer::thread_local_state.state;
  REQUIRE_FALSE(state.has_own_blocks);
  state.chain.take_grant_back();
  state.chain.budget = 0;
  state.chain.since_ticks = writer::session_ticks();
  writer::session.ticks_per_second =
      UINT64_MAX / 20;  // however slowly the thread is stepped
}

void prepare_chain() {
  prepare_own_blocks();
  arctrace_instant(1);
  writer::ThreadState& state = *writer::thread_local_state.state;
  REQUIRE(state.has_own_blocks);
  writer::session.ticks_per_second = 1;
  state.block.base_ticks -= uint64_t{1} << 33;
}

std::vector<uint64_t> cuts(uint64_t count, uint64_t most) {
  const uint64_t wanted = tries(most);
  const uint64_t stride = is_long() || count <= wanted ? 1 : count / wanted;
  Random random(test_seed());
  std::vector<uint64_t> cuts;
  for (uint64_t at = random.next() % stride; at < count; at += stride) {
    cuts.push_back(at);
  }
  return cuts;
}

void write_checked(uint32_t event, uint64_t number) {
  const Checked payload = checked(number);
  arctrace_write(event, &payload, sizeof payload);
}

void reserve_checked(uint32_t event, uint64_t number) {
  void* payload_at = arctrace_reserve(event, sizeof(Checked));
  const Checked payload = checked(number);
  if (payload_at != nullptr) std::memcpy(payload_at, &payload, sizeof payload);
  arctrace_commit(payload_at);
}

std::set<uint64_t> numbers_of(const DecodedTrace& trace, uint32_t event) {
  std::set<uint64_t> numbers;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_EVENT)) {
    if (record.u32(0) != event) continue;
    REQUIRE(record.body.size() == 4 + sizeof(Checked));
    REQUIRE(record.u64(12) == checked(record.u64(4)).squared);
    REQUIRE(numbers.insert(record.u64(4)).second);
  }
  return numbers;
}

std::set<uint64_t> all_below(uint64_t count) {
  std::set<uint64_t> numbers;
  for (uint64_t n = 0; n < count; ++n) numbers.insert(n);
  return numbers;
}

uint64_t lost_so_far(const TestSession& test) {
  uint64_t sum = 0;
  const auto losses = recorder::session_losses(test.view());
  for (size_t cause = 0; cause < losses.size(); ++cause) {
    if (cause != ARCTRACE_LOST_DEFINITIONS) sum += losses[cause];
  }
  return sum;
}

uint64_t& shared_word() {
  static void* const shared =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  return *static_cast<uint64_t*>(shared);
}

}  // namespace arctrace::testing
