// The lanes of an export in Chrome's trace format, which knows processes and threads
// only: a lane beside a thread's calls is a thread with a number of its own.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <utility>

#include "reader/export/chrome_events.hpp"
#include "reader/export/export_lanes.hpp"

namespace arctrace::reader {

class ChromeLanes {
 public:
  // All must outlive this object.
  ChromeLanes(const Definitions& definitions, const ExportNames& names,
              ChromeEvents& events);

  // The pid and tid of a lane, as ChromeEvents::begin() takes them. Good until the next
  // call. A lane that is new gets its name in the file first, so that no event may be
  // under way.
  const std::string& ids_of(const LaneKey& lane);

 private:
  void add_programs();
  std::string full_name(const LaneKey& lane) const;
  void name_lane(const LaneKey& lane, uint32_t pid, uint32_t tid);

  const Definitions& definitions_;
  const ExportNames& names_;
  ChromeEvents& events_;
  absl::flat_hash_map<LaneKey, std::string> ids_;
  absl::flat_hash_map<uint32_t, std::string> programs_;  // by pid; not yet written
  std::pair<ThreadIndex, const std::string*> recent_ = {kNoIndex, nullptr};
  uint32_t next_lane_;
};

}  // namespace arctrace::reader
