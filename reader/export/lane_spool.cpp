#include "reader/export/lane_spool.hpp"

namespace arctrace::reader {

void LaneSpool::add(size_t lane, std::string_view text) {
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
  std::string& recent = lanes_[lane].recent;
  recent += text;
  if (recent.size() < kPieceMax) return;
  file_.write_at(size_, recent.data(), recent.size());
  lanes_[lane].on_disk.push_back({size_, recent.size()});
  size_ += recent.size();
  recent.clear();
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
