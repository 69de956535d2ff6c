// Records for which the file had no space, by what wrote them.
#include "src/recorder/file/file_losses.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace {
namespace {

// A CPU's block with `count` records.
std::vector<std::byte> cpu_block(uint32_t cpu, int count) {
  arctrace_block_header header{};
  header.magic = ARCTRACE_BLOCK_MAGIC;
  header.form = ARCTRACE_FORM_FULL;
  header.block_class = ARCTRACE_CLASS_DATA;
  header.writer = ARCTRACE_WRITER_KERNEL;
  recorder::RecordBuilder records;
  for (int i = 0; i < count; ++i) {
    records.begin(ARCTRACE_TYPE_SYSCALL, ARCTRACE_WRITER_KERNEL | 7, 100);
    records.body(
        arctrace_syscall_body{.cpu = cpu, .tgid = 7, .number = 1, .reserved = 0});
  }
  std::vector<std::byte> block(sizeof header);
  std::memcpy(block.data(), &header, sizeof header);
  block.insert(block.end(), records.bytes().begin(), records.bytes().end());
  return block;
}

TEST_CASE("file losses: the kernel's records count for their CPU") {
  recorder::FileLosses losses;
  losses.add_block_untrusted(cpu_block(3, 5));
  losses.add_block_untrusted(cpu_block(1, 2));
  losses.add_block_untrusted(cpu_block(3, 4));
  CHECK(losses.count() == 0);
  CHECK(losses.count_all() == 11);
  recorder::RecordBuilder records;
  losses.report(records, 200);
  const std::vector<std::byte>& bytes = records.bytes();
  constexpr size_t kSize = sizeof(arctrace_full_head) + sizeof(arctrace_lost_body);
  REQUIRE(bytes.size() == 2 * kSize);
  const auto lost = [&](size_t i) {
    return load_part_untrusted<arctrace_lost_body>(
        std::span(bytes).subspan(i * kSize + sizeof(arctrace_full_head)));
  };
  CHECK(lost(0).cause == ARCTRACE_LOST_FILE);
  CHECK((lost(0).flags >> ARCTRACE_LOST_CPU_SHIFT) == 1);
  CHECK(lost(0).count == 2);
  CHECK((lost(1).flags >> ARCTRACE_LOST_CPU_SHIFT) == 3);
  CHECK(lost(1).count == 9);
}

}  // namespace
}  // namespace arctrace
