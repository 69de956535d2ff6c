// Perf maps and jitdump files of traced processes: which ones are read, and the records
// made from them.
#include "src/recorder/jit/code_files.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/buffer/clock.hpp"
#include "tests/support/code_bytes.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint32_t kProcess = 7;
const std::vector<uint32_t> kLiving = {kProcess};
const std::vector<uint32_t> kNobody;

arctrace_session_header header_of_now() {
  arctrace_session_header header = session_header(ARCTRACE_SESSION_MAGIC);
  const recorder::ClockSync now = recorder::take_clock_sync(ARCTRACE_CLOCK_MONOTONIC);
  header.start_ticks = now.ticks - 60 * kSecond;
  header.start_monotonic_ns = now.monotonic_ns - 60 * kSecond;
  header.start_realtime_ns = now.realtime_ns - 60 * kSecond;
  return header;
}

// Makes this process one of a session whose clock is CLOCK_MONOTONIC, and writes its perf
// map.
struct Fixture {
  Fixture()
      : header(header_of_now()),
        code_files(header),
        map("/tmp/perf-" + std::to_string(getpid()) + ".map") {
    fs::remove(map);
    facts.process = kProcess;
    facts.pid = static_cast<uint32_t>(getpid());
    facts.uid = geteuid();
    facts.start_ticks = read_monotonic_ns() - 10 * kSecond;
  }
  ~Fixture() { fs::remove(map); }

