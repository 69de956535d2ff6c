#include "reader/export/lane_spool.hpp"

namespace arctrace::reader {
namespace {

// The capacity of a string that has its text within itself, so that it allocates nothing.
const size_t kNoMemory = std::string().capacity();

}  // namespace

void LaneSpool::add(size_t lane, std::string_view text) {
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
  std::string& recent = lanes_[lane].recent;
  const size_t before = recent.capacity();
  recent += text;
  memory_ += recent.capacity() - before;
  if (recent.size() >= kPieceMax) spill(lanes_[lane]);
  if (memory_ >= kMemoryMax) spill_all();
}

// Moves what is in memory to the file.
void LaneSpool::spill(Lane& lane) {
  file_.write_at(size_, lane.recent.data(), lane.recent.size());
  lane.on_disk.push_back({size_, lane.recent.size()});
  size_ += lane.recent.size();
  memory_ -= lane.recent.capacity() - kNoMemory;
  lane.recent = std::string();  // clear() would keep its memory
}

// Moves all lanes by one write, because there may be many lanes with a little text each.
void LaneSpool::spill_all() {
  std::string all;
  for (Lane& lane : lanes_) {
    if (lane.recent.empty()) continue;
    lane.on_disk.push_back({size_ + all.size(), lane.recent.size()});
    all += lane.recent;
    lane.recent = std::string();
  }
  memory_ = 0;
  file_.write_at(size_, all.data(), all.size());
  size_ += all.size();
}

absl::Status LaneSpool::read(size_t lane,
                             absl::FunctionRef<bool(std::string_view)> take) {
  if (!file_.status().ok()) return file_.status();
  if (lane >= lanes_.size()) return absl::OkStatus();
  std::string piece;
  for (const Piece& at : lanes_[lane].on_disk) {
    piece.resize(at.size);
    if (file_.read_at(at.offset, piece.data(), at.size) != at.size) {
      return absl::UnavailableError("cannot read back from the temporary file");
    }
    if (!take(piece)) return absl::OkStatus();
  }
  take(lanes_[lane].recent);
  return absl::OkStatus();
}

}  // namespace arctrace::reader
