#include "reader/render/describe_kernel.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "reader/trace/bytes.hpp"

namespace arctrace::cli {
namespace {

using reader::BodyReader;

std::string task_name(std::span<const std::byte> bytes) {
  std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return name.substr(0, std::min(name.find('\0'), name.size()));
}

// The kernel's TASK_* bits, as far as they occur when a task leaves its CPU.
const char* state_text(uint32_t state) {
  if (state == 0) return "ready";
  if (state == ARCTRACE_SWITCH_UNKNOWN) return "blocked";
  if ((state & 1) != 0) return "sleeps";
  if ((state & 2) != 0) return "sleeps uninterruptibly";
  if ((state & 4) != 0) return "stopped";
  if ((state & 8) != 0) return "traced";
  return "gone";
}

const char* context_text(uint32_t context) {
  if ((context & ARCTRACE_WAKING_UNKNOWN) != 0) return "unknown";
  if ((context & ARCTRACE_WAKING_INTERRUPT) != 0) return "interrupt";
  return (context & ARCTRACE_WAKING_SOFTIRQ) != 0 ? "softirq" : "thread";
}

// The commonest of the kernel's REQ_OP_*.
const char* operation_text(uint32_t operation) {
  constexpr const char* kNames[] = {"read", "write", "flush", "discard"};
  return operation < std::size(kNames) ? kNames[operation] : "other";
}

void describe_request(BodyReader& body, FieldSink& out) {
  out.number("sector", body.u64());
  const uint32_t device = body.u32();  // as the kernel packs it: 12 and 20 bits
  out.text("device", absl::StrCat(device >> 20, ":", device & 0xFFFFF));
  out.number("bytes", body.u32());
  out.text("operation", operation_text(body.u32()));
}

void describe_body(uint16_t type, BodyReader body, FieldSink& out) {
  switch (type) {
    case ARCTRACE_TYPE_SWITCH: {
      out.text("state", state_text(body.u32()));
      const uint32_t next_tid = body.u32();
      if (next_tid == ARCTRACE_SWITCH_UNKNOWN) return;
      out.number("next_tid", next_tid);
      return out.number("next_tgid", body.u32());
    }
    case ARCTRACE_TYPE_WAKING:
      out.number("woken_tid", body.u32());
      out.number("woken_tgid", body.u32());
      return out.text("context", context_text(body.u32()));
    case ARCTRACE_TYPE_FORKED:
      out.number("child_tid", body.u32());
      return out.number("child_tgid", body.u32());
    case ARCTRACE_TYPE_EXECED:
      return out.text("program", task_name(body.rest().first(16)));
    case ARCTRACE_TYPE_SYSCALL:
      return out.number("number", body.u32());
    case ARCTRACE_TYPE_SYSCALL_END:
      return out.signed_number("result", static_cast<int64_t>(body.u64()));
    case ARCTRACE_TYPE_PAGE_FAULT:
      out.hex("address", body.u64());
      return out.number("error", body.u32());
    case ARCTRACE_TYPE_SIGNAL:
      return out.number("signal", body.u32());
    case ARCTRACE_TYPE_CONTENTION:
      out.hex("lock", body.u64());
      return out.number("flags", body.u32());
    case ARCTRACE_TYPE_CONTENTION_END:
      out.hex("lock", body.u64());
      return out.signed_number("result", static_cast<int32_t>(body.u32()));
    case ARCTRACE_TYPE_BLOCK_IO:
      return describe_request(body, out);
    case ARCTRACE_TYPE_BLOCK_IO_END:
      describe_request(body, out);
      return out.signed_number("error", static_cast<int32_t>(body.u32()));
    case ARCTRACE_TYPE_NUMBERED:
      out.number("child_tid", body.u32());
      out.number("own_tid", body.u32());
      return out.number("pid_namespace", body.u32());
    default:
      return;
  }
}

}  // namespace

bool describe_kernel(const reader::Record& record, FieldSink& out) {
  if (record.type < ARCTRACE_TYPE_SWITCH || record.type > ARCTRACE_TYPE_NUMBERED) {
    return false;
  }
  BodyReader body(record.body);
  out.number("cpu", body.u32());
  out.number("tgid", body.u32());
  describe_body(record.type, body, out);
  return true;
}

}  // namespace arctrace::cli
