/* memcpy and memset for the calls that the compiler generates in code that is loaded into
 * traced programs. They are hidden (-fvisibility) and use no vector registers. */
#include <stddef.h>

void* memcpy(void* to, const void* from, size_t size);
void* memset(void* to, int value, size_t size);

void* memcpy(void* to, const void* from, size_t size) {
  unsigned char* out = to;
  const unsigned char* in = from;
  while (size-- != 0) *out++ = *in++;
  return to;
}

void* memset(void* to, int value, size_t size) {
  unsigned char* out = to;
  while (size-- != 0) *out++ = (unsigned char)value;
  return to;
}
