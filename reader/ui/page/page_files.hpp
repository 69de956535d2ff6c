// The files of the page, as they are embedded in the command.
#pragma once

#include <string_view>

namespace arctrace::reader {

std::string_view page_html();
std::string_view page_css();
std::string_view page_script();

}  // namespace arctrace::reader
