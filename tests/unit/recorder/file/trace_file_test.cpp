// How a trace file is created, written, replaced and completed.
#include "src/recorder/file/trace_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {
namespace {

recorder::TraceFile create(const std::string& path, recorder::SpecialFile special =
                                                        recorder::SpecialFile::kRefuse) {
  absl::StatusOr<recorder::TraceFile> file = recorder::TraceFile::create(path, special);
  REQUIRE_MESSAGE(file.ok(), file.status().ToString());
  return *std::move(file);
}

bool file_exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string text_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A RECORDS chunk with one record of about `size` bytes.
void write_some(recorder::TraceFile& file, size_t size) {
  recorder::RecordBuilder records;
  records.begin(ARCTRACE_TYPE_SYSTEM, ARCTRACE_WRITER_COLLECTOR, 1);
  records.text(std::string(size, 's'));
  file.write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, 1, records.bytes());
}

TEST_CASE("trace file: it gets its name when published, and is removed if never") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  {
    recorder::TraceFile file = create(path);
    file.write_header(session_header(ARCTRACE_SESSION_MAGIC));
    CHECK_FALSE(file_exists(path));
    CHECK(file.publish().ok());
    CHECK(file_exists(path));
    CHECK(file.publish().ok());
    write_finished(file);
    CHECK(file.error() == 0);
    CHECK(file.bytes() == read_file(path).size());
  }
  CHECK(joined(decode_trace(read_file(path)).problems) == "");
  { create(directory.path("never")); }
  CHECK(std::system(("test \"$(ls " + directory.path("") + ")\" = trace").c_str()) == 0);
}

TEST_CASE("trace file: the former one is kept as .old, a symlink as itself") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  write_text(path, "first");
  CHECK(create(path).publish().ok());
  CHECK(text_of(path + ".old") == "first");
  CHECK(text_of(path).empty());
  write_text(path, "second");
  CHECK(create(path).publish().ok());
  CHECK(text_of(path + ".old") == "second");
}

TEST_CASE("trace file: only its user may read it, and it follows no planted link") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  const std::string victim = directory.path("victim");
  write_text(victim, "precious");
  REQUIRE(symlink(victim.c_str(), (path + ".new-" + std::to_string(getpid())).c_str()) ==
          0);
  recorder::TraceFile file = create(path);
  file.write_header(session_header(ARCTRACE_SESSION_MAGIC));
  CHECK(file.publish().ok());
  CHECK(text_of(victim) == "precious");
  struct stat status {};
  REQUIRE(lstat(path.c_str(), &status) == 0);
  CHECK(S_ISREG(status.st_mode));
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("trace file: where none can be made, that is an error") {
  const TemporaryDirectory directory;
  CHECK_FALSE(recorder::TraceFile::create(directory.path("no/such/directory")).ok());
  CHECK_FALSE(recorder::TraceFile::create(directory.path("")).ok());
}

TEST_CASE("trace file: a FIFO gets the same bytes") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("fifo");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::vector<std::byte> received;
  std::thread reader([&] { received = read_file(path); });
  {
    recorder::TraceFile file = create(path, recorder::SpecialFile::kWriteInto);
    CHECK(file.special_kind() == "FIFO");
    file.write_header(session_header(ARCTRACE_SESSION_MAGIC));
    for (int i = 0; i < 100; ++i) write_some(file, 10000);
    write_finished(file);
    CHECK(file.publish().ok());
    CHECK(file.error() == 0);
  }
  reader.join();
  CHECK(file_exists(path));
  const DecodedTrace trace = decode_trace(std::move(received));
  CHECK(joined(trace.problems) == "");
  CHECK(trace.collector.size() == 101);
}

TEST_CASE("trace file: a device that was not named is refused, and stays") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("fifo");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_FALSE(recorder::TraceFile::create(path).ok());
  struct stat status {};
  REQUIRE(lstat(path.c_str(), &status) == 0);
  CHECK(S_ISFIFO(status.st_mode));
  const std::string link = directory.path("link");
  REQUIRE(symlink("/dev/null", link.c_str()) == 0);
  CHECK(create(link).publish().ok());
  REQUIRE(lstat(link.c_str(), &status) == 0);
  CHECK(S_ISREG(status.st_mode));
}

TEST_CASE("trace file: a full device is an error, noted once, and no crash") {
  recorder::TraceFile file = create("/dev/full", recorder::SpecialFile::kWriteInto);
  file.write_header(session_header(ARCTRACE_SESSION_MAGIC));
  CHECK(file.error() == ENOSPC);
  CHECK(file.bytes() == 0);
  write_some(file, 100);
  CHECK(file.bytes() == 0);
  file.clear_error();
  write_some(file, 100);
  CHECK(file.error() == ENOSPC);
}

