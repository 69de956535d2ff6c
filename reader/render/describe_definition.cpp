#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>

#include "reader/render/record_describer.hpp"
#include "reader/trace/bytes.hpp"
#include "reader/trace/format_names.hpp"

namespace arctrace::cli {
namespace {

using reader::BodyReader;

// Arguments, each ended by a zero byte.
void put_arguments(std::string_view joined, FieldSink& out) {
  out.begin_list("arguments");
  while (!joined.empty()) {
    const size_t end = std::min(joined.find('\0'), joined.size());
    out.text("", joined.substr(0, end));
    joined.remove_prefix(std::min(end + 1, joined.size()));
  }
  out.end();
}

void put_process(BodyReader body, FieldSink& out) {
  for (const char* name : {"process", "parent"}) {
    out.number(name, body.u32());
  }
  body.u32();  // pid: the record's own
  for (const char* name : {"ppid", "uid"}) out.number(name, body.u32());
  out.text("origin", reader::origin_text(body.u32()));
  body.u64();  // start
  const uint32_t executable_size = body.u32();
  const uint32_t arguments_size = body.u32();
  out.text("executable", body.padded_text(executable_size));
  put_arguments(body.padded_text(arguments_size), out);
}

void put_thread(BodyReader body, FieldSink& out) {
  for (const char* name : {"writer", "process"}) out.number(name, body.u32());
  body.u32();  // tid: the record's own
  const uint32_t size = body.u32();
  body.u64();  // start
  out.text("name", body.padded_text(size));
}

void put_module(BodyReader body, FieldSink& out) {
  out.number("process", body.u32());
  const uint32_t flags = body.u32();
  for (const char* name : {"start", "end", "bias"}) out.hex(name, body.u64());
  body.u64();  // device
  body.u64();  // inode
  const uint32_t build_id_size = body.u32();
  const uint32_t path_size = body.u32();
  const std::string_view build_id = body.padded_text(build_id_size);
  out.text("path", body.padded_text(path_size));
  out.text("build_id", absl::BytesToHexString({build_id.data(), build_id.size()}));
  if ((flags & ARCTRACE_MODULE_MAIN) != 0) out.boolean("main", true);
  if ((flags & ARCTRACE_MODULE_VDSO) != 0) out.boolean("vdso", true);
}

void put_layout(BodyReader body, FieldSink& out) {
  for (const char* name : {"process", "id", "level"}) out.number(name, body.u32());
  const uint32_t fields = body.u32();
  const uint32_t name_size = body.u32();
  out.text("name", body.padded_text(name_size));
  out.begin_list("fields");
  for (uint32_t i = 0; i < fields && body.ok(); ++i) {
    const std::string type = reader::field_type_text(body.u32());
    const uint32_t size = body.u32();
    out.text("", absl::StrCat(std::string(body.padded_text(size)), ":", type));
  }
  out.end();
}

void put_code(BodyReader body, FieldSink& out) {
  out.number("process", body.u32());
  const uint32_t name_size = body.u32();
  for (const char* name : {"start", "size"}) out.hex(name, body.u64());
  out.number("since_monotonic_ns", body.u64());
  out.text("name", body.padded_text(name_size));
}

void put_code_file(BodyReader body, FieldSink& out) {
  out.number("process", body.u32());
  out.text("kind", reader::code_file_kind_text(body.u32()));
  for (const char* name : {"names", "left_out"}) out.number(name, body.u64());
  const uint32_t flags = body.u32();
  const uint32_t path_size = body.u32();
  out.text("path", body.padded_text(path_size));
  if ((flags & ARCTRACE_CODE_FILE_CUT) != 0) out.boolean("cut", true);
}

void put_totals(BodyReader body, FieldSink& out) {
  out.number("written", body.u64());
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const uint64_t lost = body.u64();
    if (lost != 0) out.number(reader::loss_cause_text(cause), lost);
  }
}

void put_system(BodyReader body, FieldSink& out) {
  body.u32();  // byte order
  out.number("page_size", body.u32());
  out.number("cpus", body.u32());
  const uint32_t host_size = body.u32();
  const uint32_t kernel_size = body.u32();
  const uint32_t command_size = body.u32();
  out.text("host", body.padded_text(host_size));
  out.text("kernel", body.padded_text(kernel_size));
  put_arguments(body.padded_text(command_size), out);
}

}  // namespace

bool describe_definition(const reader::Record& record, FieldSink& out) {
  BodyReader body(record.body);
  switch (record.type) {
    case ARCTRACE_TYPE_PROCESS:
      put_process(body, out);
      return true;
    case ARCTRACE_TYPE_THREAD:
      put_thread(body, out);
      return true;
    case ARCTRACE_TYPE_MODULE:
      put_module(body, out);
      return true;
    case ARCTRACE_TYPE_MODULE_GONE:
      out.number("process", body.u32());
      body.u32();
      out.hex("start", body.u64());
      return true;
    case ARCTRACE_TYPE_STRING: {
      out.number("process", body.u32());
      out.number("id", body.u32());
      const uint32_t size = body.u32();
      out.text("text", body.padded_text(size));
      return true;
    }
    case ARCTRACE_TYPE_EVENT_LAYOUT:
      put_layout(body, out);
      return true;
    case ARCTRACE_TYPE_PROCESS_END:
      out.number("process", body.u32());
      out.text("how", reader::process_end_text(body.u32()));
      out.signed_number("status", static_cast<int32_t>(body.u32()));
      return true;
    case ARCTRACE_TYPE_PID_NAMESPACE:
      out.number("process", body.u32());
      out.number("inode", body.u32());
      return true;
    case ARCTRACE_TYPE_JITDUMP: {
      out.number("process", body.u32());
      const uint32_t size = body.u32();
      out.text("path", body.padded_text(size));
      return true;
    }
    case ARCTRACE_TYPE_UNTRACED: {
      out.number("process", body.u32());
      out.text("why", reader::untraced_text(body.u32()));
      const uint32_t size = body.u32();
      out.text("path", body.padded_text(size));
      return true;
    }
    case ARCTRACE_TYPE_CODE:
      put_code(body, out);
      return true;
    case ARCTRACE_TYPE_CODE_FILE:
      put_code_file(body, out);
      return true;
    case ARCTRACE_TYPE_SYSTEM:
      put_system(body, out);
      return true;
    case ARCTRACE_TYPE_CLOCK_SYNC:
      for (const char* name : {"ticks", "monotonic_ns", "realtime_ns"}) {
        out.number(name, body.u64());
      }
      return true;
    case ARCTRACE_TYPE_WRITER_END:
      out.number("writer", body.u32());
      out.text("how", reader::writer_end_text(body.u32()));
      return true;
    case ARCTRACE_TYPE_SESSION:
      out.text("what", reader::session_event_text(body.u32()));
      out.number("detail", body.u32());
      return true;
    case ARCTRACE_TYPE_CHILD_STATUS:
      out.number("child_pid", body.u32());
      out.text("status", reader::wait_status_text(static_cast<int32_t>(body.u32())));
      return true;
    case ARCTRACE_TYPE_TOTALS:
      put_totals(body, out);
      return true;
    default:
      return false;
  }
}

}  // namespace arctrace::cli
