// Collects what a trace hands to its reader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {

struct CollectedRecord {
  reader::Record record;  // its body is `body` here
  std::vector<std::byte> body;
  uint32_t writer = 0;  // 0: no thread
};

// A trace opened from bytes. REQUIRES: it can be opened.
reader::Trace open_bytes(std::vector<std::byte> bytes,
                         const reader::OpenOptions& options = {});

// Collects all records. REQUIRES: they can be read.
std::vector<CollectedRecord> collect(reader::Trace& trace);

// The records of one type.
std::vector<CollectedRecord> of_type(const std::vector<CollectedRecord>& all,
                                     uint16_t type);

// The rules of a trace's findings, in order, such as {"R1", "B4"}.
std::vector<std::string> rules_of(const reader::Trace& trace);

// The first u32 / u64 of a body, with which the tests number their records.
uint32_t first_u32(const CollectedRecord& record);
uint64_t first_u64(const CollectedRecord& record);

// A file of one program with one thread and two exclusive blocks.
FileBuilder small_file();

}  // namespace arctrace::testing
