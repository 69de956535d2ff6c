#include "reader/trace/buffer_moments.hpp"

#include <arctrace/format.h>

#include <span>
#include <string>

#include "src/protocol/enabled.hpp"

namespace arctrace::reader {
namespace {

class Records {
 public:
  template <class Body>
  void add(uint16_t type, uint64_t ticks, const Body& body, std::string text = "") {
    while (text.size() % 4 != 0) text += '\0';
    const size_t length = sizeof(arctrace_full_head) + sizeof body + text.size();
    const arctrace_full_head head{
        .word0 = ARCTRACE_WORD0(type, length), .writer = 0, .ticks = ticks};
    append(std::as_bytes(std::span(&head, 1)));
    append(std::as_bytes(std::span(&body, 1)));
    append(std::as_bytes(std::span(text)));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(std::span<const std::byte> part) {
    bytes_.insert(bytes_.end(), part.begin(), part.end());
  }
  std::vector<std::byte> bytes_;
};

}  // namespace

absl::StatusOr<std::vector<std::byte>> records_of_moments_untrusted(
    Input& input, const Geometry& geometry) {
  std::vector<uint64_t> copy(ARCTRACE_CPUS_OFFSET / sizeof(uint64_t));
  const auto bytes = std::as_writable_bytes(std::span(copy));
  const absl::StatusOr<size_t> got = input.read(0, bytes);
  if (!got.ok()) return got.status();
  Records records;
  if (*got == bytes.size()) {
    const BufferView view(bytes.data(), geometry);
    for_each_gate_change_untrusted(
        view, 0, [&](uint64_t ticks, uint32_t recorded, const std::string& filter) {
          const arctrace_enabled_body body{
              .gate = recorded, .filter_size = static_cast<uint32_t>(filter.size())};
          records.add(ARCTRACE_TYPE_ENABLED, ticks, body, filter);
        });
    for_each_moment_untrusted(execs(view), 0, [&](uint64_t ticks, uint32_t value) {
      const ExecMoment exec = ExecMoment::unpack(value);
      records.add(ARCTRACE_TYPE_EXEC, ticks,
                  arctrace_exec_body{
                      .pid = exec.pid, .reserved = 0, .within_ticks = exec.within_ticks});
    });
  }
  return records.take();
}

}  // namespace arctrace::reader
