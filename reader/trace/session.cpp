// Reads a session's header, and makes the lines by which its ticks become nanoseconds.
#include "reader/trace/session.hpp"

#include <absl/numeric/int128.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace arctrace::reader {
namespace {

absl::Status refuse(const Input& input, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(input.name(), ": ", why));
}

// The checks are in an order in which each relies on the ones before it.
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
  const uint64_t unknown = h.features_required & ~(uint64_t{ARCTRACE_FEATURE_CHECKSUMS} |
                                                   ARCTRACE_FEATURE_CLOCK_WORD);
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
  // A file need not be as long as the buffer was, and the rest of a short image is worth
  // reading.
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
  session.stamps = out.geometry.stamps;
  if (out.geometry.has_clock_word()) session.resolution_ns = h.resolution_ns;
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

// ---- The clock --------------------------------------------------------------------

namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// A change of rate is searched for only if it can be distinguished from noise: it makes
// an error of at most a fourth of this in an interval, and a sync is exact to some 20 ns.
constexpr double kChangeMinNs = 400;
constexpr double kSteadyMaxNs = 150;

double rate_of(const ClockSync& from, const ClockSync& to) {
  return static_cast<double>(to.monotonic_ns - from.monotonic_ns) /
         static_cast<double>(to.ticks - from.ticks);
}

// Returns the time at which the rate changed between sync number i and the next one, if
// it changed there once: the lines before and after, both steady for two intervals, meet
// in between.
std::optional<ClockSync> bend(std::span<const ClockSync> syncs, size_t i) {
  if (i < 2 || i + 3 >= syncs.size()) return std::nullopt;
  const ClockSync& from = syncs[i];
  const ClockSync& to = syncs[i + 1];
  const double ticks = static_cast<double>(to.ticks - from.ticks);
  const double before = rate_of(syncs[i - 1], from);
  const double after = rate_of(to, syncs[i + 2]);
  const double unsteady = std::max(std::abs(before - rate_of(syncs[i - 2], syncs[i - 1])),
                                   std::abs(after - rate_of(syncs[i + 2], syncs[i + 3])));
  const double change = before - after;
  if (std::abs(change) * ticks < kChangeMinNs || unsteady * ticks > kSteadyMaxNs) {
    return std::nullopt;
  }
  const double ns = static_cast<double>(to.monotonic_ns - from.monotonic_ns);
  const double at = (ns - after * ticks) / change;
  if (at < 1 || at > ticks - 1) return std::nullopt;
  return ClockSync{from.ticks + static_cast<uint64_t>(at),
                   from.monotonic_ns + static_cast<uint64_t>(before * at), 0};
}

// Returns a - b as a signed number, which saturates.
int64_t difference(uint64_t a, uint64_t b) {
  if (a >= b) return int64_t(std::min(a - b, uint64_t(kMax)));
  return b - a > uint64_t(kMax) ? kMin : -int64_t(b - a);
}

int64_t add_saturated(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? kMax : kMin;
}

}  // namespace

ClockMap::ClockMap(ClockSync start, uint64_t ticks_per_second) : start_(start) {
  if (ticks_per_second == 0) ticks_per_second = kNsPerSecond;
  segments_.push_back(make_segment(start.ticks, 0, ticks_per_second, kNsPerSecond));
}

uint64_t ClockMap::set_syncs(std::span<const ClockSync> syncs) {
  uint64_t taken = 0;
  uint64_t rejected = 0;
  std::vector<ClockSync> rising{start_};
  for (const ClockSync& sync : syncs) {
    const ClockSync& last = rising.back();
    const bool again = sync.ticks == last.ticks && sync.monotonic_ns == last.monotonic_ns;
    if (!again && (sync.ticks <= last.ticks || sync.monotonic_ns < last.monotonic_ns)) {
      ++rejected;
      continue;
    }
    ++taken;
    if (!again) rising.push_back(sync);
  }
  if (taken >= 2 && rising.size() >= 2) draw(rising);
  last_ = 0;
  return rejected;
}

void ClockMap::draw(std::span<const ClockSync> rising) {
  segments_.clear();
  const auto line = [&](const ClockSync& from, const ClockSync& to) {
    segments_.push_back(
        make_segment(from.ticks, difference(from.monotonic_ns, start_.monotonic_ns),
                     to.ticks - from.ticks, to.monotonic_ns - from.monotonic_ns));
  };
  for (size_t i = 0; i + 1 < rising.size(); ++i) {
    const std::optional<ClockSync> at = bend(rising, i);
    if (at) line(rising[i], *at);
    line(at.value_or(rising[i]), rising[i + 1]);
  }
}

