#include "reader/render/finding_text.hpp"

#include <absl/strings/str_cat.h>

#include "reader/trace/rules.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::cli {

std::string finding_text(const reader::Finding& finding, const reader::Session& session) {
  std::string text =
      absl::StrCat(finding.rule, session.raw ? " block " : " chunk ", finding.chunk);
  if (finding.offset != 0) absl::StrAppend(&text, ", byte ", finding.offset);
  absl::StrAppend(&text, ": ", reader::escaped(finding.message));
  for (const reader::RuleText& rule : reader::kRules) {
    if (rule.id == finding.rule)
      absl::StrAppend(&text, " (", std::string(rule.text), ")");
  }
  return text;
}

}  // namespace arctrace::cli
