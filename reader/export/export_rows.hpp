// A replayed trace as rows: one for each call, event, counter, loss, gap and stretch on
// or off the CPU, and for each frame that is no call (kFrameCountedElsewhere). The
// exporters of csv and ndjson differ only in how they write a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reader/analysis/recorded_state.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/whole_calls.hpp"

namespace arctrace::reader {

struct ExportRow {
  // "call", "frame", "event", "gap", "state", "left-out", ...
  const char* type = "";
  ThreadIndex thread = kNoIndex;
  int64_t start_ns = 0;
  std::optional<uint64_t> duration_ns;  // none: an instant, or it has not ended
  // Times of calls and frames; those of one that has not ended, up to the end of its
  // thread.
  std::optional<uint64_t> self_ns, off_cpu_ns, not_known_ns;
  std::optional<uint32_t> depth, coroutine;
  std::string_view name, module;  // safe
  // In the form of the exporter's describe(); empty: there are none.
  std::string_view args, retval, fields;
  uint16_t flags = 0;  // enum FrameFlag
};

// Rows come in the order of their ends.
class RowsExport : public CallExporter {
 public:
  using CallExporter::CallExporter;

  void begin(Replay& replay, const WriteText& write) override;
  void gap(const Gap& gap) override;
  absl::Status finish() override;

 protected:
  const ExportNames& names() const { return *names_; }

 private:
  virtual void write_head(const WriteText& write) = 0;
  virtual void write_row(const ExportRow& row) = 0;
  virtual void write_rest() = 0;
  // The number of records that a gap misses, as fields.
  virtual std::string gap_fields(const Gap& gap) = 0;
  // What excluded calls of a function, or so many events, as fields.
  virtual std::string left_out_fields(const std::string& by,
                                      std::optional<uint64_t> events) = 0;
  // The fields of a record but for its title, which goes to `title`.
  virtual std::string describe_point(const Record& record, std::string& title) = 0;

  void call(const WholeCall& call) override;
  void point(const PointInfo& point) override;
  void state_ended(const StateInfo& state) override;
  void left_out(FunctionId function, const LeftOut& what);
  // Adds a row for `count` events that were left out; `by` says what excluded them.
  void left_out_events(const std::string& by, uint64_t count);

  std::optional<ShownNames> whole_names_;  // as in other data, such as JSON
  std::optional<ExportNames> names_;
  Replay* replay_ = nullptr;
  const Functions* functions_ = nullptr;
  bool has_dispatches_ = false;
  int64_t begin_ns_ = INT64_MAX;  // of what was replayed, once that is finished
};

}  // namespace arctrace::reader
