// Encodes, decodes and checks plans, and reads and writes the files of the cache.
#include "src/recorder/patch_analysis/plan_file.hpp"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/checksum.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/cache/user_cache.hpp"

namespace arctrace::recorder {

namespace {

constexpr char kMagic[8] = {'A', 'R', 'C', 'T', 'P', 'L', 'A', 'N'};
constexpr size_t kBuildIdBytesMax = 64;

// The file: this header, the functions, the instructions of all functions in their order,
// the names in their order, the findings, a line each.
struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t checksum;  // CRC-32C of all after this word
  uint64_t stamp;
  uint32_t function_count;
  uint32_t instruction_count;
  uint32_t names_size;
  uint32_t findings_size;
  uint32_t build_id_size;
  uint8_t build_id[kBuildIdBytesMax];
  uint32_t reserved;
};
static_assert(sizeof(FileHeader) == 112);
constexpr size_t kUncheckedBytes = offsetof(FileHeader, stamp);

struct FileFunction {
  uint64_t start, size;
  uint32_t name_size;
  uint8_t verdict, entry_only, kept, displaced;
  uint8_t instruction_count;
  uint8_t original[kDisplacedBytesMax];
  uint8_t kept_as;
  uint8_t undone[kUndoneBytesMax];
  uint8_t may_last;
  uint8_t reserved[3];
};
static_assert(sizeof(FileFunction) == 56);

struct FileInstruction {
  uint64_t target;
  uint8_t offset, length, moved_as, field;
  uint32_t reserved;
};
static_assert(sizeof(FileInstruction) == 16);

class Encoder {
 public:
  template <class Part>
  void add(const Part& part) {
    const auto bytes = std::as_bytes(std::span(&part, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add_text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

uint32_t checksum_of(std::span<const std::byte> file) {
  Checksum checksum;
  checksum.add(file.subspan(kUncheckedBytes));
  return checksum.value();
}

// Reads the instruction that stays before the jump.
bool read_kept(const FileFunction& file, FunctionPlan& function) {
  const bool is_undone = file.kept_as == static_cast<uint8_t>(KeptAs::kUndone);
  for (size_t i = 0; i < kUndoneBytesMax; ++i) {
    if ((!is_undone || i >= file.kept) && file.undone[i] != 0) return false;
    function.undone[i] = static_cast<std::byte>(file.undone[i]);
  }
  function.kept = file.kept;
  function.kept_as = static_cast<KeptAs>(file.kept_as);
  switch (function.kept_as) {
    case KeptAs::kNothing:
      return file.kept == 0 || file.kept == 4;
    case KeptAs::kStays:
      return file.kept != 0 && file.kept <= kInstructionBytesMax;
    case KeptAs::kUndone:
      return file.kept <= kUndoneBytesMax &&
             !undo_of(std::span(function.undone).first(file.kept)).undo.empty();
    default:
      return false;
  }
}

// The instructions must follow each other without a gap.
bool is_next(const FileInstruction& instruction, size_t offset) {
  if (instruction.offset != offset || instruction.length == 0 ||
      instruction.length > kInstructionBytesMax || instruction.reserved != 0) {
    return false;
  }
  switch (static_cast<MovedAs>(instruction.moved_as)) {
    case MovedAs::kCopy:
      return instruction.field == 0 && instruction.target == 0;
    case MovedAs::kRipRelative:
      return instruction.field != 0 && instruction.field + 4 <= instruction.length;
    case MovedAs::kJump:
    case MovedAs::kBranch:
      return instruction.field == 0 && instruction.length >= 2;
    case MovedAs::kCall:
      return instruction.field == 0 && offset + instruction.length >= kPatchJumpBytes;
    default:
      return false;
  }
}

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::optional<PatchPlan> run() && {
    if (!read_header()) return std::nullopt;
    plan_.functions.resize(header_.function_count);
    uint64_t end = 0;
    for (FunctionPlan& function : plan_.functions) {
      if (!read_function(function) || function.start < end) return std::nullopt;
      end = function.start + function.size;
    }
    // If bytes remain, the counts in the header are wrong.
    if (!names_.empty() || !instructions_.empty()) return std::nullopt;
    return std::move(plan_);
  }

 private:
  bool read_header() {
    if (bytes_.size() < sizeof header_ || bytes_.size() > kPlanBytesMax) return false;
    header_ = load_part_untrusted<FileHeader>(bytes_);
    if (std::memcmp(header_.magic, kMagic, sizeof kMagic) != 0 ||
        header_.version != kPlanVersion || header_.reserved != 0 ||
        header_.build_id_size > kBuildIdBytesMax ||
        header_.checksum != checksum_of(bytes_)) {
      return false;
    }
    const uint64_t functions_size = header_.function_count * sizeof(FileFunction);
    const uint64_t instructions_size =
        header_.instruction_count * sizeof(FileInstruction);
    if (sizeof header_ + functions_size + instructions_size + header_.names_size +
            header_.findings_size !=
        bytes_.size()) {
      return false;
    }
    functions_ = bytes_.subspan(sizeof header_, functions_size);
    instructions_ = bytes_.subspan(sizeof header_ + functions_size, instructions_size);
    const std::string_view texts(reinterpret_cast<const char*>(bytes_.data()),
                                 bytes_.size());
    names_ = texts.substr(sizeof header_ + functions_size + instructions_size,
                          header_.names_size);
    const std::string_view findings = texts.substr(texts.size() - header_.findings_size);
    if (!findings.empty()) {
      plan_.findings = absl::StrSplit(std::string(findings), '\n');
    }
    const auto* build_id = reinterpret_cast<const std::byte*>(header_.build_id);
    plan_.build_id.assign(build_id, build_id + header_.build_id_size);
    plan_.stamp = header_.stamp;
    return std::all_of(header_.build_id + header_.build_id_size,
                       std::end(header_.build_id),
                       [](uint8_t byte) { return byte == 0; });
  }

  bool read_function(FunctionPlan& function) {
    const auto file = load_part_untrusted<FileFunction>(functions_);
    functions_ = functions_.subspan(sizeof file);
    uint64_t end = 0;
    if (file.size == 0 || __builtin_add_overflow(file.start, file.size, &end) ||
        file.verdict >= kPatchVerdicts || file.entry_only > 1 || file.may_last > 1 ||
        file.name_size > names_.size() ||
        std::any_of(std::begin(file.reserved), std::end(file.reserved),
                    [](uint8_t byte) { return byte != 0; })) {
      return false;
    }
    function.start = file.start;
    function.size = file.size;
    function.name = names_.substr(0, file.name_size);
    names_.remove_prefix(file.name_size);
    function.verdict = static_cast<PatchVerdict>(file.verdict);
    if (function.verdict != PatchVerdict::kPatchable) return is_skipped(file);
    function.entry_only = file.entry_only != 0;
    function.may_last = file.may_last != 0;
    function.displaced = file.displaced;
    function.instruction_count = file.instruction_count;
    if (!read_kept(file, function) || file.displaced < kPatchJumpBytes ||
        file.displaced > kDisplacedBytesMax || file.kept + file.displaced > file.size ||
        file.instruction_count > kDisplacedMax) {
      return false;
    }
    for (size_t i = 0; i < kDisplacedBytesMax; ++i) {
      if (i >= file.displaced && file.original[i] != 0) return false;
      function.original[i] = static_cast<std::byte>(file.original[i]);
    }
    return read_instructions(function);
  }

  // A function that is skipped has nothing to displace.
  static bool is_skipped(const FileFunction& file) {
    const auto is_zero = [](uint8_t byte) { return byte == 0; };
    return file.entry_only == 0 && file.may_last == 0 && file.kept == 0 &&
           file.displaced == 0 && file.instruction_count == 0 && file.kept_as == 0 &&
           std::all_of(std::begin(file.original), std::end(file.original), is_zero) &&
           std::all_of(std::begin(file.undone), std::end(file.undone), is_zero);
  }

  bool read_instructions(FunctionPlan& function) {
    size_t offset = 0;
    for (uint8_t i = 0; i < function.instruction_count; ++i) {
      if (instructions_.empty() || offset >= kPatchJumpBytes) return false;
      const auto file = load_part_untrusted<FileInstruction>(instructions_);
      instructions_ = instructions_.subspan(sizeof file);
      if (!is_next(file, offset)) return false;
      function.instructions[i] = {file.offset, file.length,
                                  static_cast<MovedAs>(file.moved_as), file.field,
                                  file.target};
      offset += file.length;
    }
    return offset == function.displaced;
  }

  std::span<const std::byte> bytes_, functions_, instructions_;
  std::string_view names_;
  FileHeader header_{};
  PatchPlan plan_;
};

}  // namespace

std::optional<std::vector<std::byte>> encode_plan(const PatchPlan& plan) {
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kPlanVersion;
  header.stamp = plan.stamp;
  header.build_id_size =
      static_cast<uint32_t>(std::min(plan.build_id.size(), kBuildIdBytesMax));
  std::transform(plan.build_id.begin(), plan.build_id.begin() + header.build_id_size,
                 header.build_id,
                 [](std::byte byte) { return std::to_integer<uint8_t>(byte); });
  const std::string findings = absl::StrJoin(plan.findings, "\n");
  uint64_t size = sizeof header + findings.size();
  uint64_t names = 0;
  for (const FunctionPlan& function : plan.functions) {
    header.instruction_count += function.instruction_count;
    names += function.name.size();
    size += sizeof(FileFunction) + function.name.size() +
            function.instruction_count * sizeof(FileInstruction);
    if (size > kPlanBytesMax) return std::nullopt;
  }
  header.function_count = static_cast<uint32_t>(plan.functions.size());
  header.names_size = static_cast<uint32_t>(names);
  header.findings_size = static_cast<uint32_t>(findings.size());
  Encoder out;
  out.add(header);
  for (const FunctionPlan& function : plan.functions) {
    FileFunction file{};
    file.start = function.start;
    file.size = function.size;
    file.name_size = static_cast<uint32_t>(function.name.size());
    file.verdict = static_cast<uint8_t>(function.verdict);
    file.entry_only = function.entry_only ? 1 : 0;
    file.may_last = function.may_last ? 1 : 0;
    file.kept = function.kept;
    file.displaced = function.displaced;
    file.instruction_count = function.instruction_count;
    std::memcpy(file.original, function.original.data(), sizeof file.original);
    file.kept_as = static_cast<uint8_t>(function.kept_as);
    std::memcpy(file.undone, function.undone.data(), sizeof file.undone);
    out.add(file);
  }
  for (const FunctionPlan& function : plan.functions) {
    for (uint8_t i = 0; i < function.instruction_count; ++i) {
      const DisplacedInstruction& instruction = function.instructions[i];
      FileInstruction file{};
      file.target = instruction.target;
      file.offset = instruction.offset;
      file.length = instruction.length;
      file.moved_as = static_cast<uint8_t>(instruction.moved_as);
      file.field = instruction.field;
      out.add(file);
    }
  }
  for (const FunctionPlan& function : plan.functions) out.add_text(function.name);
  out.add_text(findings);
  std::vector<std::byte> bytes = std::move(out).take();
  const uint32_t checksum = checksum_of(bytes);
  std::memcpy(bytes.data() + offsetof(FileHeader, checksum), &checksum, sizeof checksum);
  return bytes;
}

std::optional<PatchPlan> decode_plan_untrusted(std::span<const std::byte> bytes) {
  return Decoder(bytes).run();
}

PlanCache PlanCache::of_user() {
  const std::string cache = user_cache_directory();
  return PlanCache(cache.empty() ? "" : cache + "/plans");
}

std::string PlanCache::file_of(std::span<const std::byte> build_id) const {
  if (directory_.empty() || build_id.empty()) return "";
  const std::string id(reinterpret_cast<const char*>(build_id.data()), build_id.size());
  return absl::StrCat(directory_, "/", absl::BytesToHexString(id), ".plan");
}

std::optional<PatchPlan> PlanCache::load(std::span<const std::byte> build_id,
                                         uint64_t stamp) const {
  const std::string path = file_of(build_id);
  if (path.empty()) return std::nullopt;
  const std::optional<std::vector<std::byte>> bytes = read_own_file(path, kPlanBytesMax);
  if (!bytes) return std::nullopt;
  std::optional<PatchPlan> plan = decode_plan_untrusted(*bytes);
  if (!plan || plan->stamp != stamp ||
      !std::equal(plan->build_id.begin(), plan->build_id.end(), build_id.begin(),
                  build_id.end())) {
    return std::nullopt;
  }
  return plan;
}

bool PlanCache::save(const PatchPlan& plan) const {
  const std::string path = file_of(plan.build_id);
  const std::optional<std::vector<std::byte>> bytes = encode_plan(plan);
  return !path.empty() && bytes && write_own_file(path, *bytes);
}

}  // namespace arctrace::recorder
