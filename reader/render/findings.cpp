#include "reader/render/findings.hpp"

#include <absl/strings/str_cat.h>

#include "reader/trace/rules.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {

std::string finding_text(const Finding& finding, const Session& session) {
  std::string text =
      absl::StrCat(finding.rule, session.raw ? " block " : " chunk ", finding.chunk);
  if (finding.offset != 0) absl::StrAppend(&text, ", byte ", finding.offset);
  absl::StrAppend(&text, ": ", escaped(finding.message));
  for (const RuleText& rule : kRules) {
    if (rule.id == finding.rule)
      absl::StrAppend(&text, " (", std::string(rule.text), ")");
  }
  return text;
}

void write_findings_json(const Trace& trace, JsonWriter& json) {
  json.key("findings").begin_array();
  for (const Finding& finding : trace.findings()) {
    json.begin_object();
    json.member("rule", finding.rule);
    json.member("message", finding.message);
    json.member(trace.session().raw ? "block" : "chunk", finding.chunk);
    json.member("offset", finding.offset);
    json.end();
  }
  json.end();
}

}  // namespace arctrace::reader
