// Saves the frames of a stack in chunks, and restores them.
#include "src/stack/saved_frames.hpp"

namespace arctrace::writer {

uint32_t SavedFrames::take_chunk() {
  if (free_chunk_ == 0) return ++used_chunks_;
  const uint32_t taken = free_chunk_;
  free_chunk_ = chunks_[taken - 1].next;
  --free_chunk_count_;
  return taken;
}

void SavedFrames::free_chunks(Stack& stack) {
  while (stack.first_chunk != 0) {
    Chunk& chunk = chunks_[stack.first_chunk - 1];
    const uint32_t next = chunk.next;
    chunk.next = free_chunk_;
    free_chunk_ = stack.first_chunk;
    ++free_chunk_count_;
    stack.first_chunk = next;
  }
  stack.name = 0;
}

void SavedFrames::save(uint32_t number, const OpenFrames& open,
                       const FilteredFrames& filtered, uint64_t written_in) {
  Stack& stack = entry(number);
  free_chunks(stack);
  if (kChunks - used_chunks_ + free_chunk_count_ < kChunksOfOne) forget_coroutines();
  uint32_t* link = &stack.first_chunk;
  for (uint32_t at = 0; at < open.stored(); at += kChunkFrames) {
    const uint32_t taken = take_chunk();
    *link = taken;
    Chunk& chunk = chunks_[taken - 1];
    for (uint32_t i = 0; i < kChunkFrames && at + i < open.stored(); ++i) {
      chunk.frames[i] = open.frames[at + i];
      if (filtered.seen) chunk.filtered[i] = filtered.frames[at + i];
    }
    link = &chunk.next;
  }
  *link = 0;
  stack.depth = open.depth;
  stack.reported_depth = filtered.reported_depth;
  stack.has_filtered = filtered.seen;
  stack.written_in = written_in;
  stack.name = number + 1;
}

void SavedFrames::resume(uint32_t number, OpenFrames& open, FilteredFrames& filtered) {
  open.depth = 0;
  filtered.reported_depth = 0;
  if (!has(number)) return;
  Stack& stack = entry(number);
  uint32_t at = 0;
  for (uint32_t index = stack.first_chunk; index != 0; index = chunks_[index - 1].next) {
    const Chunk& chunk = chunks_[index - 1];
    for (uint32_t i = 0; i < kChunkFrames && at < stack.depth; ++i, ++at) {
      open.frames[at] = chunk.frames[i];
      if (!filtered.seen) continue;
      // Readers know the frames that were open before there was a filter.
      filtered.frames[at] = stack.has_filtered ? chunk.filtered[i] : FilteredFrame{};
      filtered.frames[at].args_end = 0;  // none of them waits
    }
  }
  open.depth = stack.depth;
  filtered.reported_depth = stack.has_filtered ? stack.reported_depth : stack.depth;
  free_chunks(stack);
}

void SavedFrames::forget_coroutines() {
  for (Stack& stack : stacks_) free_chunks(stack);
}

void SavedFrames::clear() {
  forget_coroutines();
  free_chunks(own_);
}

}  // namespace arctrace::writer
