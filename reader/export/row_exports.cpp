// --to=csv and --to=ndjson: how each writes the rows of export_rows.hpp.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "reader/export/export_formats.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/export_rows.hpp"
#include "reader/render/labels.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {
namespace {

constexpr const char* kHead =
    "type,pid,tid,thread,start_ns,duration_ns,self_ns,off_cpu_ns,not_known_ns,depth,"
    "coroutine,name,module,args,retval,fields,flags\n";

std::string_view without_prefix(std::string_view text, std::string_view prefix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

class CsvExport : public RowsExport {
 public:
  using RowsExport::RowsExport;

 private:
  std::string describe(const Record& record) override {
    return content_text(settings().describe, record);
  }

  std::string describe_point(const Record& record, std::string& title) override {
    std::string text;
    Untitled<TextFields> fields(text);
    settings().describe(record, fields);
    title = fields.title_text();
    return text;
  }

  std::string gap_fields(const Gap& gap) override {
    return gap.records.has_value() ? absl::StrCat("records=", *gap.records) : "";
  }

  std::string left_out_fields(const std::string& by,
                              std::optional<uint64_t> events) override {
    return events.has_value() ? absl::StrCat("by=", by, " events=", *events) : "by=" + by;
  }

  void write_head(const WriteText& write) override {
    write_ = &write;
    text_ = kHead;
  }

  void write_row(const ExportRow& row) override {
    text_ += row.type;
    const Definitions& definitions = *settings().definitions;
    if (const Thread* thread = definitions.thread(row.thread)) {
      absl::StrAppend(&text_, ",", definitions.pid_of(row.thread), ",", thread->tid);
      add(names().thread_field(row.thread));
    } else {
      text_ += ",,,";
    }
    absl::StrAppend(&text_, ",", row.start_ns);
    add_number(row.duration_ns);
    add_number(row.self_ns);
    add_number(row.off_cpu_ns);
    add_number(row.not_known_ns);
    add_number(row.depth);
    add_number(row.coroutine);
    add(row.name);
    add(row.module);
    add(row.args);
    add(without_prefix(row.retval, " = "));
    add(row.fields);
    std::string flags = flags_text(row.flags);
    std::erase_if(flags, [](char c) { return c == '[' || c == ']'; });
    add(without_prefix(flags, " "));
    text_ += '\n';
    if (text_.size() >= kExportPiece) write_rest();
  }

  void write_rest() override {
    (*write_)(text_);
    text_.clear();
  }

  template <class Number>
  void add_number(const std::optional<Number>& number) {
    text_ += ',';
    if (number.has_value()) absl::StrAppend(&text_, *number);
  }

  // Adds a cell, quoted where it must be.
  void add(std::string_view text) {
    text_ += ',';
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
      text_ += text;
      return;
    }
    text_ += '"';
    for (const char c : text) {
      if (c == '"') text_ += '"';
      text_ += c;
    }
    text_ += '"';
  }

  const WriteText* write_ = nullptr;
  std::string text_;  // that is not yet written
};

}  // namespace

std::unique_ptr<Exporter> make_csv_export(const ExportSettings& settings) {
  return std::make_unique<CsvExport>(settings);
}

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
