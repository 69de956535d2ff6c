// A script replayed for an exporter, and the exporter's output.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "reader/export/export_formats.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "tests/support/record_script.hpp"
#include "tests/unit/report/viewed.hpp"

namespace arctrace::testing {

// Describes args, retval and the names of instants and counters; nothing of other
// records.
inline void describe_some(const RecordScript& script, const reader::Record& record,
                          reader::FieldSink& out) {
  describe_values(record, out);
  const auto name = [&](uint32_t id) {
    const uint32_t process = script.definitions.thread(record.thread)->process;
    return std::string(script.definitions.name(process, id).value_or("?"));
  };
  if (record.type == ARCTRACE_TYPE_INSTANT) {
    out.title("name", name(load_part_untrusted<arctrace_instant_body>(record.body).name));
  } else if (record.type == ARCTRACE_TYPE_COUNTER) {
    const auto body = load_part_untrusted<arctrace_counter_body>(record.body);
    out.title("name", name(body.name));
    out.signed_number("value", body.value);
  }
}

// The script: f has the argument 5 and the return value 7; in it are the counter queue,
// 12 and then 13, and the instant now.
inline RecordScript call_with_points() {
  RecordScript script;
  const reader::ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "f");
  script.arguments(thread, 1000, {number_arg(ARCTRACE_VALUE_SIGNED, 1, 5, 4)});
  for (const uint64_t value : {12u, 13u}) {
    script.add(thread, 1100, ARCTRACE_TYPE_COUNTER,
               Bytes().u32(script.name_id("queue")).u64(value));
  }
  script.add(thread, 1200, ARCTRACE_TYPE_INSTANT, Bytes().u32(script.name_id("now")));
  script.result(thread, 2000, {number_arg(ARCTRACE_VALUE_SIGNED, 0, 7, 4)});
  script.exit(thread, 2000);
  return script;
}

// Two overlapping gaps of a thread, 1000 to 3000 and 2000 to 4000; and one of a CPU.
inline std::vector<reader::Gap> overlapping_gaps(reader::ThreadIndex thread) {
  reader::Gap gap;
  gap.thread = thread;
  gap.from_ns = 1000;
  gap.to_ns = 3000;
  std::vector<reader::Gap> gaps = {gap};
  gap.from_ns = 2000;
  gap.to_ns = 4000;
  gap.records = 5;
  gaps.push_back(gap);
  gap.thread = reader::kNoIndex;
  gap.cpu = 3;
  gaps.push_back(gap);
  return gaps;
}

struct Exported {
  // `script` must outlive this object.
  explicit Exported(const RecordScript& exported) : script(exported) {
    settings.definitions = &exported.definitions;
    settings.describe = [this](const reader::Record& record, reader::FieldSink& out) {
      describe_some(script, record, out);
    };
  }
  explicit Exported(RecordScript&&) = delete;

  std::string to(const std::string& format) {
    for (const reader::ExportFormat& known : reader::export_formats()) {
      if (format == known.name) return by(*known.make(made_settings()));
    }
    FAIL("no format ", format);
    return {};
  }

  const RecordScript& script;
  reader::ExportSettings settings;
  reader::ReplayOptions replay;
  std::vector<reader::Gap> gaps;

 private:
  reader::ExportSettings made_settings() const {
    reader::ExportSettings made = settings;
    made.min_duration_ns = replay.filter.min_duration_ns;
    return made;
  }

  std::string by(reader::Exporter& exporter) {
    reader::ReplayOptions options = replay;
    options.listener = exporter.call_listener();
    options.schedule = exporter.schedule_listener();
    // States are unknown without the kernel's records, as in the command.
    if (!reader::Replay(script.definitions, nullptr).has_dispatches()) {
      options.schedule = nullptr;
    }
    reader::Replay used(script.definitions, nullptr, options);
    std::string text;
    const reader::WriteText write = [&](std::string_view piece) {
      text += piece;
      return true;
    };
    exporter.begin(used, write);
    script.replay(used);
    for (const reader::Gap& gap : gaps) exporter.gap(gap);
    CHECK(exporter.finish().ok());
    return text;
  }
};

}  // namespace arctrace::testing
