#include "reader/trace/trace_files.hpp"

#include <utility>

#include "reader/trace/joined_files.hpp"

namespace arctrace::reader {
namespace {

// A file that others read, too: reading at an offset changes nothing in it.
class StoppableInput : public Input {
 public:
  StoppableInput(std::shared_ptr<Input> file, TraceFiles::Stops stops)
      : file_(std::move(file)), stops_(std::move(stops)) {}

  const std::string& name() const override { return file_->name(); }
  uint64_t size() const override { return file_->size(); }
  uint64_t kept_bytes_untrusted() const override { return file_->kept_bytes_untrusted(); }

  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    if (stops_()) return absl::CancelledError("interrupted");
    return file_->read(offset, into);
  }

 private:
  const std::shared_ptr<Input> file_;
  const TraceFiles::Stops stops_;
};

}  // namespace

absl::StatusOr<TraceFiles> TraceFiles::open(const std::vector<std::string>& paths) {
  std::vector<std::shared_ptr<Input>> files;
  if (paths.size() == 1) {
    absl::StatusOr<std::unique_ptr<Input>> file = open_file(paths.front());
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  } else {
    absl::StatusOr<std::vector<std::unique_ptr<Input>>> parts = open_parts(paths);
    if (!parts.ok()) return parts.status();
    for (std::unique_ptr<Input>& part : *parts) files.push_back(std::move(part));
  }
  return TraceFiles(std::move(files));
}

TraceFiles TraceFiles::of(std::unique_ptr<Input> file) {
  std::vector<std::shared_ptr<Input>> files;
  files.push_back(std::move(file));
  return TraceFiles(std::move(files));
}

absl::StatusOr<Trace> TraceFiles::trace(const OpenOptions& options,
                                        const Stops& stops) const {
  std::vector<std::unique_ptr<Input>> inputs;
  inputs.reserve(files_.size());
  for (const std::shared_ptr<Input>& file : files_) {
    inputs.push_back(std::make_unique<StoppableInput>(file, stops));
  }
  if (inputs.size() == 1) return Trace::open(std::move(inputs.front()), options);
  return Trace::open(std::move(inputs), options);
}

}  // namespace arctrace::reader
