#include "tests/unit/writer_shim/fake_writer.hpp"

#include <algorithm>
#include <cstring>

namespace arctrace::shim {

FakeWriter& fake_writer() {
  static FakeWriter writer;
  return writer;
}

void set_live_filter(const std::string& text) {
  fake_writer().live_filter = text;
  fake_writer().live_generation += 2;
}

}  // namespace arctrace::shim

using arctrace::shim::fake_writer;

void arctrace_shim_patterns_matched(uint64_t patterns) {
  fake_writer().patterns_matched = patterns;
}

void arctrace_shim_set_call_conditions(const arctrace_shim_call_condition*, uint32_t) {}
void arctrace_shim_set_call_args(const arctrace_shim_call_args* all) {
  fake_writer().arg_specs = all;
}

uint32_t arctrace_shim_define_name(const char* name) {
  fake_writer().names.emplace_back(name);
  return static_cast<uint32_t>(fake_writer().names.size());
}

const volatile uint32_t* arctrace_shim_live_filter_number() {
  return &fake_writer().live_generation;
}

int64_t arctrace_shim_copy_live_filter(uint64_t* text, uint32_t* generation) {
  const auto& writer = fake_writer();
  if (writer.is_changing) return -1;
  std::memset(text, '?', ARCTRACE_SHIM_LIVE_FILTER_MAX);
  const size_t size =
      std::min<size_t>(writer.live_filter.size(), ARCTRACE_SHIM_LIVE_FILTER_MAX);
  std::memcpy(text, writer.live_filter.data(), size);
  *generation = writer.live_generation;
  return static_cast<int64_t>(size);
}

void arctrace_shim_follow_live_filter(uint32_t generation, int filter_in_only) {
  fake_writer().followed_generation = generation;
  fake_writer().filter_in_only = filter_in_only;
}
