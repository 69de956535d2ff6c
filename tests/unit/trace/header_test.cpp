// Inputs that cannot be opened, and the message of each error.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::reader {
namespace {

using testing::FileBuilder;

std::string refusal(std::vector<std::byte> bytes) {
  const auto trace = Trace::open(memory_input("t", std::move(bytes)));
  if (trace.ok()) return "";
  std::string message(trace.status().message());
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

TEST_CASE("an empty file, a foreign one, a short one") {
  CHECK(refusal({}) == "t: an empty file, not an arctrace trace");
  CHECK(refusal(std::vector<std::byte>(5)) == "t: not an arctrace trace");
  CHECK(refusal(std::vector<std::byte>(100'000, std::byte{0x7f})) ==
        "t: not an arctrace trace");
  const std::vector<std::byte> whole = FileBuilder().file();
  for (const size_t size : {8u, 100u, 160u, 4095u}) {
    CAPTURE(size);
    CHECK(refusal({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}) ==
          "t: cut off inside its header (" + std::to_string(size) + " of 4096 bytes)");
  }
  CHECK(refusal(whole).empty());
}

TEST_CASE("another version, byte order or feature") {
  FileBuilder version;
  version.header.version_major = 2;
  version.header.version_minor = 3;
  CHECK(refusal(version.file()) ==
        "t: is of format version 2.3; this arctrace reads version 1");
  FileBuilder minor;
  minor.header.version_minor = 9;
  CHECK(refusal(minor.file()).empty());
  FileBuilder order;
  order.header.byte_order = 0x04030201;
  CHECK(refusal(order.file()) == "t: was made on a machine of another byte order");
  FileBuilder feature;
  feature.header.features_required = 0x10;
  CHECK(refusal(feature.file()) ==
        "t: needs features that this arctrace does not have (0x10)");
  FileBuilder optional;
  optional.header.features_optional = 0x10;
  CHECK(refusal(optional.file()).empty());
}

TEST_CASE("a geometry that cannot be") {
  const auto refused = [](auto change) {
    FileBuilder file;
    change(file.header);
    return refusal(file.file()).find("its header is damaged: ") != std::string::npos;
  };
  CHECK(refused([](auto& h) { h.block_size = 100; }));
  CHECK(refused([](auto& h) { h.block_count = 0; }));
  CHECK(refused([](auto& h) { h.slot_count = 0; }));
  CHECK(refused([](auto& h) { h.cpu_count = 100'000; }));
  CHECK(refused([](auto& h) { h.mode = 9; }));
  CHECK(refused([](auto& h) { h.blocks_offset += 64; }));
  CHECK(refused([](auto& h) { h.total_size = 0; }));
}

TEST_CASE("paths") {
  const auto message = [](const std::string& path) {
    return std::string(Trace::open(path).status().message());
  };
  CHECK(message("/nonexistent/x") ==
        "cannot open /nonexistent/x: No such file or directory");
  CHECK(message("/dev/null") == "/dev/null: not a regular file");
  CHECK(message("/tmp") == "/tmp: not a regular file");
}

TEST_CASE("a file on disk reads as one in memory") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  const std::vector<std::byte> bytes = FileBuilder().finish(5).file();
  std::ofstream(path).write(reinterpret_cast<const char*>(bytes.data()),
                            static_cast<std::streamsize>(bytes.size()));
  auto trace = Trace::open(path);
  REQUIRE(trace.ok());
  CHECK(trace->session().path == path);
  CHECK(trace->session().finished);
  CHECK(trace->session().size_bytes == bytes.size());
  CHECK(trace->read([](const Record&) { return true; }).ok());
  CHECK(trace->finding_count() == 0);
}

}  // namespace
}  // namespace arctrace::reader
