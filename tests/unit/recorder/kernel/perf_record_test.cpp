// How bytes of perf's records are interpreted.
#include <doctest/doctest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/recorder/kernel/perf_writer.hpp"
#include "tests/support/random.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

using Kind = recorder::PerfRecord::Kind;

class PerfBytes {
 public:
  PerfBytes& u32(uint32_t value) { return raw(&value, sizeof value); }
  PerfBytes& u64(uint64_t value) { return raw(&value, sizeof value); }
  PerfBytes& raw(const void* from, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
    return *this;
  }
  // Appends the end of each record, of thread 11/12 on CPU 1.
  PerfBytes& sample_id(uint64_t time_ns) {
    return u32(11).u32(12).u64(time_ns).u32(1).u32(0);
  }
  const std::vector<std::byte>& all() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

PerfBytes record(uint32_t type, unsigned misc, const PerfBytes& body) {
  perf_event_header head{};
  head.type = type;
  head.misc = static_cast<uint16_t>(misc);
  head.size = static_cast<uint16_t>(sizeof head + body.all().size());
  PerfBytes bytes;
  bytes.raw(&head, sizeof head).raw(body.all().data(), body.all().size());
  return bytes;
}

std::vector<recorder::PerfRecord> all_of(const PerfBytes& bytes) {
  std::vector<recorder::PerfRecord> records;
  std::span<const std::byte> left = bytes.all();
  while (const auto next = recorder::next_perf_record_untrusted(left))
    records.push_back(*next);
  return records;
}

TEST_CASE("perf: switches, with the thread that was preempted") {
  PerfBytes bytes;
  for (const unsigned misc :
       {0u, unsigned{PERF_RECORD_MISC_SWITCH_OUT},
        unsigned{PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT}}) {
    const PerfBytes one = record(PERF_RECORD_SWITCH, misc | PERF_RECORD_MISC_USER,
                                 PerfBytes().sample_id(1000u + misc));
    bytes.raw(one.all().data(), one.all().size());
  }
  const auto records = all_of(bytes);
  REQUIRE(records.size() == 3);
  CHECK(records[0].kind == Kind::kSwitchIn);
  CHECK(records[1].kind == Kind::kBlocked);
  CHECK(records[2].kind == Kind::kPreempted);
  CHECK(records[0].thread.pid == 11);
  CHECK(records[0].thread.tid == 12);
  CHECK(records[0].time_ns == 1000);
  CHECK(records[1].time_ns == 1000 + PERF_RECORD_MISC_SWITCH_OUT);
}

TEST_CASE("perf: fork, exit and exec are about the threads that they name") {
  // pid, ppid, tid, ptid, time.
  const PerfBytes task =
      PerfBytes().u32(21).u32(11).u32(22).u32(13).u64(5).sample_id(2000);
  const auto forked = all_of(record(PERF_RECORD_FORK, 0, task));
  REQUIRE(forked.size() == 1);
  CHECK(forked[0].kind == Kind::kFork);
  CHECK(forked[0].thread.pid == 11);
  CHECK(forked[0].thread.tid == 13);
  CHECK(forked[0].child.pid == 21);
  CHECK(forked[0].child.tid == 22);
  CHECK(forked[0].time_ns == 2000);
  const auto exited = all_of(record(PERF_RECORD_EXIT, 0, task));
  REQUIRE(exited.size() == 1);
  CHECK(exited[0].kind == Kind::kExit);
  CHECK(exited[0].thread.tid == 22);
  const PerfBytes comm = PerfBytes().u32(31).u32(32).raw("a-name\0", 8).sample_id(3000);
  const auto execed = all_of(record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, comm));
  REQUIRE(execed.size() == 1);
  CHECK(execed[0].kind == Kind::kExec);
  CHECK(execed[0].thread.tid == 32);
  CHECK(std::string(execed[0].name.data()) == "a-name");
  // This is just another name.
  CHECK(all_of(record(PERF_RECORD_COMM, 0, comm)).at(0).kind == Kind::kOther);
}

