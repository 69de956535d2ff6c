#include "reader/ui/page/page_files.hpp"

namespace arctrace::reader {
namespace {

#include "page_files.inc"

template <class Bytes>
std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes), sizeof(bytes)};
}

}  // namespace

std::string_view page_html() { return text_of(kHtmlBytes); }
std::string_view page_css() { return text_of(kCssBytes); }
std::string_view page_script() { return text_of(kScriptBytes); }

}  // namespace arctrace::reader
