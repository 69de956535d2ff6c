// Which bodies of records the validator accepts.
#include <doctest/doctest.h>

#include <vector>

#include "reader/trace/record_types.hpp"
#include "reader/trace/shared_block.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::reader {
namespace {

using testing::Bytes;

struct Sample {
  uint16_t type;
  Bytes body;  // the shortest one of its kind
};

std::vector<Sample> samples() {
  using namespace testing;  // NOLINT: all of the builder
  return {
      {ARCTRACE_TYPE_TIME, Bytes().u64(1)},
      {ARCTRACE_TYPE_STACK, stack_body({1, 2, 3}, 9)},
      {ARCTRACE_TYPE_COROUTINE, Bytes().u32(4).u32(9).u32(1).u64(1)},
      {ARCTRACE_TYPE_LOST, lost_body(ARCTRACE_LOST_FULL, 1, 2)},
      {ARCTRACE_TYPE_ENTER, key_body(1)},
      {ARCTRACE_TYPE_EXIT_NAMED, key_body(1)},
      {ARCTRACE_TYPE_UNWIND, Bytes().u32(1)},
      {ARCTRACE_TYPE_VFORK_END, Bytes().u32(1)},
      {ARCTRACE_TYPE_ARGUMENTS,
       args_body({{ARCTRACE_VALUE_STRING, 1, "/etc/passwd"},
                  number_arg(ARCTRACE_VALUE_OPEN_FLAGS, 2, 0, 4)})},
      {ARCTRACE_TYPE_RESULT, args_body({number_arg(ARCTRACE_VALUE_SIGNED, 0, 3, 8)})},
      {ARCTRACE_TYPE_EVENT, event_body(1)},
      {ARCTRACE_TYPE_INSTANT, Bytes().u32(1)},
      {ARCTRACE_TYPE_COUNTER, counter_body(1, -1)},
      {ARCTRACE_TYPE_TEXT, text_body("hello")},
      {ARCTRACE_TYPE_MARK, text_body("marked")},
      {ARCTRACE_TYPE_PROCESS, process_body({})},
      {ARCTRACE_TYPE_THREAD, thread_body(1, 2, 3, "name")},
      {ARCTRACE_TYPE_MODULE, module_body(1, 2, 3, 4, "/lib/a.so", "12345")},
      {ARCTRACE_TYPE_MODULE_GONE, module_gone_body(1, 2)},
      {ARCTRACE_TYPE_STRING, string_body(1, 2, "text")},
      {ARCTRACE_TYPE_EVENT_LAYOUT,
       layout_body(1, 2, "event", {{ARCTRACE_FIELD_U8, "a"}, {ARCTRACE_FIELD_F64, "b"}})},
      {ARCTRACE_TYPE_PROCESS_END, process_end_body(1, 2, 3)},
      {ARCTRACE_TYPE_PID_NAMESPACE, pair_body(1, 2)},
      {ARCTRACE_TYPE_JITDUMP, jitdump_body(1, "/tmp/jit-1.dump")},
      {ARCTRACE_TYPE_UNTRACED, untraced_body(1, ARCTRACE_UNTRACED_SETUID, "/bin/su")},
      {ARCTRACE_TYPE_INHERITED, Bytes().u32(1).u32(2).u32(1).u64(0x1000)},
      {ARCTRACE_TYPE_HOOKED, Bytes().u32(1).u32(6).u32(0).u64(0x1000)},
      {ARCTRACE_TYPE_PATCHES, Bytes().u32(1).u32(7).u32(3).u32(1).u32(0).u64(0x1000)},
      {ARCTRACE_TYPE_CODE, code_body(1, 2, 3, 4, "name")},
      {ARCTRACE_TYPE_CODE_FILE, code_file_body(1, 2, 3, 4, 5, "/tmp/jit-1.dump")},
      {ARCTRACE_TYPE_SYSTEM, system_body("host", "6.1", "arctrace record")},
      {ARCTRACE_TYPE_CLOCK_SYNC, clock_sync_body(1, 2, 3)},
      {ARCTRACE_TYPE_WRITER_END, pair_body(1, 2)},
      {ARCTRACE_TYPE_SESSION, pair_body(1, 2)},
      {ARCTRACE_TYPE_CHILD_STATUS, pair_body(1, 2)},
  };
}

TEST_CASE("a body is one of its type until a word is missing") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.type);
    const auto& bytes = sample.body.data();
    const char* problem = body_problem_untrusted(sample.type, bytes);
    CHECK_MESSAGE(problem == nullptr, problem);
    for (size_t size = 0; size < bytes.size(); size += 4) {
      CHECK(body_problem_untrusted(sample.type, std::span(bytes).first(size)) != nullptr);
    }
    Bytes longer = sample.body;  // a newer minor version may add fields
    CHECK(body_problem_untrusted(sample.type, longer.u32(0).data()) == nullptr);
  }
}