int64_t ClockMap::to_ns(uint64_t ticks) const {
  const auto holds = [&](size_t i) {
    return (i == 0 || segments_[i].origin_ticks <= ticks) &&
           (i + 1 == segments_.size() || ticks < segments_[i + 1].origin_ticks);
  };
  size_t found = __atomic_load_n(&last_, __ATOMIC_RELAXED);
  if (!holds(found)) {
    const auto next = std::upper_bound(segments_.begin(), segments_.end(), ticks,
                                       [](uint64_t wanted, const Segment& segment) {
                                         return wanted < segment.origin_ticks;
                                       });
    found = next == segments_.begin() ? 0 : size_t(next - segments_.begin()) - 1;
    __atomic_store_n(&last_, found, __ATOMIC_RELAXED);
  }
  return apply(segments_[found], ticks);
}

uint64_t ClockMap::to_ticks(uint64_t monotonic_ns) const {
  const int64_t ns = difference(monotonic_ns, start_.monotonic_ns);
  const auto next = std::upper_bound(
      segments_.begin(), segments_.end(), ns,
      [](int64_t wanted, const Segment& segment) { return wanted < segment.origin_ns; });
  const Segment& segment = next == segments_.begin() ? *next : *(next - 1);
  if (segment.ns_span == 0) return segment.origin_ticks;
  const bool before = ns < segment.origin_ns;
  const absl::uint128 distance = before ? uint64_t(segment.origin_ns) - uint64_t(ns)
                                        : uint64_t(ns) - uint64_t(segment.origin_ns);
  // Rounded so that to_ns returns the same time.
  const absl::uint128 product = distance * segment.tick_span;
  const absl::uint128 span =
      (before ? product : product + segment.ns_span - 1) / segment.ns_span;
  const uint64_t limit =
      before ? segment.origin_ticks : UINT64_MAX - segment.origin_ticks;
  const uint64_t ticks = span > absl::uint128(limit) ? limit : absl::Uint128Low64(span);
  return before ? segment.origin_ticks - ticks : segment.origin_ticks + ticks;
}

int64_t ClockMap::to_realtime_ns(int64_t time_ns) const {
  return add_saturated(difference(start_.realtime_ns, 0), time_ns);
}

ClockMap::Segment ClockMap::make_segment(uint64_t origin_ticks, int64_t origin_ns,
                                         uint64_t tick_span, uint64_t ns_span) {
  const absl::uint128 remainder = absl::MakeUint128(ns_span % tick_span, 0);
  const uint64_t rate_whole = ns_span / tick_span;
  constexpr uint64_t kLimit = uint64_t{1} << 61;
  // The remainder of a short distance is less than two spans.
  const uint64_t short_distance = tick_span < kLimit ? kLimit / (rate_whole + 1) : 0;
  return {origin_ticks,  origin_ns,  tick_span,
          ns_span,       rate_whole, absl::Uint128Low64(remainder / tick_span),
          short_distance};
}

int64_t ClockMap::apply(const Segment& segment, uint64_t ticks) {
  if (ticks >= segment.origin_ticks &&
      ticks - segment.origin_ticks < segment.short_distance) {
    // The calculation below in 64 bits: both products of the remainder may overflow, but
    // their difference is less than two spans, so it is right.
    const uint64_t passed = ticks - segment.origin_ticks;
    const uint64_t quotient =
        passed * segment.rate_whole +
        absl::Uint128High64(absl::uint128(passed) * segment.rate_fraction);
    const uint64_t remainder = passed * segment.ns_span - quotient * segment.tick_span;
    const bool is_more = remainder >= segment.tick_span;
    return add_saturated(segment.origin_ns, int64_t(quotient + (is_more ? 1 : 0)));
  }
  const bool before = ticks < segment.origin_ticks;
  const absl::uint128 distance =
      before ? segment.origin_ticks - ticks : ticks - segment.origin_ticks;
  // The quotient is a multiplication by the reciprocal, which is too small by less than
  // one part in 2^64: the quotient is exact or one too small, and the remainder shows
  // which. A division would take longer than everything else that is done with a record.
  absl::uint128 quotient = distance * segment.rate_whole +
                           absl::Uint128High64(distance * segment.rate_fraction);
  absl::uint128 remainder = distance * segment.ns_span - quotient * segment.tick_span;
  if (remainder >= segment.tick_span) {
    quotient += 1;
    remainder -= segment.tick_span;
  }
  if (before && remainder != 0) quotient += 1;  // floor
  const int64_t span = quotient > absl::uint128(uint64_t(kMax))
                           ? kMax
                           : int64_t(absl::Uint128Low64(quotient));
  return add_saturated(segment.origin_ns, before ? -span : span);
}

}  // namespace arctrace::reader
