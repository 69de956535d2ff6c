#include "tests/support/test_session.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/snapshot/snapshot.hpp"

namespace arctrace::testing {
namespace {

recorder::Buffer open_buffer(const recorder::BufferOptions& options) {
  absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::create(options);
  REQUIRE_MESSAGE(buffer.ok(), buffer.status().ToString());
  recorder::set_gate(buffer->view(), ARCTRACE_GATE_ALL);
  return *std::move(buffer);
}

recorder::TraceFile open_file(const std::string& path) {
  absl::StatusOr<recorder::TraceFile> file = recorder::TraceFile::create(path);
  REQUIRE_MESSAGE(file.ok(), file.status().ToString());
  return *std::move(file);
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

recorder::BufferOptions small_buffer(uint32_t block_size, uint32_t block_count,
                                     uint32_t slot_count) {
  recorder::BufferOptions options;
  options.scope = ARCTRACE_SCOPE_THREAD;
  options.block_size = block_size;
  options.buffer_size = uint64_t{block_size} * block_count;
  options.slot_count = slot_count;
  options.pin = recorder::PinPolicy::kNo;
  options.high_water_percent = 0;
  return options;
}

TestSession::TestSession(const recorder::BufferOptions& options)
    : buffer_(open_buffer(options)),
      file_(open_file(directory_.path("trace"))),
      drain_(buffer_.view(), file_) {
  file_.write_header(buffer_.header());
}

uint32_t TestSession::blocks_in(uint32_t phase) const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < view().geometry().block_count; ++i) {
    if (Recycle<IpcAtomics>::state(view(), i).phase == phase) ++count;
  }
  return count;
}

DecodedTrace TestSession::snapshot() const {
  const TemporaryDirectory directory;
  recorder::TraceFile file = open_file(directory.path("snapshot"));
  file.write_header(buffer_.header());
  recorder::CodeFiles code_files(buffer_.header());
  recorder::Snapshot(view(), file, code_files).write();
  write_finished(file);
  REQUIRE(file.publish().ok());
  return decode_trace(read_file(directory.path("snapshot")));
}

DecodedTrace TestSession::finish() {
  recorder::set_gate(buffer_.view(), 0);
  drain_.finish();
  write_finished(file_);
  REQUIRE(file_.publish().ok());
  return decode_trace(read_file(directory_.path("trace")));
}

void join(const TestSession& test) { REQUIRE(arctrace_attach(test.path().c_str()) == 0); }

void write_finished(recorder::TraceFile& file) {
  recorder::RecordBuilder records;
  records.begin(ARCTRACE_TYPE_SESSION, ARCTRACE_WRITER_COLLECTOR, 0);
  records.body(arctrace_session_body{.what = ARCTRACE_SESSION_FINISHED, .detail = 0});
  file.write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, 0, records.bytes());
}

}  // namespace arctrace::testing
