#include "reader/render/patch_list.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <arctrace/format.h>

#include <optional>
#include <utility>

#include "reader/render/session_text.hpp"
#include "reader/trace/bytes.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// The name of a listed function; "" if it is not known.
std::string function_name(const Definitions& definitions, ProcessIndex process,
                          uint64_t function, Symbolizer& names) {
  const Module* module = definitions.module_at(process, function, INT64_MAX);
  if (module == nullptr) return "";
  const uint64_t at = function - module->bias;
  const std::string_view name =
      names.resolve(module->path, module->build_id, at).function;
  if (!name.empty()) return std::string(name);
  const size_t slash = module->path.rfind('/');
  return absl::StrCat(module->path.substr(slash + 1), "+0x", absl::Hex(at));
}

template <class Counts>
std::optional<std::string> refusal_of(const Counts& counts) {
  for (const auto& [verdict, unused] : counts) {
    std::string text = patch_refusal_text(verdict);
    if (!text.empty()) return text;
  }
  return std::nullopt;
}

// Whether functions with this verdict were left alone.
bool is_left(uint32_t verdict) {
  return verdict != ARCTRACE_PATCH_DONE && verdict != ARCTRACE_PATCH_FLOODED &&
         patch_refusal_text(verdict).empty();
}

// Of several processes of a program, that which knows of most functions is shown.
template <class Counts>
uint64_t known_functions(const Counts& counts) {
  uint64_t sum = 0;
  for (const auto& [verdict, count] : counts) sum += count.all;
  return sum;
}

}  // namespace

void PatchList::note(const Record& record) {
  if (record.type != ARCTRACE_TYPE_PATCHES) return;
  BodyReader reader(record.body);
  const auto body = reader.read<arctrace_patches_body>();
  Count& count = processes_[body.process][body.verdict];
  if (body.listed == 0) {
    if (count.others.insert(body.count).second) count.all += body.count;
    return;
  }
  bool is_new = false;
  for (uint32_t i = 0; i < body.listed && reader.ok(); ++i) {
    is_new |= count.listed.insert(reader.read<uint64_t>()).second;
  }
  if (is_new) count.all += body.count;
}

const PatchList::Count* PatchList::find(const Counts& counts, uint32_t verdict) {
  const auto found = counts.find(verdict);
  return found == counts.end() ? nullptr : &found->second;
}

void PatchList::append_program(std::string& out, const Definitions& definitions,
                               ProcessIndex process, const Counts& counts,
                               Symbolizer* names) {
  const Count* done = find(counts, ARCTRACE_PATCH_DONE);
  absl::StrAppend(&out, "\n",
                  count_text(done == nullptr ? 0 : done->all, "patched function"), " of ",
                  escaped(definitions.process(process)->executable), "\n");
  if (const auto refusal = refusal_of(counts)) {
    absl::StrAppend(&out, "  none was patched: ", *refusal, "\n");
  }
  for (const auto& [verdict, count] : counts) {
    if (verdict != ARCTRACE_PATCH_FLOODED && !is_left(verdict)) continue;
    absl::StrAppendFormat(&out, "%9d  %s%s\n", count.all,
                          is_left(verdict) ? "left: " : "of them ",
                          patch_verdict_text(verdict).reason);
    if (names == nullptr) continue;
    for (const uint64_t function : count.listed) {
      const std::string name = function_name(definitions, process, function, *names);
      absl::StrAppendFormat(
          &out, "             %s\n",
          name.empty() ? absl::StrFormat("%#x", function) : escaped(name));
    }
  }
}

std::string PatchList::text(const Definitions& definitions, Symbolizer* names) const {
  using Shown = std::pair<ProcessIndex, const Counts*>;
  absl::btree_map<std::string, Shown> programs;
  for (const auto& [id, counts] : processes_) {
    const ProcessIndex index = definitions.find_process(id);
    const Process* process = definitions.process(index);
    if (process == nullptr) continue;
    const auto [known, is_new] =
        programs.emplace(process->executable, Shown(index, &counts));
    if (!is_new && known_functions(counts) > known_functions(*known->second.second)) {
      known->second = {index, &counts};
    }
  }
  std::string out;
  for (const auto& [program, shown] : programs) {
    append_program(out, definitions, shown.first, *shown.second, names);
  }
  return out;
}

void PatchList::write_json(const Definitions& definitions, ProcessIndex process,
                           Symbolizer* names, JsonWriter& json) const {
  const auto found = processes_.find(definitions.process(process)->id);
  if (found == processes_.end()) return json.value(nullptr);
  const Counts& counts = found->second;
  const auto number = [&](uint32_t verdict) {
    const Count* count = find(counts, verdict);
    return count == nullptr ? 0 : count->all;
  };
  json.begin_object();
  json.member("patched", number(ARCTRACE_PATCH_DONE));
  json.member("refused", refusal_of(counts));
  json.member("switched_off", number(ARCTRACE_PATCH_FLOODED));
  json.key("left").begin_object();
  for (const auto& [verdict, count] : counts) {
    if (is_left(verdict)) json.member(patch_verdict_text(verdict).key, count.all);
  }
  json.end();
  if (names != nullptr) {
    json.key("functions").begin_array();
    for (const auto& [verdict, count] : counts) {
      for (const uint64_t function : count.listed) {
        json.begin_object();
        json.member("address", absl::StrCat("0x", absl::Hex(function)));
        json.member("name", function_name(definitions, process, function, *names));
        json.member("verdict", patch_verdict_text(verdict).key);
        json.end();
      }
    }
    json.end();
  }
  json.end();
}

}  // namespace arctrace::reader
