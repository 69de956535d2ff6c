// Functions for tests that cut a writer's calls at single instructions.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "tests/support/test_session.hpp"

namespace arctrace::testing {

constexpr arctrace_scope kScopes[] = {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED};

// In the adaptive scope, prepares the calling thread so that its next record is in the
// chain and gives it blocks of its own, or so that it returns to the chain after it had
// some. The thread must have written a record.
void prepare_own_blocks();
void prepare_chain();

recorder::BufferOptions buffer_with(arctrace_scope scope, uint32_t block_size,
                                    uint32_t blocks);

// Where to cut a call of `count` instructions: after every one, or if that is more than
// `most`, after about that many, evenly spread from a random first one on; in the gate at
// fewer (tests/support/effort.hpp), in the long form after every one.
std::vector<uint64_t> cuts(uint64_t count, uint64_t most);

// A payload in which damage shows.
struct Checked {
  uint64_t number;
  uint64_t squared;
};
inline Checked checked(uint64_t number) { return {number, number * number + 1}; }

// One event with a checked payload, written, or reserved in place and committed.
void write_checked(uint32_t event, uint64_t number);
void reserve_checked(uint32_t event, uint64_t number);

// The numbers of an event: all undamaged, none twice.
std::set<uint64_t> numbers_of(const DecodedTrace& trace, uint32_t event);

// 0 to count - 1.
std::set<uint64_t> all_below(uint64_t count);

// How many records the session has lost, by its own count.
uint64_t lost_so_far(const TestSession& test);

// A 64-bit word that children share with the process that called this before it forked
// them.
uint64_t& shared_word();

}  // namespace arctrace::testing
