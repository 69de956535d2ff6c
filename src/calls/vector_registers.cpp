#include "src/calls/vector_registers.hpp"

namespace arctrace {

void store_vectors(uint64_t (&vectors)[ARCTRACE_SHIM_VECTORS_MAX]) {
#if defined(__x86_64__)
  asm volatile(
      "movq %%xmm0, (%0)\n\t"
      "movq %%xmm1, 8(%0)\n\t"
      "movq %%xmm2, 16(%0)\n\t"
      "movq %%xmm3, 24(%0)\n\t"
      "movq %%xmm4, 32(%0)\n\t"
      "movq %%xmm5, 40(%0)\n\t"
      "movq %%xmm6, 48(%0)\n\t"
      "movq %%xmm7, 56(%0)"
      :
      : "r"(vectors)
      : "memory");
#else
  asm volatile(
      "stp d0, d1, [%0]\n\t"
      "stp d2, d3, [%0, #16]\n\t"
      "stp d4, d5, [%0, #32]\n\t"
      "stp d6, d7, [%0, #48]"
      :
      : "r"(vectors)
      : "memory");
#endif
}

}  // namespace arctrace
