// Gaps: stretches of time in which records are missing, and why. They are found in the
// order of the records, and are the same for every view.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// Returns the filters' text of an ENABLED record.
std::string_view enabled_filter_untrusted(std::span<const std::byte> body);

// A gap is about one thread, one CPU, or if neither is set, the whole session.
struct Gap {
  enum class Reason : uint8_t {
    kOff,          // classes of records were switched off
    kFiltered,     // the record filter excluded some threads, of all user classes
    kOverwritten,  // newer records took their space
    kMissing,      // blocks are in another file
    kRemoved,      // their file was removed
    kNotJoined,    // the process ran already when it was joined
    kLost,         // records were not written
  };
  Reason reason = Reason::kLost;
  uint32_t detail = 0;  // kOff: the classes and, above these bits, the
                        // kernel's events, as ENABLED has them; kLost: the cause
  ThreadIndex thread = kNoIndex;
  std::optional<uint32_t> cpu;
  int64_t from_ns = 0, to_ns = 0;
  bool from_known = true;           // false: some time before to_ns
  std::optional<uint64_t> records;  // the number of missing ones, if it is known
};

// "functions off", "recording off", "other threads filtered out", "overwritten",
// "missing", "removed", "before it was joined", "lost: full".
std::string gap_reason_text(const Gap& gap);

// Finds the gaps of a trace. Takes constant time for a record. If blocks are missing
// before a record, it takes time that is logarithmic in the number of missing files.
class GapFinder {
 public:
  // All must outlive this object. `clock` may be nullptr: then the begins of losses are
  // not known. Missing files must be known already.
  GapFinder(const Definitions& definitions, const ClockMap* clock, uint32_t mode)
      : definitions_(definitions),
        clock_(clock),
        mode_(mode),
        removed_(definitions.missing_files(), true),
        elsewhere_(definitions.missing_files(), false) {}

  // Takes the next record. Returns the gap that ends there, or has ended, if one does.
  std::optional<Gap> add(const Record& record);

  // To be called after the last record. Returns gaps that nothing ends, those before a
  // CPU's first records in overwrite mode, and those before programs were joined. With a
  // summary these include gaps of threads whose records were all overwritten or are in
  // another file, or whose first records in shared blocks were.
  std::vector<Gap> finish(const Summary* summary);

 private:
  Gap lost(const Record& record) const;
  std::optional<Gap> enabled(const Record& record);
  std::optional<Gap> off_until(int64_t time_ns) const;
  std::optional<Gap> missing_file();
  Gap::Reason missing_reason(int64_t from_ns, int64_t to_ns) const;
  struct Seen {
    int64_t last_ns = INT64_MIN;  // of the thread's records; INT64_MIN: none yet
    // The gap before the thread's first record, if others were overwritten, or are in
    // another file.
    std::optional<Gap> open_gap;
    bool has_gap = false;  // in its exclusive blocks
  };
  Seen& seen_of(ThreadIndex thread);
  std::optional<Gap> missing_before(const Record& record);
  std::optional<Gap> missing_of(ThreadIndex index, const Summary& summary);

  const Definitions& definitions_;
  const ClockMap* const clock_;
  const uint32_t mode_;
  uint32_t off_ = 0;  // classes that are switched off
  bool filters_threads_ = false;
  int64_t off_since_ns_ = 0;
  int64_t now_ = INT64_MIN;
  const MissingTimes removed_, elsewhere_;
  size_t missing_files_ = 0;  // of Definitions::missing_files(), already returned
  std::vector<Seen> seen_;    // by thread
};

}  // namespace arctrace::reader
