// A private copy of what a live session has written, which grows from update to update.
// It takes nothing away from a collector: it only reads the buffer and the collector's
// file.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/buffer_state.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Definitions are kept for good, blocks of data until forget() drops them.
class SessionCopy {
 public:
  // Error: `buffer` is not a session's buffer.
  static absl::StatusOr<SessionCopy> create(std::unique_ptr<Input> buffer);

  // From the next update() on, what a collector appends to `file` is copied too. Without
  // `with_data`, only the definitions are copied of what is in the file by then.
  // REQUIRES: the input can be read as far as the file has grown, whatever its size()
  // was.
  void add_file(std::unique_ptr<Input> file, bool with_data);

  // Copies what is new since the last update, open blocks included. Error: an input can
  // no longer be read.
  absl::Status update();

  // Returns all that is kept at present, as a trace file that is not finished.
  absl::StatusOr<Trace> trace();

  // What is known of a record that the last trace() gives.
  struct Taken {
    bool is_new = false;  // it was not taken before
    bool after_gap =
        false;  // it is the first of its thread after blocks that are missing
  };
  // Takes the record at that place, once.
  Taken take(const Record& record);

  // Drops the blocks of data that will not change, and were whole at `ticks`.
  void forget(uint64_t ticks);

  // The state of the buffer at the last update().
  const BufferState& buffer() const { return state_; }
  const Session& session() const { return session_; }
  // Exclusive blocks that were overwritten, or drained, before they could be copied.
  uint64_t missed_blocks() const { return missed_blocks_; }
  // The number of blocks that are remembered only to recognize them if they come again.
  size_t forgotten_blocks() const { return forgotten_.size(); }

 private:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  // A block, or a RECORDS chunk.
  struct Kept {
    Bytes bytes;
    BlockRef ref;
    uint32_t index = 0;  // of the block
    bool is_whole = false;
    uint64_t whole_ticks = 0;  // it was whole by then
    uint32_t unchanged = 0;    // updates in a row in which it was closed and the same
    uint32_t missing = 0;      // updates in a row in which nothing had it
    std::vector<bool> taken;   // records, by a fourth of their offset
    bool has_taken = false;
  };
  struct File {
    std::unique_ptr<Input> input;
    uint64_t offset = 0;
    bool with_data = false;
  };

  SessionCopy(std::unique_ptr<Input> buffer, const arctrace_session_header& header,
              SessionHeader facts);

  // `again`: this is the second copy in this update, which says nothing of whether a
  // block still changes.
  absl::Status copy_buffer(bool definitions, bool again,
                           absl::flat_hash_set<uint64_t>& seen);
  absl::Status copy_block_untrusted(const BlockRef& ref, bool again);
  absl::Status copy_control_events();
  absl::Status copy_file(File& file);
  // Copies the definitions in what was appended to the file since copy_file(). The next
  // update copies it all the same.
  absl::Status copy_later_definitions(File& file);
  absl::StatusOr<bool> copy_chunk_untrusted(File& file, uint64_t& offset,
                                            bool only_definitions);
  void note_missing(const absl::flat_hash_set<uint64_t>& seen);
  // Finds hand-outs that no update has met, though there were later ones.
  void find_missed(const absl::flat_hash_set<uint64_t>& seen);

  std::unique_ptr<Input> buffer_;
  arctrace_session_header header_;
  Session session_;
  Geometry geometry_;
  BufferState state_;
  std::vector<File> files_;
  std::map<uint64_t, Kept> blocks_;             // by hand-out
  std::vector<std::unique_ptr<Kept>> records_;  // RECORDS chunks
  Kept control_events_;                         // control events, without a file
  // The control events that were taken: type, ticks, gate or pid. Offsets do not tell
  // them apart: when one comes or goes, or a filter's text is not known any more, others
  // move.
  using ControlEventKey = std::tuple<uint16_t, uint64_t, uint32_t>;
  std::set<ControlEventKey> taken_control_events_;
  std::vector<Kept*> by_chunk_;  // of the last trace()
  // The hand-outs of forgotten data, with the updates in a row in which the buffer did
  // not have them.
  absl::flat_hash_map<uint64_t, uint32_t> forgotten_;
  absl::flat_hash_map<uint32_t, uint64_t> next_serial_;  // by writer
  // The newest hand-out that an update met, and when that update began: newest_ of the
  // last update, checked_ of the one before, up to which all hand-outs were checked.
  struct Newest {
    uint64_t handout = 0, ticks = 0;
  };
  Newest newest_, checked_;
  absl::flat_hash_set<uint64_t> met_;   // after checked_, in the buffer or in a file
  uint64_t missed_ticks_ = UINT64_MAX;  // since when the last update has missed some
  uint64_t now_ticks_ = 0;              // when the last update began
  uint64_t missed_blocks_ = 0;
};

}  // namespace arctrace::reader
