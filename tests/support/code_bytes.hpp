// Files that name generated code, and what is read from them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "src/recorder/jit/perf_files.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {

// A file in memory.
class NamelessFile {
 public:
  explicit NamelessFile(std::string_view bytes) : fd_(memfd_create("test", MFD_CLOEXEC)) {
    if (fd_ < 0 || write(fd_, bytes.data(), bytes.size()) != ssize_t(bytes.size())) {
      throw std::runtime_error("no file in memory");
    }
  }
  ~NamelessFile() { close(fd_); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct TakenCode {
  uint64_t start, size, since_ns;
  std::string name;
  bool operator==(const TakenCode&) const = default;
};

struct ReadCode {
  std::vector<TakenCode> taken;
  recorder::CodeFileSummary summary;

  recorder::CodeSink sink() {
    return [this](const recorder::NamedCode& code) {
      taken.push_back({code.start, code.size, code.since_ns, std::string(code.name)});
      return true;
    };
  }
};

// A jitdump, byte by byte.
class JitDumpBuilder {
 public:
  static constexpr uint32_t kMagic = 0x4A695444;

  explicit JitDumpBuilder(uint32_t pid, uint64_t begun_ns = 0, uint64_t flags = 0,
                          uint32_t magic = kMagic) {
    bytes.u32(magic).u32(1).u32(40).u32(62).u32(0).u32(pid).u64(begun_ns).u64(flags);
  }
  JitDumpBuilder& load(uint64_t time_ns, uint64_t address, uint64_t size,
                       std::string_view name, uint64_t index) {
    Bytes body;
    body.u32(1).u32(1).u64(address).u64(address).u64(size).u64(index);
    body.raw(name.data(), name.size()).fill(1, 0).fill(size, 0x90);
    return record(0, time_ns, body);
  }
  JitDumpBuilder& move(uint64_t time_ns, uint64_t from, uint64_t to, uint64_t size,
                       uint64_t index) {
    Bytes body;
    body.u32(1).u32(1).u64(to).u64(from).u64(to).u64(size).u64(index);
    return record(1, time_ns, body);
  }
  JitDumpBuilder& record(uint32_t id, uint64_t time_ns, const Bytes& body) {
    bytes.u32(id).u32(16 + body.size()).u64(time_ns).append(body);
    return *this;
  }
  std::string text() const {
    return {reinterpret_cast<const char*>(bytes.data().data()), bytes.size()};
  }

  Bytes bytes;
};

}  // namespace arctrace::testing
