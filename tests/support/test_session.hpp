// A buffer in shared memory, and a trace file drained from it, for tests of src/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "tests/support/random.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/trace_decoder.hpp"

namespace arctrace::testing {

// The bytes of a file; none if it can't be read.
std::vector<std::byte> read_file(const std::string& path);

// Options for `block_count` small blocks, unpinned, that never wake a collector.
recorder::BufferOptions small_buffer(uint32_t block_size, uint32_t block_count,
                                     uint32_t slot_count = 16);

// A buffer with its gate open, a trace file, and a drain between them that the test
// drives itself. The test's own process never joins.
class TestSession {
 public:
  explicit TestSession(const recorder::BufferOptions& options);

  recorder::Buffer& buffer() { return buffer_; }
  const recorder::Buffer& buffer() const { return buffer_; }
  const BufferView& view() const { return buffer_.view(); }
  const std::string& path() const { return buffer_.path(); }
  recorder::Drain& drain() { return drain_; }
  recorder::TraceFile& file() { return file_; }

  // How many blocks are in `phase`.
  uint32_t blocks_in(uint32_t phase) const;

  // A snapshot of the buffer as it is now, decoded.
  DecodedTrace snapshot() const;

  // Ends the recording and decodes the file. Must be called once.
  DecodedTrace finish();

 private:
  TemporaryDirectory directory_;
  recorder::Buffer buffer_;
  recorder::TraceFile file_;
  recorder::Drain drain_;
};

// Makes the calling process join.
void join(const TestSession& test);

// Appends the SESSION_FINISHED record with which the collector ends a file.
void write_finished(recorder::TraceFile& file);

}  // namespace arctrace::testing
