// What exporters have in common that write whole calls, points, and the states of
// threads.
#pragma once

#include "reader/export/exporter.hpp"
#include "reader/export/whole_calls.hpp"

namespace arctrace::reader {

// The exporter is its own sink. It calls finish_calls() in finish().
class CallExporter : public Exporter, protected CallSink, private ScheduleListener {
 public:
  explicit CallExporter(const ExportSettings& settings)
      : settings_(settings), calls_(*this) {}

  ReplayListener* call_listener() override { return &calls_; }
  ScheduleListener* schedule_listener() override { return this; }

 protected:
  const ExportSettings& settings() const { return settings_; }
  // Adds the calls that did not end.
  void finish_calls() { calls_.finish(); }

 private:
  const ExportSettings settings_;
  WholeCalls calls_;
};

}  // namespace arctrace::reader
