// Stands in for libarctrace.so under the parts of the shim that are tested alone: notes
// what they report to the writer, and answers as the test wants.
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
  // The live filter as the control page has it, and whether it is being changed.
  std::string live_filter;
  uint32_t live_round = 0;
  bool is_changing = false;
  // What was followed last.
  uint32_t followed_round = 0;
  int filter_in_only = -1;
};

// The one that the functions below speak to.
FakeWriter& fake_writer();

// Sets the text of the live filter, marks and zeros included, and its next round.
void set_live_filter(const std::string& text);

}  // namespace arctrace::shim
