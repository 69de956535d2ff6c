#include "reader/trace/trace_files.hpp"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "reader/trace/session.hpp"

namespace arctrace::reader {
namespace {

class JoinedInput : public Input {
 public:
  explicit JoinedInput(std::span<const std::unique_ptr<Input>> parts) {
    for (const std::unique_ptr<Input>& part : parts) {
      parts_.push_back(part.get());
      begins_.push_back(size_);
      size_ += part->size();
    }
  }

  const std::string& name() const override { return parts_.front()->name(); }
  uint64_t size() const override { return size_; }

  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    size_t done = 0;
    while (done < into.size() && offset + done < size_) {
      const uint64_t at = offset + done;
      const auto next = std::upper_bound(begins_.begin(), begins_.end(), at);
      const auto part = static_cast<size_t>(next - begins_.begin()) - 1;
      const uint64_t end = begins_[part] + parts_[part]->size();
      const auto wanted = std::min<uint64_t>(into.size() - done, end - at);
      const absl::StatusOr<size_t> got =
          parts_[part]->read(at - begins_[part], into.subspan(done, wanted));
      if (!got.ok()) return got.status();
      if (*got == 0) break;
      done += *got;
    }
    return done;
  }

 private:
  std::vector<Input*> parts_;
  std::vector<uint64_t> begins_;
  uint64_t size_ = 0;
};

struct Part {
  std::unique_ptr<Input> input;
  SessionHeader header;
  uint64_t first_ticks = 0;  // of its first chunk
};

absl::StatusOr<Part> open_part(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Input>> input = open_file(path);
  if (!input.ok()) return input.status();
  absl::StatusOr<SessionHeader> header = read_session_header_untrusted(**input);
  if (!header.ok()) return header.status();
  if (header->session.raw) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is a session's buffer, which cannot be read together with files"));
  }
  arctrace_chunk_header chunk{};
  const absl::StatusOr<size_t> read =
      (*input)->read(ARCTRACE_HEADER_SIZE, std::as_writable_bytes(std::span(&chunk, 1)));
  if (!read.ok()) return read.status();
  return Part{*std::move(input), *std::move(header), chunk.ticks};
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Input>>> open_parts(
    const std::vector<std::string>& paths) {
  std::vector<Part> parts;
  for (const std::string& path : paths) {
    absl::StatusOr<Part> part = open_part(path);
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
    const Session& first = parts.front().header.session;
    if (parts.back().header.session.id != first.id) {
      return absl::InvalidArgumentError(
          absl::StrCat(first.path, " and ", path, " are not of one recording"));
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.first_ticks < b.first_ticks;
  });
  std::vector<std::unique_ptr<Input>> inputs;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].first_ticks == parts[i - 1].first_ticks) {
      return absl::InvalidArgumentError(absl::StrCat(
          parts[i - 1].header.session.path, " and ", parts[i].header.session.path,
          " are the same part of a recording"));
    }
    inputs.push_back(std::move(parts[i].input));
  }
  return inputs;
}

std::vector<std::vector<std::string>> group_parts(const std::vector<std::string>& paths) {
  struct Group {
    size_t number = SIZE_MAX;
    std::set<uint64_t> first_ticks;  // of its parts
  };
  std::vector<std::vector<std::string>> groups;
  std::map<std::array<uint8_t, 16>, Group> last_groups;  // by session
  for (const std::string& path : paths) {
    const absl::StatusOr<Part> part = open_part(path);
    if (!part.ok() || part->header.session.mode == ARCTRACE_MODE_OVERWRITE) {
      groups.push_back({path});
      continue;
    }
    Group& group = last_groups[part->header.session.id];
    // A part that comes twice begins a group of its own.
    if (group.number == SIZE_MAX || group.first_ticks.contains(part->first_ticks)) {
      group = {groups.size(), {}};
      groups.emplace_back();
    }
    group.first_ticks.insert(part->first_ticks);
    groups[group.number].push_back(path);
  }
  return groups;
}

std::unique_ptr<Input> join_inputs(std::span<const std::unique_ptr<Input>> parts) {
  return std::make_unique<JoinedInput>(parts);
}

namespace {

// An input of a file that others read, too: reading at an offset changes nothing in it.
class StoppableInput : public Input {
 public:
  StoppableInput(std::shared_ptr<Input> file, TraceFiles::Stops stops)
      : file_(std::move(file)), stops_(std::move(stops)) {}

  const std::string& name() const override { return file_->name(); }
  uint64_t size() const override { return file_->size(); }
  uint64_t pinned_bytes_untrusted() const override {
    return file_->pinned_bytes_untrusted();
  }

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
