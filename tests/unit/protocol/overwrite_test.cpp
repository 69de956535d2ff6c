// How new blocks replace old ones in overwrite mode, alone, against others, and when a
// writer dies in between.
#include "src/protocol/overwrite.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "src/protocol/handout.hpp"
#include "src/protocol/shared_chain.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"
#include "tests/unit/protocol/spy_atomics.hpp"

namespace arctrace::testing {
namespace {

using Plain = Handout<IpcAtomics>;
using Spied = Handout<SpyAtomics>;

recorder::BufferOptions ring(uint32_t blocks, uint32_t slots = 4) {
  recorder::BufferOptions options = small_buffer(384, blocks, slots);
  options.mode = ARCTRACE_MODE_OVERWRITE;
  return options;
}

BlockState state_in(const TestSession& session, uint32_t index) {
  return Recycle<IpcAtomics>::state(session.view(), index);
}

// A living writer in slot `slot`, and the blocks that it writes.
struct Writer {
  Writer(const BufferView& on, uint32_t number) : view(on), slot(number) {
    arctrace_writer_slot& own = view.slot(slot);
    view.control().slot_next = std::max(view.control().slot_next, slot + 1);
    own.lock = own.tid = 100 + slot;
    own.writer = slot + 1;
    own.process = 10 + slot;
  }
  void die() const { view.slot(slot).lock |= kOwnerDied; }

  BlockIdentity identity(arctrace_block_form form, arctrace_block_class what) const {
    const arctrace_writer_slot& own = view.slot(slot);
    return {form, what, own.writer, own.process, 1, own.tid, serial, 0};
  }
  // Takes and opens a block; empty if there is none.
  std::optional<Plain::Taken> open() {
    const auto got = Plain::take(view, slot, view.slot(slot).current);
    if (!got) return got;
    Plain::open(view, *got, identity(ARCTRACE_FORM_COMPACT, ARCTRACE_CLASS_DATA));
    ++serial;
    return got;
  }
  uint32_t write_block() {
    const auto got = open();
    REQUIRE(got);
    Plain::close(view, *got);
    return got->index;
  }
  // Opens a block of full form with one record, which stays SHARED.
  SharedReservation share(arctrace_block_class what, uint64_t& chain) {
    const SharedReservation got = SharedChain<IpcAtomics>::reserve(
        view, slot, 0, chain, 100, identity(ARCTRACE_FORM_FULL, what));
    SharedChain<IpcAtomics>::release(view.slot(slot).active[0]);
    return got;
  }

