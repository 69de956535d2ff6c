// Stands in for libarctrace.so under the parts of the shim that are tested alone: notes
// what they tell the writer, and answers as the test wants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/api/shim_interface.h"

namespace arctrace::shim {

struct FakeWriter {
  uint64_t patterns_matched = 0;
  const arctrace_shim_call_args* arg_specs = nullptr;  // the table
  std::vector<std::string> names;                      // name ids from 1
  // The live filter in the control page, and its generation, odd while it is being
  // changed.
  std::string live_filter;
  uint32_t live_generation = 0;
  bool is_changing = false;
  // The generation that the shim has applied last.
  uint32_t followed_generation = 0;
  int filter_in_only = -1;
};

// The writer that the shim's functions call.
FakeWriter& fake_writer();

// Sets the text of the live filter, marks and zeros included, and its next generation.
void set_live_filter(const std::string& text);

}  // namespace arctrace::shim
