// Changes of the open frames that nested calls lose: readers never take a record for one
// about another frame, and know the frames again by the next STACK.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/api/shim_interface.h"
#include "src/writer/writer_call.hpp"
#include "tests/support/child.hpp"
#include "tests/support/full_buffer.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// The records of the first writer about its frames, in the order of time.
std::string frame_records(const DecodedTrace& trace) {
  std::vector<DecodedRecord> records;
  for (const DecodedBlock& block : trace.blocks) {
    for (const DecodedRecord& record : block.records) {
      if (record.writer == 1 && !record.in_progress) records.push_back(record);
    }
  }
  std::stable_sort(
      records.begin(), records.end(),
      [](const DecodedRecord& a, const DecodedRecord& b) { return a.ticks < b.ticks; });
  std::string text;
  for (const DecodedRecord& record : records) {
    switch (record.type) {
      case ARCTRACE_TYPE_STACK:
        text += "[";
        for (uint32_t i = 0; i < record.u32(4); ++i) {
          text += std::to_string(record.u64(8 + 8 * size_t{i}));
        }
        text += "] ";
        break;
      case ARCTRACE_TYPE_ENTER:
        text += "enter" + std::to_string(record.u64(0)) + " ";
        break;
      case ARCTRACE_TYPE_EXIT:
        text += "exit ";
        break;
      case ARCTRACE_TYPE_LOST:
        text += "lost ";
        break;
      default:
        break;
    }
  }
  return text;
}

enum class Lost { kEnter, kExit };

// A signal handler interrupts a writer call inside function 1. It calls function 2, whose
// ENTER or EXIT is lost. Then the collector frees space.
void check_handler(arctrace_scope scope, Lost lost) {
  recorder::BufferOptions options = small_buffer(1024, 24);
  options.scope = scope;
  TestSession test(options);
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_enter(1);
    {
      const writer::WriterCall interrupted;
      if (lost == Lost::kEnter) fill_buffer();
      arctrace_enter(2);
      if (lost == Lost::kExit) fill_buffer();
      if (lost == Lost::kEnter) test.drain().round();
      arctrace_exit(2);
      test.drain().round();
      arctrace_enter(3);
      arctrace_exit(3);
    }
    arctrace_exit(1);
    {
      const writer::WriterCall interrupted;
      arctrace_enter(4);
      arctrace_exit(4);
    }
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(frame_records(trace) == (lost == Lost::kEnter
                                       ? "[] enter1 lost [1] exit enter4 exit "
                                       : "[] enter1 enter2 lost [1] exit enter4 exit "));
  });
}

TEST_CASE("lost change: of a handler, whose other records are lost until a STACK") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    check_handler(scope, Lost::kEnter);
    check_handler(scope, Lost::kExit);
  }
}

TEST_CASE("lost change: a vfork whose beginning is lost ends with a STACK") {
  recorder::BufferOptions options = small_buffer(1024, 24);
  options.scope = ARCTRACE_SCOPE_SHARED;
  TestSession test(options);
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_enter(1);
    fill_buffer();
    arctrace_shim_vfork_begin();
    test.drain().round();
    arctrace_enter(2);  // the child's, which then calls exec
    arctrace_shim_vfork_end(77);
    arctrace_exit(1);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(frame_records(trace) == "[] enter1 lost [1] enter2 [1] exit ");
  });
}

TEST_CASE("lost change: a handler that jumps out leaves the loss to the next call") {
  TestSession test(small_buffer(1024, 24));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_enter(1);
    const uintptr_t here = writer::stack_pointer();
    writer::thread_local_state.stacks.own = {here - 65536, here + 65536};
    writer::thread_local_state.guard = here - 1024;  // of a call that never returned
    ++writer::thread_local_state.nesting;
    fill_buffer();
    writer::thread_local_state.state->loss.stack_differs = true;
    test.drain().round();
    arctrace_exit(1);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(frame_records(trace) == "[] enter1 [1] exit ");
  });
}

}  // namespace
}  // namespace arctrace::testing
