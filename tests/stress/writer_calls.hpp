// Calls of a writer that tests interrupt at single instructions, and functions that run
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tests/support/test_session.hpp"

namespace arctrace::testing {

// A call of the API, and how many records it attempts.
struct WriterAction {
  std::string name;
  uint32_t records;
  void (*run)(uint32_t event, uint64_t number);
};

// Records a call of a function by the API.
void call_function(uint32_t event, uint64_t number);
// Writes a record that needs another block.
void write_to_new_block(uint32_t event, uint64_t number);

// One action of each kind.
std::span<const WriterAction> all_writer_actions();

// Runs `body` in a process of its own that has joined. The case is skipped where no
// process may be stepped.
void in_session(const recorder::BufferOptions& options,
                const std::function<void(TestSession&)>& body);

// Checks that the thread is not in the writer and has named and reserved nothing, except
// for so many records reserved in place.
void check_at_rest(const TestSession& test, uint64_t places_in_use = 0);

}  // namespace arctrace::testing
