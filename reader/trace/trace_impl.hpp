// The state of an opened trace, and the steps of opening and reading it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reader/trace/block_writers.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/definitions_loader.hpp"
#include "reader/trace/file_blocks.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/kernel_blocks.hpp"
#include "reader/trace/merge.hpp"
#include "reader/trace/read_plan.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/totals.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

struct Trace::Impl {
  // A block in which several write.
  struct SharedRef {
    BlockRef block;
    uint64_t first_ticks;
    size_t list = SIZE_MAX;  // index into the lists of writers
  };

  // `inputs`: the files, in the order in which they were written, or one buffer. `header`
  // is that of the first one.
  Impl(std::vector<std::unique_ptr<Input>> inputs, SessionHeader header,
       const OpenOptions& options);

  // Finds the blocks and loads the definitions: trace_load.cpp. If `wrong_index` is set
  // after that, it is to be called again, without indices.
  absl::Status load(bool uses_index);
  absl::StatusOr<BlockIndex> find_blocks(bool uses_index);
  absl::Status load_full_blocks(const BlockIndex& index, DefinitionsLoader& loader);
  absl::StatusOr<bool> agrees_with_index(const BlockRef& block);
  void add_listed(const BlockRef& block, const FileBlocks::Listed& writers);
  absl::Status load_shared(const BlockRef& block, DefinitionsLoader& loader);
  void load_record(const RawRecord& record, const BlockRef& block,
                   DefinitionsLoader& loader);
  absl::Status load_control_events(DefinitionsLoader& loader);
  absl::Status load_symbols(std::span<const SymbolsRef> chunks);
  void check_end(const BlockIndex& index);
  void note_overwritten();
  void note_kernel_gaps(bool lacks_middle);
  void note_live_kernel_gaps();

  // Hands out the records: trace_read.cpp.
  absl::Status plan_range();
  absl::Status verify_planned();
  bool is_passed_over(const SharedRef& ref) const {
    return ref.list != SIZE_MAX && !plan.needs_listed(ref.list);
  }
  uint64_t bytes_to_read() const;
  const SharedRef* oldest_of_chain() const;  // null: there is none
  bool lacks_blocks() const;
  std::vector<std::unique_ptr<RecordSource>> open_sources();
  absl::Status read(const RecordSink& sink);

  std::vector<std::unique_ptr<Input>> parts;
  std::unique_ptr<Input> joined;  // of several parts
  Input* input;                   // all of them
  Session session;
  Geometry geometry;
  ClockMap clock;
  FindingLog findings;
  const bool verifies_checksums;
  const TimeRange range;  // what read() reads
  const std::optional<LiveKernel> live;
  ReadPlan plan;
  FileBlocks file_blocks;
  std::optional<Finding> wrong_index;  // what load() found
  FindingLog::Mark opened;             // after the findings of load()
  BufferState buffer;
  Definitions definitions;
  WriterOutcomes fates;
  std::vector<BlockRef> all_blocks;
  End end;
  std::vector<std::vector<BlockRef>> exclusive;  // by writer, each sorted by serial
  std::vector<SharedRef> shared;                 // of full form
  SharedWriters shared_writers;                  // of records in `shared`
  KernelBlocks kernel_blocks;
  WriterLists lists;  // if a range is read, of `listed`
  std::vector<BlockRef> listed;
  SessionTotals totals;
  FileTotals file_totals;
  Summary summary;
};

}  // namespace arctrace::reader
