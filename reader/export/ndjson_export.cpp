#include "reader/export/ndjson_export.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "reader/export/export_rows.hpp"
#include "reader/export/untitled_fields.hpp"
#include "reader/render/frame_marks.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {
namespace {

class NdjsonExport : public RowsExport {
 public:
  using RowsExport::RowsExport;

 private:
  std::string describe(const Record& record) override {
    return content_members(settings().describe, record);
  }

  std::string describe_point(const Record& record, std::string& title) override {
    return json_members([&](JsonWriter& json) {
      Untitled<JsonFields> fields(json);
      settings().describe(record, fields);
      title = fields.title_text();
    });
  }

  std::string gap_fields(const Gap& gap) override {
    return json_members([&](JsonWriter& json) { json.member("records", gap.records); });
  }

  std::string left_out_fields(const std::string& by,
                              std::optional<uint64_t> events) override {
    return json_members([&](JsonWriter& json) {
      json.member("by", by);
      if (events.has_value()) json.member("events", *events);
    });
  }

  void write_head(const WriteText& write) override { json_.emplace(write); }

  void write_row(const ExportRow& row) override {
    JsonWriter& json = *json_;
    json.begin_object();
    json.member("type", row.type);
    const Definitions& definitions = *settings().definitions;
    if (const Thread* thread = definitions.thread(row.thread)) {
      json.member("pid", definitions.pid_of(row.thread));
      json.member("tid", thread->tid);
      json.member("thread", names().thread_field(row.thread));
    }
    json.member("start_ns", row.start_ns);
    json.member("duration_ns", row.duration_ns);
    if (row.self_ns.has_value()) json.member("self_ns", *row.self_ns);
    if (row.off_cpu_ns.has_value()) json.member("off_cpu_ns", *row.off_cpu_ns);
    if (row.not_known_ns.value_or(0) != 0) {
      json.member("not_known_ns", *row.not_known_ns);
    }
    if (row.depth.has_value()) json.member("depth", *row.depth);
    if (row.coroutine.has_value()) json.member("coroutine", *row.coroutine);
    json.member("name", row.name);
    if (!row.module.empty()) json.member("module", row.module);
    json.members(row.args);
    json.members(row.retval);
    if (!row.fields.empty()) {
      json.key("fields").begin_object();
      json.members(row.fields);
      json.end();
    }
    write_flags_json(row.flags, json);
    json.end();
  }

  void write_rest() override { json_->finish(); }

  std::optional<JsonWriter> json_;
};

}  // namespace

std::unique_ptr<Exporter> make_ndjson_export(const ExportSettings& settings) {
  return std::make_unique<NdjsonExport>(settings);
}

}  // namespace arctrace::reader
