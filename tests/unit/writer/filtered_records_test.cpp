// Records that the record filter excludes are counted (SPEC.md FLT-2).
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <thread>

#include "src/recorder/buffer/recording_control.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// A filter with these entries, each of which a zero byte ends.
std::string filter_of(std::initializer_list<const char*> entries) {
  std::string text;
  for (const char* entry : entries) (text += entry) += '\0';
  return text;
}

TEST_CASE(
    "filtered: events, instants and counters are counted, those of threads are not") {
  TestSession test(small_buffer(4096, 16));
  REQUIRE(recorder::set_record_filter(test.view(), filter_of({"not:no*", "notmark:no*"}))
              .ok());
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    const uint32_t event = arctrace_define_event("nothing", 0, nullptr, 0);
    const uint32_t kept = arctrace_define_event("something", 0, nullptr, 0);
    const uint32_t name = arctrace_define_name("nowhere");
    // A thread that has written nothing has no slot.
    std::thread([event] { arctrace_write(event, nullptr, 0); }).join();
    CHECK(test.view().control().filtered_out == 1);
    arctrace_write(kept, nullptr, 0);
    arctrace_write(event, nullptr, 0);
    CHECK(arctrace_reserve(event, 4) == nullptr);
    arctrace_instant(name);
    arctrace_counter(name, 1);
    arctrace_text("text");
    CHECK(test.view().slot(0).filtered_out == 4);
    REQUIRE(recorder::set_record_filter(test.view(), filter_of({"tid:1"})).ok());
    arctrace_write(kept, nullptr, 0);
    arctrace_instant(name);
    CHECK(test.view().slot(0).filtered_out == 4);
  });
  CHECK(recorder::session_filtered_out(test.view()) == 5);
  CHECK(test.finish().of_type(ARCTRACE_TYPE_EVENT).size() == 1);
}

TEST_CASE("filtered: a slot passes its count on before that is full") {
  constexpr uint64_t kPassedOn = uint64_t{1} << 31;
  TestSession test(small_buffer(4096, 16));
  REQUIRE(recorder::set_record_filter(test.view(), filter_of({"not:no"})).ok());
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    const uint32_t event = arctrace_define_event("no", 0, nullptr, 0);
    arctrace_write(arctrace_define_event("yes", 0, nullptr, 0), nullptr, 0);
    test.view().slot(0).filtered_out = kPassedOn - 2;
    for (int i = 0; i < 5; ++i) arctrace_write(event, nullptr, 0);
    CHECK(test.view().slot(0).filtered_out == 3);
    CHECK(test.view().control().filtered_out == kPassedOn);
  });
  CHECK(recorder::session_filtered_out(test.view()) == kPassedOn + 3);
}

}  // namespace
}  // namespace arctrace::testing
