#include "tests/fuzz/targets.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "reader/symbols/argument_registers.hpp"
#include "reader/symbols/function_types.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/perf_files.hpp"
#include "src/recorder/snapshot/snapshot.hpp"
#include "tests/fuzz/exercise.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::fuzz {
namespace {

using testing::BlockBuilder;
using testing::FileBuilder;

constexpr uint32_t kBlockSize = 4096;

std::vector<std::byte> copy_of(Bytes input) { return {input.begin(), input.end()}; }

// A descriptor of a file in memory with these bytes.
int open_bytes(Bytes bytes) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  const auto size = static_cast<ssize_t>(bytes.size());
  require(fd >= 0 && write(fd, bytes.data(), bytes.size()) == size, "a file in memory");
  return fd;
}

// Recovers the image as `arctrace recover` does.
void recover(Bytes image) {
  const int fd = open_bytes(image);
  const absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::copy_untrusted(fd, 0, UINT64_MAX, "input");
  close(fd);
  if (!buffer.ok()) return;
  const std::string path = "/dev/shm/fuzz-" + std::to_string(getpid());
  absl::StatusOr<recorder::TraceFile> file = recorder::TraceFile::create(path);
  require(file.ok(), "a file in shared memory");
  recorder::SnapshotPast past;
  past.syncs = recorder::buffer_syncs(*buffer, false);
  recorder::write_snapshot_file(*buffer, *file, past);
  require(file->error() == 0 && file->publish().ok(), "room in shared memory");
  std::ifstream written(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(written)),
                          std::istreambuf_iterator<char>());
  unlink(path.c_str());
  require(exercise_trace(copy_of(std::as_bytes(std::span(bytes)))),
          "what is recovered can be read");
}

void walk_as_the_collector(Bytes input) {
  std::vector<std::byte> block(kBlockSize, std::byte{0xFF});
  std::copy_n(input.begin(), std::min<size_t>(input.size(), kBlockSize), block.begin());
  const recorder::BlockContents contents = recorder::scan_block_untrusted(block);
  require(contents.used >= ARCTRACE_BLOCK_HEADER_SIZE && contents.used <= kBlockSize,
          "what is used is in the block");
  recorder::for_each_full_record(
      block, [](uint16_t, uint64_t, std::span<const std::byte> body) {
        require(body.size() <= kBlockSize, "a record is in the block");
      });
  std::vector<std::byte> copy =
      recorder::copy_live_block_untrusted(block.data(), kBlockSize, kBlockSize);
  require(recorder::scan_block_untrusted(copy).records <= contents.records,
          "a copy has no record of its own");
}

}  // namespace

void trace_file(Bytes input) { exercise_trace(copy_of(input)); }

void buffer_image(Bytes input) {
  exercise_trace(copy_of(input));
  recover(input);
}

void block(Bytes input) {
  walk_as_the_collector(input);
  testing::Bytes image;
  image.raw(input.data(), std::min<size_t>(input.size(), kBlockSize) & ~size_t{3});
  for (const int flags : {0, int{ARCTRACE_CHUNK_LIVE_COPY}}) {
    FileBuilder file(kBlockSize);
    file.program({}, 1, "main", 0);
    file.chunk(ARCTRACE_CHUNK_BLOCK, image, static_cast<uint16_t>(flags), 1);
    file.finish(1000);
    require(exercise_trace(file.file()), "a file with a good header can be read");
  }
}

void definitions(Bytes input) {
  FileBuilder file(kBlockSize);
  BlockBuilder defined = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  constexpr size_t kRoom = kBlockSize - ARCTRACE_BLOCK_HEADER_SIZE;
  defined.content.raw(input.data(), std::min(input.size(), kRoom) & ~size_t{3});
  file.block(defined);
  BlockBuilder data = BlockBuilder::exclusive(1, 0, 1, 10);
  data.stack(10, {});
  testing::Bytes payload;
  for (uint32_t i = 0; i < 20; ++i) payload.u32(i);
  for (uint32_t id = 1; id < 4; ++id) {
    data.enter(10 + id, ARCTRACE_FRAME_NAME_BIT | id);
    data.enter(10 + id, uint64_t{0x1000} * id);
    data.add(ARCTRACE_TYPE_EVENT, 10 + id, testing::event_body(id, payload));
    data.add(ARCTRACE_TYPE_INSTANT, 10 + id, testing::Bytes().u32(id));
  }
  file.block(data, 0, 1);
  file.finish(1000);
  require(exercise_trace(file.file()), "a file with a good header can be read");
}

void code_file(Bytes input) {
  const int fd = open_bytes(input);
  uint64_t taken = 0;
  const recorder::CodeSink sink = [&](const recorder::NamedCode& code) {
    require(recorder::is_code_range(code.start, code.size), "code has bytes");
    require(!code.name.empty() && code.name.size() <= recorder::kCodeNameMax,
            "code has a name");
    return ++taken % 7 != 0;
  };
  const recorder::CodeFileSummary map = recorder::read_perf_map_untrusted(fd, sink);
  require(map.names + map.left_out >= taken, "all are counted");
  taken = 0;
  recorder::JitDumpOwner owner;  // makes the owner match, so that any dump is its own
  constexpr size_t kPidOffset = 20;
  if (input.size() >= kPidOffset + sizeof owner.pid) {
    std::memcpy(&owner.pid, &input[kPidOffset], sizeof owner.pid);
  }
  const recorder::CodeFileSummary dump =
      recorder::read_jit_dump_untrusted(fd, owner, sink);
  require(dump.names + dump.left_out >= taken, "all are counted");
  close(fd);
}

void function_types(Bytes input) {
  const int fd = open_bytes(input);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  std::set<uint64_t> defined;
  if (const auto file = reader::ElfFile::open_untrusted(path); file.ok()) {
    for (const reader::ElfSymbolTable& table : file->function_symbols()) {
      for (const reader::ElfSymbol& symbol : table.symbols) {
        defined.insert(symbol.address);
      }
    }
  }
  reader::SymbolOptions options;
  options.debug_root = "/nonexistent";
  const reader::ModuleTypes types = reader::read_function_types_untrusted(
      path, reader::DebugFiles(options), defined, {"declared"});
  close(fd);
  const auto check = [](const reader::FunctionTypes& of) {
    for (const reader::TypedArg& arg : of.args) {
      const bool is_vector = arg.kind == reader::TypedArg::Kind::kFloat;
      const uint32_t limit =
          (is_vector ? reader::kVectorRegisters : reader::kIntegerRegisters) +
          reader::kStackWords;
      require(arg.position >= 1 && arg.position <= limit, "positions that there are");
      require(arg.size >= 1 && arg.size <= 8, "what fits into a register");
    }
  };
  for (const auto& [address, of] : types.defined) {
    require(defined.contains(address), "what was asked for");
    check(of);
  }
  for (const auto& [name, of] : types.declared) check(of);
}

}  // namespace arctrace::fuzz
