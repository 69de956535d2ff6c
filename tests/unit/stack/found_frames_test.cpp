// Frames that were found open when the process was joined: how the thread begins in them,
// and by which facts a call shows that they have ended. The stack is an array of words,
// and an unwinder knows which functions run there.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <vector>

#include "src/api/shim_interface.h"
#include "src/writer/thread_state.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

std::array<uintptr_t, 256> words;

// A function that runs, with its return address in a word.
struct Running {
  uint64_t function;
  uintptr_t code_size;
  size_t word;
  uintptr_t returns_to;
  uint32_t flags;

  uintptr_t cfa() const { return reinterpret_cast<uintptr_t>(&words[word + 1]); }
};
const Running kMain{1000, 100, 200, 900, ARCTRACE_SHIM_CALLED_BY_NAME};
const Running kLoop{2000, 100, 150, 1010, ARCTRACE_SHIM_CALLED_BY_NAME};
const Running kHandler{3000, 100, 100, 2010, 0};       // called through a pointer
const Running kOtherHandler{4000, 100, 100, 2010, 0};  // by the same instruction

std::vector<Running> running;  // outermost first
int unwound = 0;               // frames that the writer has unwound

void begin(const std::vector<Running>& functions) {
  running = functions;
  for (const Running& function : running) words[function.word] = function.returns_to;
}

int find_caller(arctrace_shim_call* frame, uintptr_t, uintptr_t wanted) {
  ++unwound;
  for (size_t i = running.size(); i-- > 0;) {
    const uintptr_t cfa = running[i].cfa();
    if (cfa <= frame->cfa) continue;
    if (wanted != 0 && cfa != wanted) return 0;
    *frame = {cfa, frame->cfa, 0, frame->call_site, running[i].returns_to, 0};
    return 1;
  }
  return 0;
}

uint32_t find_open(const arctrace_shim_call*, int, arctrace_shim_memory* own,
                   const arctrace_shim_memory*, arctrace_shim_see_frame* see,
                   void* context) {
  const auto low = reinterpret_cast<uintptr_t>(words.data());
  *own = {low, low + sizeof words};
  for (size_t i = running.size(); i-- > 0;) {
    const Running& one = running[i];
    const arctrace_shim_open_frame frame{one.function, one.function + one.code_size,
                                         one.cfa(), one.returns_to,
                                         one.flags | ARCTRACE_SHIM_WAS_OPEN};
    see(context, &frame);
  }
  return static_cast<uint32_t>(running.size());
}

constexpr uint64_t kCallee = 77;

// Calls a function with a hook from `site`, and returns.
std::vector<uint64_t> call_from(uintptr_t site, size_t word = 50) {
  words[word] = site;
  const uintptr_t here = reinterpret_cast<uintptr_t>(&words[word]);
  const arctrace_shim_call call{here + sizeof(uintptr_t),  here, 0, site, site,
                                ARCTRACE_SHIM_BEGINS_FRAME};
  arctrace_shim_enter(kCallee, &call);
  std::vector<uint64_t> keys;
  const writer::OpenFrames& open = writer::thread_local_state.state->open;
  for (uint32_t i = 0; i + 1 < open.depth; ++i) keys.push_back(open.frames[i].key);
  CHECK(open.frames[open.depth - 1].key == kCallee);
  CHECK(arctrace_shim_exit(kCallee, here) == 1);
  return keys;
}

void in_joined_session(const std::function<void()>& calls) {
  TestSession test(small_buffer(4096, 4000));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_shim_set_unwinder(find_caller);
    arctrace_shim_set_open_frames(find_open);
    begin({kMain, kLoop, kHandler});
    calls();
  });
}

using Keys = std::vector<uint64_t>;

TEST_CASE("found frames: the thread begins in them, and unwinds for a call site once") {
  in_joined_session([] {
    CHECK(call_from(3010) == Keys{1000, 2000, 3000});
    const int before = unwound;
    for (int i = 0; i < 100; ++i) CHECK(call_from(3010) == Keys{1000, 2000, 3000});
    CHECK(unwound == before);
  });
}

TEST_CASE("found frames: one whose return address has gone was left, and all in it") {
  in_joined_session([] {
    CHECK(call_from(3010) == Keys{1000, 2000, 3000});
    words[kLoop.word] = 1020;  // the same call sites, with another caller
    CHECK(call_from(3010) == Keys{1000});
  });
}

TEST_CASE("found frames: what is called through the same pointer is another function") {
  in_joined_session([] {
    CHECK(call_from(3010) == Keys{1000, 2000, 3000});
    begin({kMain, kLoop, kOtherHandler});
    CHECK(call_from(4010) == Keys{1000, 2000});
    begin({kMain, kLoop, kHandler});
    CHECK(call_from(3010) == Keys{1000, 2000});  // its beginning was not seen
  });
}

TEST_CASE("found frames: a call further out has left them") {
  in_joined_session([] {
    CHECK(call_from(3010) == Keys{1000, 2000, 3000});
    begin({kMain});
    CHECK(call_from(1030, kLoop.word) == Keys{1000});
  });
}

TEST_CASE("found frames: a thread that begins in the session has none") {
  in_joined_session([] {
    const auto low = reinterpret_cast<uintptr_t>(words.data());
    arctrace_shim_thread_start(low, low + sizeof words);
    CHECK(call_from(3010).empty());
  });
}

}  // namespace
}  // namespace arctrace::testing
