def sub(p, a, b, n=1):
    s=open(p).read(); assert a in s, (p,a); s=s.replace(a,b,n); open(p,'w').write(s)
p='reader/trace/index_chunk.cpp'
sub(p,'''// Fills in `index` from entries that leave''','''// Whether all chunks but exclusive blocks, which may be passed over, are what the index
// says.
absl::StatusOr<bool> agrees_untrusted(Input& input, const BlockIndex& index,
                                      const Geometry& geometry, FindingLog& findings) {
  for (const BlockRef& ref : index.blocks) {
    if (ref.kind == BlockRef::Kind::kExclusive) continue;
    const absl::StatusOr<bool> agrees =
        is_as_indexed_untrusted(input, ref, geometry, findings);
    if (!agrees.ok() || !*agrees) return agrees;
  }
  return true;
}

// Fills in `index` from entries that leave''')
sub(p,'''      index.bytes += own;
      drop_doubles''','''      index.bytes += own;
      const absl::StatusOr<bool> agrees =
          agrees_untrusted(input, index, geometry, findings);
      if (!agrees.ok()) return agrees.status();
      if (!*agrees) return std::nullopt;
      drop_doubles''')
sub(p,'''    } else if (entry.kind == ARCTRACE_CHUNK_RECORDS) {''','''    } else if (entry.kind != ARCTRACE_CHUNK_RECORDS) {
      return false;
    } else {''')
sub('reader/trace/index_chunk.hpp','''// one that does not fit the file (a finding). What it says of a block may still be wrong:
// see is_as_indexed_untrusted(). Error''','''// one that does not fit the file (a finding). Of exclusive blocks it may still be wrong:
// see is_as_indexed_untrusted(). Error''')
p='reader/trace/trace.hpp'
sub(p,'''  bool verifies_checksums = false;
''','''  bool verifies_checksums = false;
  // Whether the blocks are those that the file's index lists, if it has one, so that
  // opening takes no time for each block of a thread. For reading ranges: to read all,
  // the index saves nothing.
  bool uses_index = false;
''')
p='reader/trace/trace.cpp'
s=open(p).read()
def r(a,b):
    global s
    assert a in s, a
    s=s.replace(a,b,1)
r('''        verifies_checksums(options.verifies_checksums) {}''','''        verifies_checksums(options.verifies_checksums),
        is_from_index(options.uses_index && !options.verifies_checksums) {}''')
r('''  const bool verifies_checksums;
''','''  const bool verifies_checksums;
  bool is_from_index;        // where the blocks are
''')
r('''  if (parts.empty()) return index_file_untrusted(*input, geometry, findings, verifies);
''','''  if (parts.empty() && is_from_index) {
    absl::StatusOr<std::optional<BlockIndex>> found =
        read_index_untrusted(*input, geometry, session.has_checksums, findings);
    if (!found.ok()) return found.status();
    if (found->has_value()) return **std::move(found);
  }
  is_from_index = false;
  if (parts.empty()) return index_file_untrusted(*input, geometry, findings, verifies);
''')
r('''absl::StatusOr<ReadPlan> Trace::Impl::plan(const TimeRange& range) {
  if (range.is_all()) return ReadPlan();
  return ReadPlan::make({*input, clock, definitions, exclusive, shared_writers}, range);
}
''','''// What an index says of the blocks that will be read is compared with what they are. If
// it is wrong, the blocks are found anew.
absl::StatusOr<ReadPlan> Trace::Impl::plan(const TimeRange& range) {
  if (range.is_all()) return ReadPlan();
  const auto make = [&] {
    return ReadPlan::make({*input, clock, definitions, exclusive, shared_writers}, range);
  };
  absl::StatusOr<ReadPlan> made = make();
  if (!is_from_index || !made.ok()) return made;
  const absl::StatusOr<bool> agrees = agrees_with_index(*made, range);
  if (!agrees.ok()) return agrees.status();
  if (*agrees) return made;
  is_from_index = false;
  absl::StatusOr<BlockIndex> index = index_files();
  if (!index.ok()) return index.status();
  exclusive.clear();
  group_exclusive(index->blocks);
  all_blocks = std::move(index->blocks);
  return make();
}

absl::StatusOr<bool> Trace::Impl::agrees_with_index(const ReadPlan& plan,
                                                    const TimeRange& range) {
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const SkippedBlocks& skipped =
        plan.skipped(definitions.find_thread(blocks.front().writer));
    size_t after = 0;  // blocks that begin after the range, of which one may have no record
    for (size_t i = 0; i < blocks.size() && after < 3; ++i) {
      if (i == skipped.first && skipped.end > i) i = skipped.end;
      if (clock.to_ns(blocks[i].base_ticks) >= range.until_ns) ++after;
      const absl::StatusOr<bool> agrees =
          is_as_indexed_untrusted(*input, blocks[i], geometry, findings);
      if (!agrees.ok() || !*agrees) return agrees;
    }
  }
  return true;
}
''')
r('''  absl::StatusOr<ReadPlan> plan(const TimeRange& range);
''','''  absl::StatusOr<ReadPlan> plan(const TimeRange& range);
  absl::StatusOr<bool> agrees_with_index(const ReadPlan& plan, const TimeRange& range);
''')
r('#include "reader/trace/index_file.hpp"\n','#include "reader/trace/index_chunk.hpp"\n#include "reader/trace/index_file.hpp"\n')
r('''  if (range.is_all()) settle''','''  if (range.is_all()) settle''')
open(p,'w').write(s)
sub('reader/trace/CMakeLists.txt','  index_file.cpp\n','  index_chunk.cpp\n  index_file.cpp\n')
p='reader/trace/rules.hpp'
sub(p,'''  kChunkChecksum,
''','''  kChunkChecksum,
  kIndex,
''')
sub(p,'''    {"B1",''','''    {"F10", "an index says what the chunks of its file are"},
    {"B1",''')
sub('SPEC.md','''| B1 | a block's phase''','''| F10 | an index says what the chunks of its file are |
| B1 | a block's phase''')