TEST_CASE("perf: records that nobody asked for are stepped over") {
  PerfBytes bytes = record(PERF_RECORD_LOST, 0, PerfBytes().u64(1).u64(7).sample_id(1));
  const PerfBytes more = record(PERF_RECORD_SWITCH, 0, PerfBytes().sample_id(2));
  bytes.raw(more.all().data(), more.all().size());
  const auto records = all_of(bytes);
  REQUIRE(records.size() == 2);
  CHECK(records[0].kind == Kind::kOther);
  CHECK(records[1].kind == Kind::kSwitchIn);
}

TEST_CASE("perf: what is too short is nothing, and ends nothing but itself") {
  const PerfBytes good = record(PERF_RECORD_SWITCH, 0, PerfBytes().sample_id(9));
  for (const uint32_t type : {uint32_t{PERF_RECORD_SWITCH}, uint32_t{PERF_RECORD_FORK},
                              uint32_t{PERF_RECORD_EXIT}, uint32_t{PERF_RECORD_COMM}}) {
    const unsigned misc = type == PERF_RECORD_COMM ? PERF_RECORD_MISC_COMM_EXEC : 0;
    // A record of each length, with all its fields in place, then a good one.
    for (uint32_t words = 0; words < 12; ++words) {
      PerfBytes body;
      for (uint32_t i = 0; i < words; ++i) body.u32(77);
      PerfBytes bytes = record(type, misc, body);
      bytes.raw(good.all().data(), good.all().size());
      const auto records = all_of(bytes);
      REQUIRE(records.size() == 2);
      const uint32_t fixed = type == PERF_RECORD_SWITCH ? 6
                             : type == PERF_RECORD_COMM ? 8
                                                        : 12;
      CHECK((records[0].kind == Kind::kOther) == (words < fixed));
      CHECK(records[1].time_ns == 9);
    }
  }
}

TEST_CASE("perf: sizes that can't be end the walk") {
  for (const uint16_t size : {uint16_t{0}, uint16_t{7}, uint16_t{33}, uint16_t{65535}}) {
    PerfBytes body = PerfBytes().sample_id(9);
    perf_event_header head{};
    head.type = PERF_RECORD_SWITCH;
    head.size = size;
    PerfBytes bytes;
    bytes.raw(&head, sizeof head).raw(body.all().data(), body.all().size());
    CHECK(all_of(bytes).empty());
  }
}

TEST_CASE("perf: any bytes end, and nothing after them is read") {
  Random random(test_seed());
  for (int round = 0; round < 20000; ++round) {
    // The bytes are a memory block of their own, so that AddressSanitizer sees its end.
    std::vector<std::byte> bytes(random.below(96));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    // Often the type is one that we know, and the size a possible one.
    if (bytes.size() >= sizeof(perf_event_header)) {
      perf_event_header head{};
      head.type = static_cast<uint32_t>(random.below(16));
      head.misc = static_cast<uint16_t>(random.below(65536));
      head.size = static_cast<uint16_t>(random.below(100));
      std::memcpy(bytes.data(), &head, sizeof head);
    }
    std::span<const std::byte> left = bytes;
    size_t records = 0;
    while (recorder::next_perf_record_untrusted(left)) ++records;
    CHECK(records * sizeof(perf_event_header) <= bytes.size());
  }
}

TEST_CASE("perf: a thread's number may be missing") {
  CHECK(recorder::PerfRecord::Thread{11, 12}.is_known());
  CHECK_FALSE(recorder::PerfRecord::Thread{0, 0}.is_known());
  CHECK_FALSE(recorder::PerfRecord::Thread{11, UINT32_MAX}.is_known());
  CHECK_FALSE(recorder::PerfRecord::Thread{UINT32_MAX, 12}.is_known());
}

}  // namespace
}  // namespace arctrace::testing
