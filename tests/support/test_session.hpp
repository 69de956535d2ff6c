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
BufferOptions small_buffer(uint32_t block_size, uint32_t block_count,
                           uint32_t slot_count = 16);

// A buffer with its gate open, a trace file, and a drain between them that the test
// drives itself. The test's own process never joins.
class TestSession {
 public:
  explicit TestSession(const BufferOptions& options);

  Buffer& buffer() { return buffer_; }
  const Buffer& buffer() const { return buffer_; }
  const BufferView& view() const { return buffer_.view(); }
  const std::string& path() const { return buffer_.path(); }
  Drain& drain() { return drain_; }
  TraceFile& file() { return file_; }

  // How many blocks are in `phase`.
  uint32_t blocks_in(uint32_t phase) const;

  // A snapshot of the buffer as it is now, decoded.
  DecodedTrace snapshot() const;

  // Ends the recording and decodes the file. To be called once.
  DecodedTrace finish();

 private:
  TemporaryDirectory directory_;
  Buffer buffer_;
  TraceFile file_;
  Drain drain_;
};

// The calling process joins.
void join(const TestSession& test);

// A SESSION_FINISHED record as the collector ends a file with it.
void write_finished(TraceFile& file);

}  // namespace arctrace::testing
