#include "reader/export/csv_export.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "reader/export/export_rows.hpp"
#include "reader/export/untitled_fields.hpp"
#include "reader/render/frame_marks.hpp"

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

  // Quoted where it must be.
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

}  // namespace arctrace::reader