  BlockBuilder definitions() const {
    return BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS)
        .add_full(ARCTRACE_TYPE_PROCESS, 1, facts.start_ticks, process_body(facts));
  }
  void note(const BlockBuilder& block) {
    code_files.note_untrusted(block.image().data());
  }

  void write_map(const std::string& text) const { std::ofstream(map) << text; }
  // Sets the map's times to so long before now.
  void age_map(uint64_t ns) const {
    timespec times[2] = {};
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= static_cast<time_t>(ns / kSecond);
    times[1] = times[0];
    REQUIRE(utimensat(AT_FDCWD, map.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
  }

  // The records that are written into a trace now.
  DecodedTrace written(const std::vector<uint32_t>& living,
                       uint64_t bytes_max = recorder::kCodeNamesBytesMax) {
    absl::StatusOr<recorder::TraceFile> file =
        recorder::TraceFile::create(directory.path("trace"));
    REQUIRE(file.ok());
    file->write_header(header);
    code_files.write(living, *file, bytes_max);
    write_finished(*file);
    REQUIRE(file->publish().ok());
    DecodedTrace trace = decode_trace(read_file(directory.path("trace")));
    CHECK(joined(trace.problems) == "");
    return trace;
  }
  std::vector<std::string> names(const std::vector<uint32_t>& living) {
    std::vector<std::string> found;
    const DecodedTrace trace = written(living);
    for (const DecodedRecord& code : trace.of_type(ARCTRACE_TYPE_CODE)) {
      found.push_back(code.text(32, code.u32(4)));
    }
    return found;
  }

  arctrace_session_header header;
  recorder::CodeFiles code_files;
  const std::string map;
  ProcessFacts facts;
  TemporaryDirectory directory;
};

using Names = std::vector<std::string>;

TEST_CASE("a perf map's names are records of its process, and its path is recorded") {
  Fixture f;
  f.note(f.definitions());
  f.write_map("5000 20 one\n6000 30 two\nnonsense\n");
  const DecodedTrace trace = f.written(kLiving);
  const auto codes = trace.of_type(ARCTRACE_TYPE_CODE);
  REQUIRE(codes.size() == 2);
  CHECK(codes[0].u32(0) == kProcess);
  CHECK(codes[0].u64(8) == 0x5000);
  CHECK(codes[0].u64(16) == 0x20);
  CHECK(codes[0].u64(24) == 0);
  CHECK(codes[0].text(32, codes[0].u32(4)) == "one");
  const auto files = trace.of_type(ARCTRACE_TYPE_CODE_FILE);
  REQUIRE(files.size() == 1);
  CHECK(files[0].u32(0) == kProcess);
  CHECK(files[0].u32(4) == ARCTRACE_CODE_PERF_MAP);
  CHECK(files[0].u64(8) == 2);
  CHECK(files[0].u64(16) == 1);
  CHECK(files[0].u32(24) == 0);
  CHECK(files[0].text(32, files[0].u32(28)) == f.map);
}

TEST_CASE(
    "a map that is there when its process is gone is held, whatever becomes of it") {
  Fixture f;
  f.write_map("5000 20 one\n");
  f.note(f.definitions());
  f.code_files.scan(kLiving);
  f.code_files.scan(kNobody);
  fs::remove(f.map);
  CHECK(f.names(kNobody) == Names{"one"});
  CHECK(f.names(kNobody) == Names{"one"});  // written into a second file, too
}

TEST_CASE("what a map has at the end counts") {
  Fixture f;
  f.note(f.definitions());
  f.write_map("5000 20 one\n");
  f.code_files.scan(kLiving);
  CHECK(f.names(kLiving) == Names{"one"});
  fs::remove(f.map);
  f.write_map("5000 20 two\n");
  CHECK(f.names(kLiving) == Names{"two"});
}

TEST_CASE("a map of before the process, or of after it, is another's") {
  Fixture f;
  f.note(f.definitions());
  f.write_map("5000 20 one\n");
  f.age_map(11 * kSecond);
  CHECK(f.names(kLiving).empty());
  f.age_map(5 * kSecond);
  CHECK(f.names(kLiving) == Names{"one"});

  Fixture gone;
  gone.note(gone.definitions().add_full(
      ARCTRACE_TYPE_PROCESS_END, 1, read_monotonic_ns() - 4 * kSecond,
      process_end_body(kProcess, ARCTRACE_END_EXIT, -1)));
  gone.write_map("5000 20 later\n");
  gone.code_files.scan(kNobody);
  CHECK(gone.names(kNobody).empty());
}

TEST_CASE("only a regular file is a map") {
  Fixture f;
  f.note(f.definitions());
  const std::string target = f.directory.path("target");
  std::ofstream(target) << "5000 20 one\n";
  REQUIRE(symlink(target.c_str(), f.map.c_str()) == 0);
  CHECK(f.names(kLiving).empty());
  fs::remove(f.map);
  REQUIRE(mkfifo(f.map.c_str(), 0600) == 0);
  CHECK(f.names(kLiving).empty());
  fs::remove(f.map);
  REQUIRE(mkdir(f.map.c_str(), 0700) == 0);
  CHECK(f.names(kLiving).empty());
}

TEST_CASE("a map of another user is not taken, nor one of root, nor one with two names") {
  if (geteuid() != 0) return testing::skip_case("needs root");
  // A process of the user nobody, gone by now: its user is the one that it had recorded.
  constexpr uint32_t kUser = 65534;
  for (const uint32_t owner : {kUser, 0u, 1000u}) {
    CAPTURE(owner);
    Fixture f;
    f.facts.uid = kUser;
    f.note(f.definitions());
    f.write_map("5000 20 one\n");
    REQUIRE(chown(f.map.c_str(), owner, owner) == 0);
    f.code_files.scan(kNobody);
    CHECK(f.names(kNobody).empty() == (owner != kUser));
  }
  Fixture linked;
  linked.note(linked.definitions());
  linked.write_map("5000 20 one\n");
  fs::create_hard_link(linked.map, linked.map + ".link");
  linked.code_files.scan(kNobody);
  fs::remove(linked.map + ".link");
  CHECK(linked.names(kNobody).empty());
}

TEST_CASE("a gone process' map is opened with no more rights than its user's") {
  if (geteuid() != 0) return testing::skip_case("needs root");
  Fixture f;
  f.facts.uid = 65534;
  const std::string name = "jit-" + std::to_string(getpid()) + ".dump";
  JitDumpBuilder dump(static_cast<uint32_t>(getpid()), read_monotonic_ns());
  dump.load(123, 0x5000, 0x20, "one", 1);
  const std::string path = f.directory.path(name);
  std::ofstream(path, std::ios::binary) << dump.text();
  REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
  const auto names = [&](mode_t mode) {
    REQUIRE(chmod(f.directory.path("").c_str(), mode) == 0);
    f.note(f.definitions().add_full(ARCTRACE_TYPE_JITDUMP, 1, f.facts.start_ticks,
                                    jitdump_body(kProcess, path)));
    f.code_files.scan(kNobody);
    return f.names(kNobody);
  };
  CHECK(names(0700).empty());  // a directory of root, which nobody may not search
  CHECK(names(0711) == Names{"one"});
}

TEST_CASE("a dump that is mapped executable is found while its process lives") {
  Fixture f;
  f.note(f.definitions());
  const auto pid = static_cast<uint32_t>(getpid());
  const std::string path = f.directory.path("jit-" + std::to_string(pid) + ".dump");
  JitDumpBuilder dump(pid, read_monotonic_ns());
  dump.load(123, 0x5000, 0x20, "one", 1);
  std::ofstream(path, std::ios::binary) << dump.text();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(f.names(kLiving).empty());
  void* read_only = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(f.names(kLiving).empty());
  munmap(read_only, 4096);
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) {
    testing::skip_case("the file system of temporary files is mounted noexec");
    return;
  }
  const DecodedTrace trace = f.written(kLiving);
  munmap(mapped, 4096);
  const auto codes = trace.of_type(ARCTRACE_TYPE_CODE);
  REQUIRE(codes.size() == 1);
  CHECK(codes[0].u64(24) == 123);
  const auto files = trace.of_type(ARCTRACE_TYPE_CODE_FILE);
  REQUIRE(files.size() == 1);
  CHECK(files[0].u32(4) == ARCTRACE_CODE_JITDUMP);
  CHECK(files[0].text(32, files[0].u32(28)) == path);
}

