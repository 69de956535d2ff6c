// The files that the page is made of, as they are in the command.
#pragma once

#include <string_view>

namespace arctrace::reader {

std::string_view page_html();
std::string_view page_css();
std::string_view page_script();

}  // namespace arctrace::reader
