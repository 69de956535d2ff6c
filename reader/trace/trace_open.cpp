// What a program asks of a Trace: opening one, and its facts.
#include <optional>
#include <utility>

#include "reader/trace/joined_files.hpp"
#include "reader/trace/trace_impl.hpp"

namespace arctrace::reader {

absl::StatusOr<Trace> Trace::open(const std::string& path, OpenOptions options) {
  absl::StatusOr<std::unique_ptr<Input>> input = open_file(path);
  if (!input.ok()) return input.status();
  return open(*std::move(input), options);
}

absl::StatusOr<Trace> Trace::open(std::unique_ptr<Input> input, OpenOptions options) {
  std::vector<std::unique_ptr<Input>> parts;
  parts.push_back(std::move(input));
  return open(std::move(parts), options);
}

absl::StatusOr<Trace> Trace::open(const std::vector<std::string>& paths,
                                  OpenOptions options) {
  if (paths.size() == 1) return open(paths.front(), options);
  absl::StatusOr<std::vector<std::unique_ptr<Input>>> parts = open_parts(paths);
  if (!parts.ok()) return parts.status();
  return open(*std::move(parts), options);
}

absl::StatusOr<Trace> Trace::open(std::vector<std::unique_ptr<Input>> parts,
                                  OpenOptions options) {
  const absl::StatusOr<SessionHeader> header =
      read_session_header_untrusted(*parts.front());
  if (!header.ok()) return header.status();
  auto impl = std::make_unique<Impl>(std::move(parts), *header, options);
  if (absl::Status status = impl->load(true); !status.ok()) return status;
  if (const std::optional<Finding> wrong = impl->wrong_index) {
    impl = std::make_unique<Impl>(std::move(impl->parts), *header, options);
    impl->findings.add(*wrong);
    if (absl::Status status = impl->load(false); !status.ok()) return status;
  }
  return Trace(std::move(impl));
}

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

const Session& Trace::session() const { return impl_->session; }
const Definitions& Trace::definitions() const { return impl_->definitions; }
std::span<const BlockRef> Trace::blocks() const { return impl_->all_blocks; }
Trace::End Trace::end() const { return impl_->end; }
const ClockMap& Trace::clock() const { return impl_->clock; }
const BufferState* Trace::buffer() const {
  return impl_->session.raw ? &impl_->buffer : nullptr;
}
absl::Status Trace::read(const RecordSink& sink) { return impl_->read(sink); }
uint64_t Trace::bytes_to_read() const { return impl_->bytes_to_read(); }
const Summary& Trace::summary() const { return impl_->summary; }
std::span<const Finding> Trace::findings() const { return impl_->findings.kept(); }
uint64_t Trace::finding_count() const { return impl_->findings.count(); }
void Trace::add_finding(Finding finding) { add_findings({&finding, 1}, 1); }
void Trace::add_findings(std::span<const Finding> kept, uint64_t count) {
  impl_->findings.add_all(kept, count);
  impl_->summary.findings = impl_->findings.count();
}

}  // namespace arctrace::reader