TEST_CASE("counts and sizes that a body cannot hold") {
  const auto wrong = [](uint16_t type, const Bytes& body) {
    return body_problem_untrusted(type, body.data()) != nullptr;
  };
  CHECK(wrong(ARCTRACE_TYPE_STACK, testing::stack_body({1, 2}, 1)));
  CHECK(wrong(ARCTRACE_TYPE_STACK, Bytes().u32(UINT32_MAX).u32(UINT32_MAX).u64(0)));
  CHECK(wrong(ARCTRACE_TYPE_COROUTINE, Bytes().u32(4).u32(1).u32(2).u64(1).u64(2)));
  CHECK(wrong(ARCTRACE_TYPE_COROUTINE, Bytes().u32(4).u32(2).u32(2).u64(1)));
  CHECK(wrong(ARCTRACE_TYPE_INHERITED, Bytes().u32(1).u32(1).u32(2).u64(1).u64(2)));
  CHECK(wrong(ARCTRACE_TYPE_INHERITED, Bytes().u32(1).u32(2).u32(2).u64(1)));
  CHECK(wrong(ARCTRACE_TYPE_PATCHES,
              Bytes().u32(1).u32(7).u32(1).u32(2).u32(0).u64(0x1000).u64(0x2000)));
  CHECK(wrong(ARCTRACE_TYPE_TEXT, Bytes().u32(UINT32_MAX).u32(0)));
  CHECK(wrong(ARCTRACE_TYPE_LOST, testing::lost_body(ARCTRACE_LOST_CAUSES, 1, 1)));
  CHECK(wrong(ARCTRACE_TYPE_EVENT_LAYOUT, testing::layout_body(1, 2, "e", {{0, "f"}})));
  CHECK(wrong(ARCTRACE_TYPE_EVENT_LAYOUT, testing::layout_body(1, 2, "e", {{14, "f"}})));
  CHECK(wrong(ARCTRACE_TYPE_EVENT_LAYOUT,
              Bytes().u32(1).u32(2).u32(0).u32(UINT32_MAX).u32(0)));
}

TEST_CASE("any body does for PAD, EXIT and unknown types") {
  for (const uint16_t type :
       std::initializer_list<uint16_t>{1, 6, 14, 31, 63, 95, 127, 0x7FFF}) {
    CHECK(body_problem_untrusted(type, {}) == nullptr);
  }
}

TEST_CASE("every type that has a name demands its fixed part") {
  for (uint16_t type = 1; type < kKnownTypes; ++type) {
    const BodyLayout* layout = body_layout(type);
    CHECK((layout == nullptr) == type_name(type).empty());
    if (layout == nullptr || layout->size() == 0) continue;
    CAPTURE(type);
    const std::vector<std::byte> zeros(layout->size());
    CHECK(body_problem_untrusted(type, zeros) == nullptr);
    CHECK(body_problem_untrusted(type, std::span(zeros).first(zeros.size() - 4)) !=
          nullptr);
  }
}

}  // namespace
}  // namespace arctrace::reader
