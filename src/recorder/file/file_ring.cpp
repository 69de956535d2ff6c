// Changes from one file of the ring to the next, retains definitions, and removes old
// files.
#include "src/recorder/file/file_ring.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/untrusted_bytes.hpp"
#include "src/buffer/clock.hpp"
#include "src/recorder/file/session_records.hpp"

namespace arctrace::recorder {

std::string RetainedFiles::next_name() const {
  return absl::StrCat(output_, ".", ever_ + 1);
}

void RetainedFiles::add(uint64_t bytes, uint64_t more, FileEnd end) {
  files_.push_back({next_name(), bytes, end});
  bytes_ += bytes;
  ++ever_;
  const auto too_many = [&] {
    return (limits_.files != 0 && files_.size() > limits_.files) ||
           (limits_.bytes != 0 && bytes_ + more > limits_.bytes);
  };
  while (files_.size() > 1 && too_many()) drop_oldest();
}

bool RetainedFiles::drop_oldest() {
  if (files_.empty()) return false;
  const File& oldest = files_.front();
  unlink(oldest.name.c_str());
  removed_ = {removed_.files + 1, oldest.end.records, oldest.end.kernel,
              oldest.end.ticks};
  bytes_ -= oldest.bytes;
  files_.pop_front();
  return true;
}

namespace {

// `records`: those of a RecordBuilder.
template <class Visit>
void for_each_collector_record(std::span<const std::byte> records, const Visit& visit) {
  while (!records.empty()) {
    const auto word0 = load_part_untrusted<uint32_t>(records);
    const size_t length = word0 & ARCTRACE_LENGTH_MASK;
    visit(static_cast<uint16_t>(word0 >> ARCTRACE_TYPE_SHIFT),
          records.subspan(ARCTRACE_FULL_HEAD_SIZE, length - ARCTRACE_FULL_HEAD_SIZE));
    records = records.subspan(length);
  }
}

// Divides the limit among the files that are retained and the one that is being written.
uint64_t size_of_each(const FileLimits& limits) {
  constexpr uint32_t kFilesIfAny = 8;
  return limits.bytes / ((limits.files == 0 ? kFilesIfAny : limits.files) + 1);
}

}  // namespace

FileRing::FileRing(TraceFile& file, const arctrace_session_header& header,
                   RecorderFacts recorder, FileLimits limits, bool is_resumed)
    : file_(file),
      header_(header),
      recorder_(std::move(recorder)),
      is_resumed_(is_resumed),
      begin_ticks_(read_ticks(header.clock)),
      path_(file.path()),
      limits_(limits),
      file_size_(size_of_each(limits)),
      retained_(path_, limits) {}

void FileRing::remember(const arctrace_block_header& header, uint32_t index,
                        std::span<const std::byte> rest) {
  if (const auto before = definitions_.find(header.handout);
      before != definitions_.end()) {
    forget(before);
  }
  remembered_ += rest.size();
  definitions_[header.handout] = {header, index, {rest.begin(), rest.end()}};
  while (remembered_ > limits_.bytes) forget(definitions_.begin());
}

void FileRing::begin_next() {
  change_ = Change::kEnding;
  finish_change();
}

void FileRing::finish_change() {
  if (change_ == Change::kNone) return;
  const ClockSync now = take_clock_sync(header_.clock);
  if (change_ == Change::kEnding) {
    end_file(now);
    file_.sync();
    if (file_.error() != 0) return;
    file_.write_index(now.ticks);
    was_published_ = file_.is_published();
    if (!file_.publish_as(retained_.next_name()).ok()) return file_.note_error(errno);
    retained_.add(file_.bytes(), file_size_ + code_names_max() + remembered_,
                  {written_.records, written_.kernel, now.ticks});
    change_ = Change::kOpening;
  }
  if (change_ == Change::kOpening) {
    if (!open_next().ok()) return file_.note_error(errno);
    change_ = Change::kBeginning;
  }
  file_.restart();
  begin_file(now);
  if (file_.error() == 0) change_ = Change::kNone;
}

void FileRing::end_file(const ClockSync& now) {
  RecordBuilder records;
  add_files(records, now.ticks, ARCTRACE_FILES_END);
  add_clock_sync(records, now);
  add_session_event(records, now.ticks, ARCTRACE_SESSION_FINISHED, 0);
  file_.write_records(now.ticks, records.bytes());
}

absl::Status FileRing::open_next() {
  absl::StatusOr<TraceFile> next = TraceFile::create(path_);
  if (!next.ok()) return next.status();
  next->take_reserve_of(file_);
  file_ = *std::move(next);
  return was_published_ ? file_.publish() : absl::OkStatus();
}

void FileRing::begin_file(const ClockSync& now) {
  file_.keep_index();
  file_.write_header(header_);
  RecordBuilder records;
  add_start(records, now.ticks, recorder_, ARCTRACE_SESSION_RESUMED);
  add_begin(records, now.ticks);
  add_clock_sync(records, now);
  file_.write_records(now.ticks, records.bytes());
  if (file_.error() == 0) told_removed_ = retained_.removed().files;
  for (const auto& [handout, block] : definitions_) {
    file_.write_chunk(ARCTRACE_CHUNK_BLOCK, ARCTRACE_CHUNK_LIVE_COPY, block.index,
                      now.ticks, std::as_bytes(std::span(&block.header, 1)), block.rest);
  }
  definitions_size_ = file_.bytes();
}

void FileRing::add_removed(RecordBuilder& records, uint64_t ticks) const {
  if (retained_.removed().files == told_removed_) return;
  add_files(records, ticks, ARCTRACE_FILES_REMOVED);
}

void FileRing::note_records(std::span<const std::byte> records) {
  for_each_collector_record(
      records, [this](uint16_t type, std::span<const std::byte> body) {
        if (type == ARCTRACE_TYPE_LOST) {
          const auto lost = load_part_untrusted<arctrace_lost_body>(body);
          written_.lost[lost.cause] += lost.count;
        } else if (type == ARCTRACE_TYPE_FILES) {
          told_removed_ = load_part_untrusted<arctrace_files_body>(body).removed_files;
        }
      });
}

void FileRing::add_files(RecordBuilder& records, uint64_t ticks,
                         arctrace_files_event what) const {
  const RemovedFiles& removed = retained_.removed();
  arctrace_files_body body{.what = what,
                           .number = retained_.ever() + 1,
                           .begin_ticks = begin_ticks_,
                           .records = written_.records,
                           .kernel = written_.kernel,
                           .lost = {},
                           .removed_files = removed.files,
                           .flags = is_resumed_ ? ARCTRACE_FILES_RESUMED : 0,
                           .removed_records = removed.records,
                           .removed_kernel = removed.kernel,
                           .removed_ticks = removed.until_ticks};
  for (size_t cause = 0; cause < written_.lost.size(); ++cause) {
    body.lost[cause] = written_.lost[cause];
  }
  records.begin(ARCTRACE_TYPE_FILES, ARCTRACE_WRITER_COLLECTOR, ticks);
  records.body(body);
}

// A process' own blocks are closed and written in the pass in which it is first seen
// gone. Its records may also be in shared blocks that were handed out before that.
void FileRing::forget_gone(const std::vector<uint32_t>& living, uint64_t next,
                           uint64_t oldest_shared) {
  for (auto at = definitions_.begin(); at != definitions_.end();) {
    Definitions& block = at->second;
    if (std::binary_search(living.begin(), living.end(), block.header.process)) {
      block.gone_at = 0;
    } else if (block.gone_at == 0) {
      block.gone_at = next;
    } else if (oldest_shared >= block.gone_at) {
      at = forget(at);
      continue;
    }
    ++at;
  }
}

FileRing::Remembered::iterator FileRing::forget(Remembered::iterator block) {
  remembered_ -= block->second.rest.size();
  return definitions_.erase(block);
}

}  // namespace arctrace::recorder
