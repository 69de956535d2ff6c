// The calls of a writer that tests interrupt at their single instructions, and in what
// they run.
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

// A function that a program reports itself.
void call_function(uint32_t event, uint64_t number);
// A record that needs another block.
void write_to_new_block(uint32_t event, uint64_t number);

// One of each kind.
std::span<const WriterAction> all_writer_actions();

// Runs `body` in a process of its own that has joined. Where no process may be stepped
// the case is skipped.
void in_session(const BufferOptions& options,
                const std::function<void(TestSession&)>& body);

// That the thread is out of the writer and holds nothing, but for so many places.
void check_at_rest(const TestSession& test, uint64_t held_places = 0);

}  // namespace arctrace::testing
