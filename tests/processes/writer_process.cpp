#include "tests/processes/writer_process.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "src/writer/record.hpp"
#include "tests/support/random.hpp"

namespace arctrace::testing {
namespace {

constexpr uint32_t kEvent = 1;  // no layout: the payload is ours alone
constexpr uint32_t kPayloadMax = 512;

struct Head {
  uint64_t sequence;
  uint32_t number;
  uint32_t size;  // of the payload
  uint64_t check;
};

using Payload = std::array<std::byte, kPayloadMax>;

uint64_t check_of(const Head& head) {
  Random random(head.sequence << 20 ^ uint64_t{head.number} << 10 ^ head.size);
  return random.next();
}

// Makes a payload of `size` bytes; those after the head follow from it.
Payload make_payload(uint32_t number, uint64_t sequence, uint32_t size) {
  Head head{sequence, number, size, 0};
  head.check = check_of(head);
  Payload payload{};
  Random random(head.check);
  for (size_t i = sizeof head; i < size; ++i) payload[i] = std::byte(random.next());
  std::memcpy(payload.data(), &head, sizeof head);
  return payload;
}

class Writer {
 public:
  Writer(const WriterTask& task, Progress& progress)
      : task_(task), progress_(progress), random_(task.seed) {}

  void run() {
    while (progress_.done < task_.attempts) {
      attempt();
      progress_.writer = writer::thread_local_state.state->slot.writer;
      // Without pauses the collector would never get a CPU.
      if (random_.below(16) == 0) usleep(random_.below(200));
    }
    std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost{};
    arctrace_lost(lost.data());
    lost[ARCTRACE_LOST_NO_SLOT] = 0;  // the whole session's
    uint64_t sum = 0;
    for (const uint64_t count : lost) sum += count;
    progress_.lost = sum;
  }

 private:
  void attempt() {
    const uint32_t kind = random_.below(10);
    if (kind < 5) {
      const uint32_t size = payload_size();
      begin();
      arctrace_write(kEvent, payload(size).data(), size);
    } else if (kind < 7) {
      const uint32_t size = payload_size();
      begin();
      void* payload_at = arctrace_reserve(kEvent, size);
      if (payload_at != nullptr) std::memcpy(payload_at, payload(size).data(), size);
      arctrace_commit(payload_at);
    } else if (kind == 7) {
      begin();
      void* payload_at = arctrace_reserve(kEvent, payload_size());
      arctrace_discard(payload_at);
      if (payload_at != nullptr) {  // a discarded record does not count
        progress_.begun = progress_.done.load();
        return;
      }
    } else {
      begin();
      arctrace_enter(task_.number);
      progress_.done = progress_.begun.load();
      begin();
      arctrace_exit(task_.number);
    }
    progress_.done = progress_.begun.load();
  }

  void begin() { progress_.begun = progress_.done + 1; }

  uint32_t payload_size() {
    const auto least = static_cast<uint32_t>(sizeof(Head));
    return least + random_.below(task_.payload_max - least + 1);
  }
  Payload payload(uint32_t size) const {
    return make_payload(task_.number, progress_.begun, size);
  }

  const WriterTask& task_;
  Progress& progress_;
  Random random_;
};

}  // namespace

SharedProgress::SharedProgress(size_t count)
    : SharedProgress(memfd_create("progress", 0), count) {}

SharedProgress::SharedProgress(int fd, size_t count) : fd_(fd), count_(count) {
  const size_t size = count * sizeof(Progress);
  REQUIRE(ftruncate(fd, static_cast<off_t>(size)) == 0);
  void* const shared = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(shared != MAP_FAILED);
  progress_ = static_cast<Progress*>(shared);  // zeros
}

SharedProgress::~SharedProgress() {
  munmap(progress_, count_ * sizeof(Progress));
  close(fd_);
}

void run_writer(const std::string& session, const WriterTask& task, Progress& progress) {
  REQUIRE(task.payload_max <= kPayloadMax);
  REQUIRE(arctrace_attach(session.c_str()) == 0);
  Writer(task, progress).run();
}

PayloadFacts payload_facts(const DecodedRecord& event) {
  constexpr size_t kBegin = 4;  // after the event's id
  const std::string text = event.text(kBegin, event.body.size());
  Head head{};
  if (event.u32(0) != kEvent || text.size() < sizeof head) return {};
  std::memcpy(&head, text.data(), sizeof head);
  // Records are multiples of 4 bytes.
  const bool sized = head.size >= sizeof head && head.size <= kPayloadMax &&
                     text.size() == (size_t{head.size} + 3) / 4 * 4;
  if (!sized || head.check != check_of(head)) return {};
  const Payload expected = make_payload(head.number, head.sequence, head.size);
  const bool whole = std::memcmp(text.data(), expected.data(), head.size) == 0;
  return {whole, head.number, head.sequence};
}

}  // namespace arctrace::testing
