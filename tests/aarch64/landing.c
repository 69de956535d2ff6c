// Calls library functions through registers, while the shim's code is guarded: an
// indirect branch to anything but a landing pad (bti) ends the program by SIGILL. The
// guard is on only for these calls, because C's start files, which are in the shim too,
// have no landing pads.
#define _GNU_SOURCE
#include <link.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROT_BTI_PAGES 0x10 /* PROT_BTI, of <asm/mman.h> */

static jmp_buf place;

static int protect(struct dl_phdr_info* info, size_t size, void* protection) {
  (void)size;
  if (strstr(info->dlpi_name, "libarctrace-shim.so") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0) continue;
    const size_t page = (size_t)getpagesize();
    const uintptr_t low = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
    const uintptr_t high = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    if (mprotect((void*)low, high - low, *(int*)protection) != 0) abort();
  }
  return 1;
}

// The program jumps to this function.
__attribute__((noinline)) static long last(const char* text) {
  return strtol(text, NULL, 10);
}

int main(void) {
  int guarded = PROT_READ | PROT_EXEC | PROT_BTI_PAGES;
  int open = PROT_READ | PROT_EXEC;
  const char* volatile text = "12 characters";
  dl_iterate_phdr(protect, &guarded);
  const size_t length = strlen(text);
  const long value = last(text);
  const int has_parent = getppid() > 0;
  if (setjmp(place) == 0 && length == 13) longjmp(place, 1);
  dl_iterate_phdr(protect, &open);
  printf("%zu %ld %d\n", length, value, has_parent);
  return 0;
}
