// The base of views that are made of the finished call trees: a table for each group of
// threads, and of the CPUs' `Interrupt` threads. They need no listener.
#pragma once

#include "reader/report/view.hpp"

namespace arctrace::reader {

class GroupView : public View {
 public:
  explicit GroupView(const ViewSettings& settings)
      : options_(settings.options), grouping_(settings.grouping) {}

  absl::Status write_text(Replay& replay, const WriteText& write) final;
  absl::Status write_json(Replay& replay, JsonWriter& json) final;

 protected:
  virtual void write_groups_text(const TreeGroups& groups, Replay& replay,
                                 const WriteText& write) = 0;
  virtual void write_groups_json(const TreeGroups& groups, Replay& replay,
                                 JsonWriter& json) = 0;

  const ViewOptions options_;

 private:
  TreeGroups groups_of(const Replay& replay) const;

  const Grouping grouping_;
};

}  // namespace arctrace::reader