  BufferView view;
  uint32_t slot;
  uint64_t serial = 0;
};

TEST_CASE("overwrite: round and round, the oldest closed block first, as new") {
  TestSession session(ring(4));
  Writer writer(session.view(), 0);
  for (uint32_t i = 0; i < 23; ++i) {
    const auto got = writer.open();
    REQUIRE(got);
    CHECK(got->index == i % 4);
    CHECK(got->handout == i);
    CHECK(state_in(session, got->index).generation == i / 4);
    CHECK(state_in(session, got->index).phase == ARCTRACE_PHASE_OWNED);
    const std::byte* block = session.view().block(got->index);
    CHECK(std::all_of(block + 128, block + 384,
                      [](std::byte b) { return b == std::byte{0xFF}; }));
    CHECK(session.view().block_header(got->index).next == 384);
    std::fill(session.view().block(got->index) + 128,
              session.view().block(got->index) + 384, std::byte{0x11});
    Plain::close(session.view(), *got);
  }
}

TEST_CASE("overwrite: other modes never do it") {
  for (const arctrace_mode mode : {ARCTRACE_MODE_DROP, ARCTRACE_MODE_STOP}) {
    recorder::BufferOptions options = ring(3);
    options.mode = mode;
    TestSession session(options);
    Writer writer(session.view(), 0);
    for (int i = 0; i < 3; ++i) writer.write_block();
    CHECK_FALSE(writer.open());
    CHECK(session.blocks_in(ARCTRACE_PHASE_CLOSED) == 3);
  }
}

TEST_CASE("overwrite: the open block of a live idle thread is skipped") {
  TestSession session(ring(4));
  Writer idle(session.view(), 0);
  Writer busy(session.view(), 1);
  const auto kept = idle.open();
  REQUIRE(kept);
  for (int i = 0; i < 20; ++i) CHECK(busy.write_block() != kept->index);
  CHECK(session.view().block_header(kept->index).writer == 1);
  // There is none when all are in use.
  Writer third(session.view(), 2);
  for (int i = 0; i < 3; ++i) REQUIRE(third.open());
  CHECK_FALSE(busy.open());
  CHECK(session.view().slot(1).current == 0);
}

TEST_CASE("overwrite: what somebody closed is worth asking for again") {
  TestSession session(ring(2));
  Writer a(session.view(), 0);
  const auto first = a.open();
  const auto second = a.open();
  REQUIRE(first);
  REQUIRE(second);
  const uint64_t before = session.view().control().freed;
  CHECK_FALSE(a.open());
  Plain::close(session.view(), *first);
  CHECK(session.view().control().freed == before + 1);
  CHECK(a.open()->index == first->index);
}

TEST_CASE("overwrite: a block with a record in place waits for it, or for its death") {
  for (const bool dies : {false, true}) {
    TestSession session(ring(3));
    Writer holder(session.view(), 0);
    Writer busy(session.view(), 1);
    const uint32_t kept = holder.write_block();
    session.view().slot(0).held[2] = kept + 1;
    for (int i = 0; i < 9; ++i) CHECK(busy.write_block() != kept);
    if (dies) {
      holder.die();
    } else {
      session.view().slot(0).held[2] = 0;
    }
    std::set<uint32_t> taken;
    for (int i = 0; i < 3; ++i) taken.insert(busy.write_block());
    CHECK(taken.count(kept) == 1);
  }
}

TEST_CASE("overwrite: a shared block with a writer in it waits, also a full one") {
  TestSession session(ring(3));
  Writer stopped(session.view(), 0);
  Writer busy(session.view(), 1);
  uint64_t& chain = session.view().control().shared_current;
  const SharedReservation got = SharedChain<IpcAtomics>::reserve(
      session.view(), 0, 1, chain, 100,
      stopped.identity(ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA));
  REQUIRE(got.record != nullptr);
  for (int i = 0; i < 6; ++i) CHECK(busy.write_block() != got.index);
  CHECK(state_in(session, got.index).phase == ARCTRACE_PHASE_SHARED);
  close_shared<IpcAtomics>(session.view(), got.index, 0);
  for (int i = 0; i < 6; ++i) CHECK(busy.write_block() != got.index);
  CHECK(state_in(session, got.index).phase == ARCTRACE_PHASE_CLOSED);
  SharedChain<IpcAtomics>::release(session.view().slot(0).active[1]);
  std::set<uint32_t> taken;
  for (int i = 0; i < 3; ++i) taken.insert(busy.write_block());
  CHECK(taken.count(got.index) == 1);
}

TEST_CASE("overwrite: a shared block that nobody writes in goes when it is the oldest") {
  TestSession session(ring(3));
  Writer writer(session.view(), 0);
  uint64_t& chain = session.view().control().shared_current;
  const SharedReservation got = writer.share(ARCTRACE_CLASS_DATA, chain);
  for (int i = 0; i < 3; ++i) writer.write_block();
  CHECK(state_in(session, got.index).generation == 1);
  // A writer that still has the old name finds no space there, and opens another block.
  const SharedReservation next = writer.share(ARCTRACE_CLASS_DATA, chain);
  REQUIRE(next.record != nullptr);
  CHECK(next.name != got.name);
}

TEST_CASE("overwrite: blocks of the dead are recovered, whatever they were doing") {
  for (const arctrace_phase phase : {ARCTRACE_PHASE_OWNED, ARCTRACE_PHASE_RESETTING}) {
    CAPTURE(phase);
    TestSession session(ring(3));
    Writer dead(session.view(), 0);
    Writer busy(session.view(), 1);
    const auto left = dead.open();
    REQUIRE(left);
    session.view().block_header(left->index).state = BlockState{0, 0, phase}.pack();
    for (int i = 0; i < 6; ++i) CHECK(busy.write_block() != left->index);
    dead.die();
    std::set<uint32_t> taken;
    for (int i = 0; i < 3; ++i) taken.insert(busy.write_block());
    CHECK(taken.size() == 3);
    CHECK(state_in(session, left->index).generation ==
          (phase == ARCTRACE_PHASE_OWNED ? 1 : 2));
  }
}

TEST_CASE("overwrite: a death after any operation costs no block") {
  bool completed = false;
  for (uint32_t death = 0; !completed; ++death) {
    CAPTURE(death);
    REQUIRE(death < 100);
    for (const bool successor : {false, true}) {
      TestSession session(ring(2));
      const BufferView& view = session.view();
      Writer dying(view, 0);
      Writer busy(view, 1);
      for (int i = 0; i < 2; ++i) dying.write_block();
      SpyAtomics::reset([death](uint32_t operation) {
        if (operation == death) throw Death();
      });
      try {
        const auto got = Spied::take(view, 0, view.slot(0).current);
        REQUIRE(got);
        Spied::open(view, *got,
                    dying.identity(ARCTRACE_FORM_COMPACT, ARCTRACE_CLASS_DATA));
        Spied::close(view, *got);
        completed = true;
      } catch (const Death&) {
      }
      SpyAtomics::reset(nullptr);
      dying.die();
      // The writer that takes the slot reaps it before anybody else reads it.
      if (successor) {
        DeadSlot<IpcAtomics>::clean_up(view, 0, [](uint32_t) {});
        view.slot(0).lock = 200;
        view.slot(0).tid = 200;
      }
      std::set<uint32_t> taken;
      for (int i = 0; i < 2; ++i) taken.insert(busy.write_block());
      CHECK(taken.size() == 2);
    }
  }
}

TEST_CASE(
    "overwrite: a writer that is beaten at any point takes another block, never the "
    "same") {
  for (uint32_t moment = 0; moment < 30; ++moment) {
    CAPTURE(moment);
    TestSession session(ring(4));
    const BufferView& view = session.view();
    Writer slow(view, 0);
    Writer fast(view, 1);
    for (int i = 0; i < 4; ++i) fast.write_block();
    std::set<uint32_t> fast_owns;
    SpyAtomics::reset([&](uint32_t operation) {
      if (operation != moment) return;
      for (int i = 0; i < 2; ++i) {
        const auto got = fast.open();
        REQUIRE(got);
        CHECK(fast_owns.insert(got->index).second);
      }
    });
    const auto got = Spied::take(view, 0, view.slot(0).current);
    SpyAtomics::reset(nullptr);
    REQUIRE(got);
    CHECK(fast_owns.count(got->index) == 0);
    for (const uint32_t index : fast_owns) {
      CHECK(state_in(session, index).slot == 1);
      CHECK(view.block_header(index).magic == ARCTRACE_BLOCK_MAGIC);
    }
  }
}

// A writer that is stopped at any operation while the ring is overwritten must not
// continue with what it saw before: the block may be the newest one by then.
TEST_CASE("overwrite: a writer that was stopped leaves the newest blocks alone") {
  constexpr uint32_t kNewest = 4;
  for (const bool reclaims : {false, true}) {
    bool ended = false;
    for (uint32_t moment = 0; !ended; ++moment) {
      CAPTURE(reclaims);
      CAPTURE(moment);
      REQUIRE(moment < 1000);
      TestSession session(ring(8));
      const BufferView& view = session.view();
      Writer slow(view, 0);
      Writer fast(view, 1);
      Writer dead(view, 2);
      uint64_t chain = 0;
      REQUIRE(dead.share(ARCTRACE_CLASS_DEFINITIONS, chain).record != nullptr);
      dead.die();
      for (int i = 1; i < 8; ++i) fast.write_block();
      std::vector<uint64_t> newest;
      SpyAtomics::reset([&](uint32_t operation) {
        if (operation != moment) return;
        for (uint32_t i = 0; i < 3 * 8 + 1; ++i) {  // the first block is among the last
          const auto got = fast.open();
          REQUIRE(got);
          Plain::close(view, *got);
          newest.push_back(got->handout);
        }
      });
      if (reclaims) {
        Overwrite<SpyAtomics>::reclaim(view, 0, view.slot(0).current);
      } else {
        REQUIRE(Spied::take(view, 0, view.slot(0).current));
      }
      ended = SpyAtomics::operations <= moment;
      SpyAtomics::reset(nullptr);
      if (newest.empty()) continue;
      for (uint32_t i = 1; i <= kNewest; ++i) {
        const uint64_t handout = newest[newest.size() - i];
        CHECK(view.block_header(handout % 8).handout == handout);
      }
    }
  }
}

TEST_CASE("overwrite: a hand-out number that cannot be keeps no block") {
  TestSession session(ring(4));
  Writer writer(session.view(), 0);
  for (int i = 0; i < 4; ++i) writer.write_block();
  session.view().block_header(2).handout = UINT64_MAX - 1;
  std::set<uint32_t> taken;
  for (int i = 0; i < 4; ++i) taken.insert(writer.write_block());
  CHECK(taken.size() == 4);
}

TEST_CASE("overwrite: definitions stay while their process lives") {
  TestSession session(ring(4));
  Writer writer(session.view(), 0);
  uint64_t chain = 0;
  const SharedReservation open = writer.share(ARCTRACE_CLASS_DEFINITIONS, chain);
  for (int i = 0; i < 20; ++i) CHECK(writer.write_block() != open.index);
  CHECK(state_in(session, open.index).phase == ARCTRACE_PHASE_SHARED);
  close_shared<IpcAtomics>(session.view(), open.index, 0);
  for (int i = 0; i < 20; ++i) CHECK(writer.write_block() != open.index);
  CHECK(session.view().block_header(open.index).retired == 0);
}

TEST_CASE("overwrite: definitions of the dead stay while records need them") {
  TestSession session(ring(8));
  Writer dead(session.view(), 0);
  Writer busy(session.view(), 1);
  uint64_t chain = 0;
  const SharedReservation defined = dead.share(ARCTRACE_CLASS_DEFINITIONS, chain);
  const SharedReservation shared =
      dead.share(ARCTRACE_CLASS_DATA, session.view().control().shared_current);
  const uint32_t data = dead.write_block();
  dead.die();
  const auto there = [&](uint32_t index) {
    return session.view().block_header(index).process == 10;
  };
  bool gone = false;
  for (int i = 0; i < 40; ++i) {
    busy.write_block();
    if (there(data) || there(shared.index)) CHECK(there(defined.index));
    gone = gone || !there(defined.index);
  }
  CHECK(gone);  // after that, data may use its space again
}

TEST_CASE("overwrite: a process whose last thread hands on to another is not gone") {
  TestSession session(ring(4));
  const BufferView& view = session.view();
  arctrace_writer_slot& newcomer = view.slot(0);  // checked first
  arctrace_writer_slot& last = view.slot(1);
  const Writer writer(view, 1);  // process 11
  view.control().writer_next = 2;
  using Life = DefinitionsLife<SpyAtomics>;
  bool ended = false;
  for (uint32_t moment = 0; !ended; ++moment) {
    CAPTURE(moment);
    last.lock = 101;
    newcomer = {};
    // After that operation a new thread attaches, then the last one dies.
    SpyAtomics::reset([&](uint32_t operation) {
      if (operation != moment) return;
      newcomer.lock = 100;
      ++view.control().writer_next;
      newcomer.process = 11;
      newcomer.writer = 3;
      newcomer.tid = 100;
      last.lock = kOwnerDied;
    });
    CHECK_FALSE(Life::is_gone(view, 11));
    ended = SpyAtomics::operations <= moment;
  }
  // A thread has its slot and has not written its identity yet.
  last.lock = kOwnerDied;
  newcomer = {};
  newcomer.lock = 100;
  SpyAtomics::reset(nullptr);
  CHECK_FALSE(Life::is_gone(view, 11));
  newcomer.process = 12;
  newcomer.tid = 100;
  CHECK(Life::is_gone(view, 11));
}

TEST_CASE("overwrite: definitions get half of the blocks, data the rest") {
  TestSession session(ring(8, 16));
  uint32_t defined = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    Writer writer(session.view(), i);
    uint64_t chain = 0;
    if (writer.share(ARCTRACE_CLASS_DEFINITIONS, chain).record != nullptr) ++defined;
  }
  CHECK(defined == 4);
  Writer writer(session.view(), 9);
  std::set<uint32_t> taken;
  for (int i = 0; i < 12; ++i) taken.insert(writer.write_block());
  CHECK(taken.size() == 4);
}

TEST_CASE("overwrite: hostile words take no writer outside, and leave it in peace") {
  Random random(test_seed());
  for (int run = 0; run < 200; ++run) {
    TestSession session(ring(6));
    const BufferView& view = session.view();
    Writer writer(view, 0);
    for (uint32_t i = 0; i < 6; ++i) {
      arctrace_block_header& header = view.block_header(i);
      for (uint32_t at = 0; at < 128; at += 4) {
        if (random.below(3) == 0) word_at(view.block(i) + at) = random.below(20);
      }
      if (random.below(4) != 0) {
        header.state = BlockState{random.below(3), random.below(70000),
                                  static_cast<arctrace_phase>(random.below(8))}
                           .pack();
      }
      if (random.below(2) == 0) header.magic = ARCTRACE_BLOCK_MAGIC;
    }
    for (uint32_t i = 1; i < 4; ++i) {
      for (uint32_t at = 0; at < 256; at += 4) {
        word_at(reinterpret_cast<std::byte*>(&view.slot(i)) + at) =
            static_cast<uint32_t>(random.next() >> random.below(33));
      }
    }
    view.control().slot_next = static_cast<uint32_t>(random.next());
    for (int i = 0; i < 10; ++i) {
      if (const auto got = writer.open()) Plain::close(view, *got);
    }
  }
}

}  // namespace
}  // namespace arctrace::testing
