#include "reader/trace/shared_writers.hpp"

#include <algorithm>

#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

// The number of a kernel record's process; 0 for other records.
uint32_t tgid_untrusted(const RawRecord& record) {
  if (class_of(record.type) != RecordClass::kKernel) return 0;
  return load_part_untrusted<arctrace_kernel_body>(record.body).tgid;
}

// The name in a record of type NAMED or EXECED, which has the same body.
std::string name_untrusted(const RawRecord& record) {
  const auto body = load_part_untrusted<arctrace_named_body>(record.body);
  const std::string name(body.name, sizeof body.name);
  return name.substr(0, name.find('\0'));
}

}  // namespace

void SharedWriters::add_untrusted(const RawRecord& record, const BlockRef& block) {
  const auto [entry, is_new] = writers_.try_emplace(record.writer);
  SharedFacts& writer = entry->second;
  if (is_new) writer.tgid = tgid_untrusted(record);
  if (record.type == ARCTRACE_TYPE_NAMED || record.type == ARCTRACE_TYPE_EXECED) {
    writer.name = name_untrusted(record);
    writer.is_foreign |= record.type == ARCTRACE_TYPE_NAMED;
  }
  if (record.type == ARCTRACE_TYPE_EXECED) executed_.insert(tgid_untrusted(record));
  if (record.type == ARCTRACE_TYPE_FORKED) {
    const auto body = load_part_untrusted<arctrace_forked_body>(record.body);
    if (body.child_tgid != body.tgid) forkers_[body.child_tgid] = body.tgid;
  }
  if (record.type == ARCTRACE_TYPE_NUMBERED) {
    const auto body = load_part_untrusted<arctrace_numbered_body>(record.body);
    numbered_[body.child_tid] = {body.pid_namespace, body.own_tid};
  }
  if (record.type == ARCTRACE_TYPE_INTERRUPT) {
    const uint32_t cpu = load_part_untrusted<arctrace_kernel_body>(record.body).cpu;
    if (cpu < ARCTRACE_CPU_COUNT_MAX) interrupted_cpus_.insert(cpu);
  }
  if (block.of_kernel()) return;
  writer.first_ticks = std::min(writer.first_ticks, record.ticks);
}

void SharedWriters::add(uint32_t writer, uint64_t first_ticks) {
  SharedFacts& facts = writers_[writer];
  facts.first_ticks = std::min(facts.first_ticks, first_ticks);
}

std::vector<uint32_t> SharedWriters::sorted() const {
  std::vector<uint32_t> sorted;
  sorted.reserve(writers_.size());
  for (const auto& [writer, facts] : writers_) sorted.push_back(writer);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace arctrace::reader