TEST_CASE("a process reports which dump it had, and nothing but a dump of its own") {
  Fixture f;
  const std::string pid = std::to_string(getpid());
  const auto names_in = [&](const std::string& path) {
    f.note(f.definitions().add_full(ARCTRACE_TYPE_JITDUMP, 1, f.facts.start_ticks,
                                    jitdump_body(kProcess, path)));
    f.code_files.scan(kNobody);
    return f.names(kNobody);
  };
  JitDumpBuilder dump(static_cast<uint32_t>(getpid()), read_monotonic_ns());
  dump.load(123, 0x5000, 0x20, "one", 1);
  for (const char* name : {"jit-1.dump", "secret"}) {
    std::ofstream(f.directory.path(name), std::ios::binary) << dump.text();
    CHECK(names_in(f.directory.path(name)).empty());
  }
  const std::string own = f.directory.path("jit-" + pid + ".dump");
  std::ofstream(own, std::ios::binary) << dump.text();
  CHECK(names_in("jit-" + pid + ".dump").empty());
  CHECK(names_in(own) == Names{"one"});
}

TEST_CASE("names take no more of a trace than they may") {
  Fixture f;
  f.note(f.definitions());
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "5000 20 name_of_thirty_bytes_or_so_xxx\n";
  f.write_map(text);
  const DecodedTrace trace = f.written(kLiving, 20'000);
  const auto files = trace.of_type(ARCTRACE_TYPE_CODE_FILE);
  REQUIRE(files.size() == 1);
  CHECK(files[0].u64(8) > 100);
  CHECK(files[0].u64(8) < 300);
  CHECK(files[0].u64(8) + files[0].u64(16) == 1000);
  CHECK(trace.bytes.size() < 30'000);
}

TEST_CASE("any bytes are definitions") {
  Fixture f;
  Random random(test_seed());
  for (int round = 0; round < 500; ++round) {
    BlockBuilder block = f.definitions();
    for (int i = 0; i < 5; ++i) {
      const auto type = static_cast<uint16_t>(ARCTRACE_TYPE_PROCESS + random.below(10));
      Bytes body;
      body.u32(random.below(2) == 0 ? kProcess : random.below(9));
      for (uint32_t words = random.below(12); words > 0; --words) {
        body.u32(random.below(3) == 0 ? random.next() : random.below(40));
      }
      block.add_full(type, 1, random.next(), body);
    }
    std::vector<std::byte> bytes = block.image().data();
    bytes.resize(bytes.size() - random.below(200));
    f.code_files.note_untrusted(bytes);
    f.code_files.scan(random.below(2) == 0 ? kLiving : kNobody);
  }
}

}  // namespace
}  // namespace arctrace::testing
