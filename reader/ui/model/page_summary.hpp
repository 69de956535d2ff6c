// What the page shows of the report's summary, in the report's own words.
#pragma once

#include "reader/analysis/recorded_state.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/analysis/work_loops.hpp"
#include "reader/render/labels.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/ui/model/page_json.hpp"

namespace arctrace::reader {

class PageSummary {
 public:
  // What `facts` refer to must outlive this object.
  explicit PageSummary(const PageFacts& facts);
  PageSummary(const PageSummary&) = delete;
  PageSummary& operator=(const PageSummary&) = delete;

  // What a server's threads did when they had work; null: nothing is left out.
  const TreeGroup* busy() const { return serving_.is_server ? &busy_.group() : nullptr; }
  const RecordedStates& recorded() { return labels_.recorded(); }

  // Member recording: the lines of recording_rows().
  void write_recording_json(JsonWriter& json);
  // Members crash, other_crashes and serving: objects with head and lines, those of
  // crash_section(), other_crashes_section() and serving_section(); null if that has
  // none.
  void write_crash_json(JsonWriter& json);
  void write_serving_json(JsonWriter& json);

 private:
  const TreeGroups groups_;
  const Serving serving_;
  const BusyGroup busy_;
  FunctionLabels labels_;
  const SummaryFacts facts_;
};

}  // namespace arctrace::reader
