// A script of one thread, and its tree as a line of text.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "tests/support/record_script.hpp"

namespace arctrace::testing {

// A script of one thread, replayed.
struct OneThread {
  RecordScript script;
  reader::ThreadIndex thread;

  explicit OneThread(uint32_t origin = ARCTRACE_ORIGIN_EXEC)
      : thread(script.program(100, "program", origin)) {}

  // The tree as "f 1:20[g 2:5]", then the totals that are not 0 and the findings' rules.
  std::string result() {
    reader::Replay replay(script.definitions, nullptr);
    script.replay(replay);
    last = tree_text(replay, replay.threads()[0].root);
    const reader::ReplayTotals& t = replay.totals();
    append("orphans", t.orphans);
    append("resyncs", t.resyncs);
    append("unwound", t.unwound);
    append("exit_lost", t.exit_lost);
    append("entry_lost", t.entry_lost);
    append("before", t.entered_before);
    append("inherited", t.inherited);
    append("open", t.open);
    for (const reader::Finding& finding : replay.findings()) last += " !" + finding.rule;
    const reader::ThreadTree& tree = replay.threads()[0];
    CHECK(replay.tree()[tree.root].total_ns ==
          static_cast<uint64_t>(tree.stop_ns - tree.start_ns));
    return last;
  }

 private:
  void append(const char* name, uint64_t count) {
    if (count != 0) last += std::string(" ") + name + "=" + std::to_string(count);
  }
  std::string last;
};

}  // namespace arctrace::testing
