// Side effects of a change of what is recorded.
#include "src/recorder/buffer/recording_control.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "src/base/shared_atomics.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// Each entry ends with a zero byte.
const std::string kEvents("event:my_*", sizeof "event:my_*");
const std::string kFunctions("-my_*", sizeof "-my_*");

// Whether `change` wakes the collector.
bool wakes(const BufferView& view, const std::function<void()>& change) {
  IpcAtomics::store_relaxed(view.control().wake, uint32_t{0});
  change();
  return IpcAtomics::load_relaxed(view.control().wake) == 1;
}

// The collector must save the text of a filter before another one replaces it.
TEST_CASE("control: each change of what is recorded has the collector look at once") {
  absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::create(small_buffer(1024, 8));
  REQUIRE(buffer.ok());
  const BufferView& view = buffer->view();
  CHECK(wakes(view, [&] { recorder::set_gate(view, ARCTRACE_GATE_ALL); }));
  CHECK(wakes(view, [&] { recorder::set_gate(view, ARCTRACE_GATE_FUNCTIONS); }));
  CHECK(wakes(view, [&] { CHECK(recorder::set_record_filter(view, kEvents).ok()); }));
  CHECK(
      wakes(view, [&] { CHECK(recorder::publish_live_filter(view, kFunctions).ok()); }));
  CHECK(wakes(view, [&] { CHECK(recorder::publish_live_filter(view, "").ok()); }));
  CHECK(wakes(view, [&] { recorder::set_gate(view, 0); }));
}

// With the gate closed a filter could exclude nothing.
TEST_CASE("control: what changes nothing of what is recorded has nobody look") {
  absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::create(small_buffer(1024, 8));
  REQUIRE(buffer.ok());
  const BufferView& view = buffer->view();
  CHECK_FALSE(
      wakes(view, [&] { CHECK(recorder::set_record_filter(view, kEvents).ok()); }));
  CHECK_FALSE(wakes(view, [&] { recorder::close_gate(view); }));
}

}  // namespace
}  // namespace arctrace::testing
