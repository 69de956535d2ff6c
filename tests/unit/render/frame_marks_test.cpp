// The marks of unusual frames, which are the same in all views.
#include <doctest/doctest.h>

#include "reader/render/labels.hpp"
#include "reader/replay/listener.hpp"

namespace arctrace::reader {
namespace {

constexpr uint16_t kAllFlags = (kFrameAcrossGap << 1) - 1;

std::string flags_members(uint16_t flags) {
  return json_members([flags](JsonWriter& json) { write_flags_json(flags, json); });
}

TEST_CASE("each flag of a call has a name, in the order of the bits") {
  CHECK(flags_text(0).empty());
  CHECK(flags_members(0).empty());
  CHECK(flags_text(kFrameOpen | kFrameUnwound) == " [unwound, open at the end]");
  CHECK(
      flags_text(kAllFlags) ==
      " [unwound, exit lost, entry lost, entered before tracing, inherited by fork, open "
      "at the end, resumed after vfork, started before the range, stopped after the "
      "range, guessed, across a gap]");
  CHECK(flags_members(kAllFlags) ==
        "\"flags\":[\"unwound\",\"exit_lost\",\"entry_lost\",\"entered_before\","
        "\"inherited\",\"open\",\"resumed\",\"cut_start\",\"cut_stop\",\"guessed\","
        "\"across_gap\"]");
}

TEST_CASE("marks of a node") {
  NodeMarks marks;
  CHECK(marks_text(marks).empty());
  CHECK(json_members([&](JsonWriter& json) { write_marks_json(marks, json); }).empty());
  marks.open = 1;
  marks.unwound = 3;
  CHECK(marks_text(marks) == " [open, unwound 3]");
  marks.lost_records = marks.orphan_exits = 2;
  CHECK(marks_text(marks) == " [open, unwound 3, records lost 2, orphan exits 2]");
  CHECK(json_members([&](JsonWriter& json) { write_marks_json(marks, json); }) ==
        "\"marks\":{\"open\":1,\"unwound\":3,\"lost_records\":2,\"orphan_exits\":2}");
}

TEST_CASE("sums over a trace") {
  ReplayTotals totals;
  CHECK(frame_totals_text(totals).empty());
  totals.open = 1;
  totals.exit_lost = 2;
  totals.orphans = 3;
  CHECK(frame_totals_text(totals) ==
        "frames: 1 open at the end, 2 without their exit, 3 orphan exits");
  CHECK(json_members([&](JsonWriter& json) { write_frame_totals_json(totals, json); }) ==
        "\"frames\":{\"open\":1,\"unwound\":0,\"entered_before\":0,\"inherited\":0,"
        "\"guessed\":0,\"entry_lost\":0,\"exit_lost\":2}");
}

}  // namespace
}  // namespace arctrace::reader
