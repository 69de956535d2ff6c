// What the programs need of the kernel's types; libbpf finds the fields' places in the
// running kernel's BTF.
#pragma once

// clang-format off
#include <linux/bpf.h>
#include <stdbool.h>
#include <arctrace/format.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
// clang-format on

#define RELOCATED __attribute__((preserve_access_index))

struct task_struct {
  int pid;   // the thread
  int tgid;  // the process
  unsigned int __state;
  char comm[16];
} RELOCATED;