// With a limit inside a chunk, a write is cut off there as on a full disk.
TEST_CASE("trace file: a disk that fills leaves whole chunks, and the last word fits") {
  const TemporaryDirectory directory;
  for (const rlim_t limit : {rlim_t{4096 + 10}, rlim_t{4096 + 32 + 500}, rlim_t{50000},
                             rlim_t{50001}, rlim_t{49999}}) {
    CAPTURE(limit);
    const std::string path = directory.path("trace");
    CHECK_CHILD([&] {
      signal(SIGXFSZ, SIG_IGN);
      recorder::TraceFile file = create(path);
      REQUIRE(file.publish().ok());
      const rlimit size{limit, limit};
      REQUIRE(setrlimit(RLIMIT_FSIZE, &size) == 0);
      file.write_header(session_header(ARCTRACE_SESSION_MAGIC));
      while (file.error() == 0) write_some(file, 1000);
      CHECK(file.error() == EFBIG);
      const uint64_t before = file.bytes();
      CHECK(before <= limit);
      write_some(file, 1);  // nothing more until the error is cleared
      CHECK(file.bytes() == before);
      file.clear_error();
      if (before + 200 > limit) return;
      write_finished(file);
      CHECK(file.error() == 0);
    });
    const DecodedTrace trace = decode_trace(read_file(path));
    if (!trace.finished) {
      CHECK(joined(trace.problems) == "F6: not finished\n");
    } else {
      CHECK(joined(trace.problems) == "");
    }
  }
}

TEST_CASE("trace file: on standard output, after what stands there already") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  CHECK_CHILD([&] {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    REQUIRE(write(fd, "before", 6) == 6);
    const int saved = dup(STDOUT_FILENO);
    dup2(fd, STDOUT_FILENO);
    recorder::TraceFile file = create("-");
    dup2(saved, STDOUT_FILENO);
    signal(SIGXFSZ, SIG_IGN);
    file.write_header(session_header(ARCTRACE_SESSION_MAGIC));
    const rlimit size{6 + 4096 + 700, RLIM_INFINITY};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &size) == 0);
    write_some(file, 1000);
    CHECK(file.error() == EFBIG);
    file.clear_error();
    write_finished(file);
    CHECK(file.error() == 0);
  });
  std::vector<std::byte> bytes = read_file(path);
  REQUIRE(bytes.size() > 6);
  CHECK(std::memcmp(bytes.data(), "before", 6) == 0);
  bytes.erase(bytes.begin(), bytes.begin() + 6);
  CHECK(joined(decode_trace(std::move(bytes)).problems) == "");
}

TEST_CASE("record builder: lengths, padding and heads") {
  recorder::RecordBuilder records;
  CHECK(records.bytes().empty());
  records.begin(ARCTRACE_TYPE_SESSION, 7, 99);
  records.text("abcde");
  records.begin(ARCTRACE_TYPE_WRITER_END, 0, 100);
  const std::vector<std::byte>& bytes = records.bytes();
  REQUIRE(bytes.size() == 24 + 16);
  CHECK(std::memcmp(bytes.data(),
                    full_record(ARCTRACE_TYPE_SESSION, 7, 99, Bytes().padded("abcde"))
                        .data()
                        .data(),
                    24) == 0);
  CHECK(std::memcmp(bytes.data() + 24,
                    full_record(ARCTRACE_TYPE_WRITER_END, 0, 100, {}).data().data(),
                    16) == 0);
  records.clear();
  CHECK(records.bytes().empty());
}

TEST_CASE("trace file: records are cut into chunks between two of them") {
  const TemporaryDirectory directory;
  recorder::TraceFile file = create(directory.path("trace"));
  file.write_header(session_header(ARCTRACE_SESSION_MAGIC));
  recorder::RecordBuilder records;
  constexpr uint32_t kRecords = 700;
  for (uint32_t i = 0; i < kRecords; ++i) {
    records.begin(ARCTRACE_TYPE_WRITER_END, 0, i);
    records.text(std::string(30'000, 'x'));
  }
  file.write_records(1, records.bytes());
  write_finished(file);
  CHECK(file.publish().ok());
  const std::vector<std::byte> bytes = read_file(directory.path("trace"));
  const DecodedTrace trace = decode_trace(bytes);
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_WRITER_END).size() == kRecords);
  arctrace_chunk_header chunk{};
  for (size_t at = ARCTRACE_HEADER_SIZE; at < bytes.size();
       at += sizeof chunk + chunk.size) {
    std::memcpy(&chunk, bytes.data() + at, sizeof chunk);
    CHECK(chunk.size <= 16u << 20);  // F4
  }
  absl::StatusOr<recorder::TraceFile> none =
      recorder::TraceFile::create(directory.path("none"));
  REQUIRE(none.ok());
  none->write_records(1, {});
  CHECK(none->bytes() == 0);
}

