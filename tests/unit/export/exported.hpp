// A script replayed for an exporter, and what the exporter writes.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "reader/export/export_formats.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "tests/support/record_script.hpp"
#include "tests/unit/report/viewed.hpp"

namespace arctrace::testing {

// Args, retval and the names of instants and counters; nothing of other records.
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
    // As the command does: without the kernel's records nothing is known of states.
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
