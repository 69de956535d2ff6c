#include "writer_shim/arch/patch_code.hpp"

namespace arctrace::shim {

constinit AddressRange patch_code{};

}  // namespace arctrace::shim