TEST_CASE("symbols are appended all or none") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  recorder::TraceFile file = create(path);
  file.write_header(session_header(ARCTRACE_SESSION_MAGIC, 4096));
  REQUIRE(file.publish().ok());
  const std::vector<std::byte> before = read_file(path);
  const std::vector<std::vector<std::byte>> payloads(2, std::vector<std::byte>(100'000));
  {
    // The second one does not fit.
    struct rlimit limit {};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct rlimit small = limit;
    small.rlim_cur = before.size() + 150'000;
    std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const int error = file.write_symbols(7, payloads);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(error == EFBIG);
  }
  CHECK(file.error() == 0);
  CHECK(file.bytes() == before.size());
  CHECK(read_file(path) == before);
  CHECK(file.write_symbols(7, payloads) == 0);
  CHECK(read_file(path).size() == before.size() + size_t{2} * (100'000 + 32));
  const DecodedTrace trace = decode_trace(read_file(path));
  CHECK(joined(trace.problems) == "F6: not finished\n");
  recorder::TraceFile device = create("/dev/full", recorder::SpecialFile::kWriteInto);
  CHECK(device.write_symbols(7, payloads) == ESPIPE);
}

// Each time so many bytes of space are lacking.
TEST_CASE("an index is appended whole, or the file is as it was") {
  for (const uint64_t lacking : {0U, 1U, 64U, 700U}) {
    CAPTURE(lacking);
    const TemporaryDirectory directory;
    const std::string path = directory.path("trace");
    recorder::TraceFile file = create(path);
    REQUIRE(file.publish().ok());
    file.keep_index();
    file.write_header(session_header(ARCTRACE_SESSION_MAGIC));
    constexpr uint64_t kChunks = 11;
    for (uint64_t i = 1; i < kChunks; ++i) write_some(file, 10);
    write_finished(file);
    const std::vector<std::byte> before = read_file(path);
    const uint64_t index_size =
        sizeof(arctrace_chunk_header) + kChunks * sizeof(arctrace_index_entry);
    const uint64_t limit = before.size() + index_size - lacking;
    CHECK_CHILD([&] {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit size{limit, limit};
      REQUIRE(setrlimit(RLIMIT_FSIZE, &size) == 0);
      file.write_index(1000);
      CHECK(file.error() == 0);
      file.write_index(1000);  // there is nothing to write any more
    });
    const std::vector<std::byte> after = read_file(path);
    if (lacking != 0) {
      CHECK(after == before);
      continue;
    }
    REQUIRE(after.size() == before.size() + index_size);
    const auto header = load_part_untrusted<arctrace_session_header>(after);
    REQUIRE(header.index_offset == before.size());
    const std::span<const std::byte> index = std::span(after).subspan(before.size());
    CHECK(load_part_untrusted<arctrace_chunk_header>(index).kind == ARCTRACE_CHUNK_INDEX);
    CHECK(joined(decode_trace(after).problems) == "");
  }
}

TEST_CASE("an index that would have too many entries is none") {
  recorder::FileIndex index;
  arctrace_chunk_header chunk{};
  chunk.kind = ARCTRACE_CHUNK_RECORDS;
  uint32_t chunks = 0;
  while (chunks < ARCTRACE_INDEX_ENTRIES_MAX) {
    index.add(chunk, {}, {});
    ++chunks;
  }
  CHECK(index.has_all(chunks));
  for (int more = 0; more < 2; ++more) {
    index.add(chunk, {}, {});
    CHECK_FALSE(index.has_all(++chunks));
    CHECK(index.payload().empty());
  }
}

TEST_CASE("the end of a file can be taken off, down to blocks of data of that size") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  recorder::TraceFile file = create(path);
  file.write_header(session_header(ARCTRACE_SESSION_MAGIC, 4096));
  const auto block = [&](uint64_t handout, uint16_t block_class) {
    const Bytes image = BlockBuilder::shared(handout, 0, block_class)
                            .add_full(ARCTRACE_TYPE_INSTANT, 1, 5, Bytes().u32(1))
                            .image();
    file.write_chunk(ARCTRACE_CHUNK_BLOCK, 0, static_cast<uint32_t>(handout), 7,
                     image.data());
  };
  block(0, ARCTRACE_CLASS_DATA);
  const uint64_t end = file.bytes();
  block(1, ARCTRACE_CLASS_DATA);
  block(2, ARCTRACE_CLASS_DEFINITIONS);
  block(3, ARCTRACE_CLASS_DATA);
  const uint64_t size = end - ARCTRACE_HEADER_SIZE;
  file.note_error(ENOSPC);
  const std::vector<recorder::TraceFile::CutChunk> cut = file.cut_end(size + 1);
  REQUIRE(cut.size() == 3);
  CHECK(cut[0].is_data());
  CHECK_FALSE(cut[1].is_data());
  CHECK(cut[2].is_data());
  CHECK(cut[0].header.sequence == 1);
  CHECK(file.error() == 0);
  CHECK(file.bytes() == end);
  REQUIRE(file.publish().ok());
  CHECK(read_file(path).size() == end);
  block(4, ARCTRACE_CLASS_DATA);
  const DecodedTrace trace = decode_trace(read_file(path));
  CHECK(joined(trace.problems) == "F6: not finished\n");  // chunk numbers continue
  CHECK(trace.blocks.size() == 2);
  CHECK(file.cut_end(UINT64_MAX).size() == 2);
  CHECK(create("/dev/full", recorder::SpecialFile::kWriteInto).cut_end(1).empty());
}

}  // namespace
}  // namespace arctrace::testing
