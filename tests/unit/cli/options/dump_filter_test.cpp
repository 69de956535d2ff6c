// The options of `dump` that filter records.
#include "reader/cli/options/dump_filter.hpp"

#include <doctest/doctest.h>

#include "tests/support/record_script.hpp"

namespace arctrace::cli {
namespace {

TEST_CASE("dump filter: threads, times, types") {
  testing::RecordScript script;
  const reader::ThreadIndex one = script.program(10, "one");
  const reader::ThreadIndex two = script.program(20, "two");
  DumpFilter filter;
  CHECK(filter.wants_thread(script.definitions, one));
  CHECK(filter.wants_thread(script.definitions, reader::kNoIndex));
  CHECK(filter.wants_type(ARCTRACE_TYPE_ENTER));
  CHECK(filter.wants_time(INT64_MIN));

  filter.pids.insert(10);
  CHECK(filter.wants_thread(script.definitions, one));
  CHECK_FALSE(filter.wants_thread(script.definitions, two));
  CHECK_FALSE(filter.wants_thread(script.definitions, reader::kNoIndex));
  filter.tids.insert(20);
  CHECK_FALSE(filter.wants_thread(script.definitions, one));
  filter.types.insert(ARCTRACE_TYPE_EXIT);
  CHECK_FALSE(filter.wants_type(ARCTRACE_TYPE_ENTER));
  CHECK(filter.wants_type(ARCTRACE_TYPE_EXIT));
  filter.range = {10, 20};
  CHECK_FALSE(filter.wants_time(9));
  CHECK(filter.wants_time(10));
  CHECK(filter.wants_time(19));
  CHECK_FALSE(filter.wants_time(20));
}

TEST_CASE("dump filter: functions that are entered or left") {
  testing::RecordScript script;
  const reader::ThreadIndex thread = script.program(10, "one");
  script.enter(thread, 1, "f(int)");
  script.exit(thread, 2);
  script.text(thread, 3, "note");
  reader::Replay replay(script.definitions, nullptr);
  const reader::ProcessIndex process = script.definitions.thread(thread)->process;
  const reader::FunctionId f =
      replay.resolver().mutable_functions().intern("", "f(int)", {});
  const auto wanted = [&](const char* glob) {
    DumpFilter filter;
    filter.functions = {"nothing", glob};
    reader::FunctionPatterns patterns(filter.functions);
    std::string found;
    for (const reader::Record& record : script.records) {
      reader::StackEffect effect;
      if (record.type == ARCTRACE_TYPE_EXIT) effect.left = {f};
      found += filter.wants_function(record, effect, process, replay.resolver(), patterns)
                   ? 'y'
                   : 'n';
    }
    return found;
  };
  CHECK(wanted("f") == "yyn");
  CHECK(wanted("f(int)") == "yyn");
  CHECK(wanted("[e-g]") == "yyn");
  CHECK(wanted("g") == "nnn");
  CHECK(wanted("*") == "yyn");
}

}  // namespace
}  // namespace arctrace::cli
