#include "reader/trace/session_header.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <span>
#include <string>

namespace arctrace::reader {
namespace {

absl::Status refuse(const Input& input, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(input.name(), ": ", why));
}

// The checks stand in an order in which each relies on the ones before it.
absl::Status check_identity(const Input& input, const arctrace_session_header& h,
                            size_t bytes) {
  if (bytes == 0) return refuse(input, "an empty file, not an arctrace trace");
  if (bytes < sizeof h.magic ||
      (h.magic != ARCTRACE_FILE_MAGIC && h.magic != ARCTRACE_SESSION_MAGIC)) {
    return refuse(input, "not an arctrace trace");
  }
  if (input.size() < ARCTRACE_HEADER_SIZE || bytes < sizeof h) {
    return refuse(input, absl::StrCat("cut off inside its header (", input.size(), " of ",
                                      ARCTRACE_HEADER_SIZE, " bytes)"));
  }
  if (h.byte_order != ARCTRACE_BYTE_ORDER) {
    return refuse(input, "was made on a machine of another byte order");
  }
  if (h.version_major != ARCTRACE_VERSION_MAJOR) {
    return refuse(input, absl::StrCat("is of format version ", h.version_major, ".",
                                      h.version_minor, "; this arctrace reads version ",
                                      ARCTRACE_VERSION_MAJOR));
  }
  const uint64_t unknown = h.features_required & ~uint64_t{ARCTRACE_FEATURE_CHECKSUMS};
  if (unknown != 0) {
    return refuse(input,
                  absl::StrCat("needs features that this arctrace does not have (0x",
                               absl::Hex(unknown), ")"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SessionHeader> read_session_header_untrusted(Input& input) {
  arctrace_session_header h{};
  const absl::StatusOr<size_t> bytes =
      input.read(0, std::as_writable_bytes(std::span(&h, 1)));
  if (!bytes.ok()) return bytes.status();
  if (absl::Status status = check_identity(input, h, *bytes); !status.ok()) return status;

  SessionHeader out;
  // A file need not be as long as the buffer was, and what is left of a short image is
  // worth reading.
  const GeometryError error =
      read_geometry_untrusted(h, h.magic, UINT64_MAX, out.geometry);
  if (error != GeometryError::kNone) {
    return refuse(input, absl::StrCat("its header is damaged: ", describe(error)));
  }
  Session& session = out.session;
  session.path = input.name();
  session.size_bytes = input.size();
  session.raw = h.magic == ARCTRACE_SESSION_MAGIC;
  session.version_major = h.version_major;
  session.version_minor = h.version_minor;
  session.mode = h.mode;
  session.scope = h.scope;
  session.clock = h.clock;
  session.block_size = h.block_size;
  session.block_count = h.block_count;
  session.slot_count = h.slot_count;
  session.cpu_count = h.cpu_count;
  session.buffer_size = h.total_size;
  session.creator_pid = h.creator_pid;
  session.creator_uid = h.creator_uid;
  session.pinned_bytes =
      h.pinned == 1 ? h.total_size : std::min(uint64_t{h.pinned} << 10, h.total_size);
  session.has_checksums = (h.features_required & ARCTRACE_FEATURE_CHECKSUMS) != 0;
  session.index_offset = session.raw ? 0 : h.index_offset;
  session.has_perf_records = (h.features_optional & ARCTRACE_FEATURE_PERF) != 0;
  session.ticks_per_second = h.ticks_per_second;
  session.start_ticks = h.start_ticks;
  session.start_monotonic_ns = h.start_monotonic_ns;
  session.start_realtime_ns = h.start_realtime_ns;
  std::copy(std::begin(h.session_id), std::end(h.session_id), session.id.begin());
  return out;
}

}  // namespace arctrace::reader
