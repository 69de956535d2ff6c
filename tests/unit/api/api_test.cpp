// The public functions: state that they must not change, the bodies that they write, and
// what they count as lost.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "src/writer/record.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// Calls every function of arctrace.h that writes, defines or reads.
void call_everything() {
  const uint32_t name = arctrace_define_name("name");
  const arctrace_field field{"field", ARCTRACE_FIELD_U32};
  const uint32_t event = arctrace_define_event("event", 1, &field, 1);
  arctrace_thread_name("thread");
  arctrace_enter(1);
  arctrace_enter_at(2, 3);
  arctrace_exit(2);
  arctrace_exit(7);
  arctrace_write(event, &event, sizeof event);
  arctrace_write(event, &event, SIZE_MAX);
  arctrace_commit(arctrace_reserve(event, 4));
  arctrace_discard(arctrace_reserve(event, 4));
  arctrace_instant(name);
  arctrace_counter(name, -1);
  arctrace_text("%s %d", "text", 5);
  arctrace_mark("mark");
  arctrace_lost(nullptr);
  arctrace_flush();
}

TEST_CASE("api: errno is left alone, with and without a session, with and without room") {
  for (const uint32_t blocks : {1000u, 2u}) {
    TestSession test(small_buffer(384, blocks));
    CHECK_CHILD([&] {
      errno = 4321;
      call_everything();
      CHECK(errno == 4321);
      CHECK(arctrace_attach("/nowhere") == -ENOENT);
      CHECK(errno == 4321);
      CHECK(arctrace_attach(test.path().c_str()) == 0);
      CHECK(errno == 4321);
      for (int i = 0; i < 100; ++i) call_everything();
      CHECK(errno == 4321);
      const int pid = fork();
      errno = 4321;
      for (int i = 0; i < 10; ++i) call_everything();
      const bool kept = errno == 4321;
      if (pid == 0) _exit(kept ? 0 : 1);
      CHECK(kept);
      CHECK(wait_for_child(pid) == "");
      arctrace_detach();
    });
  }
}

TEST_CASE("api: the bodies of marks, texts, instants and counters") {
  TestSession test(small_buffer(4096, 64));
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_instant(7);
    arctrace_counter(8, kLowest);
    arctrace_counter(9, -1);
    for (const char* text : {"", "a", "abc", "abcd", "abcde"}) {
      arctrace_text("%s", text);
      arctrace_mark(text);
    }
    const std::string longer(2000, 'x');
    arctrace_text("%s", longer.c_str());
    arctrace_mark(longer.c_str());
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_INSTANT).at(0).u32(0) == 7);
  const std::vector<DecodedRecord> counters = trace.of_type(ARCTRACE_TYPE_COUNTER);
  REQUIRE(counters.size() == 2);
  CHECK(counters[0].u32(0) == 8);
  CHECK(static_cast<int64_t>(counters[0].u64(4)) == kLowest);
  CHECK(static_cast<int64_t>(counters[1].u64(4)) == -1);
  for (const uint16_t type : {ARCTRACE_TYPE_TEXT, ARCTRACE_TYPE_MARK}) {
    const std::vector<DecodedRecord> texts = trace.of_type(type);
    REQUIRE(texts.size() == 6);
    for (uint32_t n : {0u, 1u, 3u, 4u, 5u}) {
      const DecodedRecord& text = texts[n < 2 ? n : n - 1];
      CHECK(text.u32(0) == n);
      CHECK(text.body.size() == 4 + (n + 3) / 4 * 4);
      CHECK(text.text(4, 8) ==
            std::string("abcde", n) + std::string((4 - n % 4) % 4, '\0'));
    }
    CHECK(texts[5].u32(0) == (type == ARCTRACE_TYPE_TEXT ? 1023 : 1024));
    CHECK(texts[5].text(4, 1023) == std::string(1023, 'x'));
  }
}

// The last word of a block's last record may be 0xffffffff, as after the last record.
TEST_CASE("api: a record that ends in 0xffffffff is whole in the file") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    recorder::BufferOptions options = small_buffer(4096, 16);
    options.scope = scope;
    TestSession test(options);
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      for (int i = 0; i < 3; ++i) {
        arctrace_counter(1, -1);
        arctrace_flush();
      }
      const uint32_t ones[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
      arctrace_write(5, ones, sizeof ones);
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.of_type(ARCTRACE_TYPE_COUNTER).size() == 3);
    CHECK(trace.of_type(ARCTRACE_TYPE_EVENT).size() == 1);
    CHECK(test.drain().totals().records == 4);
  }
}

TEST_CASE("api: what a thread lost is its own, by cause") {
  TestSession test(small_buffer(384, 400));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    const std::byte big[1000] = {};
    for (int i = 0; i < 3; ++i) arctrace_write(1, big, sizeof big);
    uint64_t lost[ARCTRACE_LOST_CAUSES] = {};
    CHECK(arctrace_lost(lost) == 3);
    CHECK(lost[ARCTRACE_LOST_TOO_BIG] == 3);
    CHECK(lost[ARCTRACE_LOST_FULL] == 0);
    CHECK_CHILD([&] {
      CHECK(arctrace_lost(nullptr) == 0);
      arctrace_write(1, big, sizeof big);
      CHECK(arctrace_lost(nullptr) == 1);
    });
    CHECK(arctrace_lost(nullptr) == 3);
  });
}

}  // namespace
}  // namespace arctrace::testing
