#!/usr/bin/python3
"""Makes the fuzzers' first inputs out of real traces and buffers: seeds.py ARCTRACE CORPUS.

Each target's directory in CORPUS gets files seed-*; they are committed, so that runs of the fuzzers
with a fixed seed repeat.
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile

CHUNK = struct.Struct("<IHHIIQQ")
BLOCK = 1
HEADER_SIZE = 4096
BLOCK_HEADER_SIZE = 128
DEFINITIONS = 2

PROGRAM = """
import ctypes, os, sys, threading
api = ctypes.CDLL(sys.argv[1])
class Field(ctypes.Structure): _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_uint32)]
fields = (Field * 3)(Field(b"number", 4), Field(b"truth", 11), Field(b"text", 13))
event = api.arctrace_define_event(b"happened", 1, fields, 3)
names = [api.arctrace_define_name(b"name%d" % i) for i in range(3)]
def work(times):
    api.arctrace_thread_name(b"worker")
    for i in range(times):
        for name in names: api.arctrace_enter(ctypes.c_uint64(1 << 63 | name))
        api.arctrace_write(event, b"12345678" + b"\\1" + b"\\3\\0\\0\\0abc", 16)
        api.arctrace_instant(names[0])
        api.arctrace_counter(names[1], ctypes.c_int64(-i))
        api.arctrace_text(b"text %d", i)
        api.arctrace_mark(b"mark")
        api.arctrace_write(event, bytes(3000), 3000)
        for name in reversed(names): api.arctrace_exit(ctypes.c_uint64(1 << 63 | name))
work(2)
thread = threading.Thread(target=work, args=(3,))
thread.start()
thread.join()
if os.fork() == 0:
    work(1)
    os._exit(3)
os.wait()
"""

MODULE = """
extern "C" int outside(int);
struct Guard { ~Guard() { outside(1); } };
int guarded(int x) { Guard guard; return outside(x) + 1; }
int table(int x) {
  switch (x) {
    case 0: return outside(7); case 1: return outside(9); case 2: return 5;
    case 3: return outside(3) + 1; case 4: return x * 31; case 5: return outside(x); default: return -x;
  }
}
int (*const functions[])(int) = {guarded, table};
void* reader() { return __builtin_return_address(0); }
"""

CALLS = """
#include <string.h>
static int inner(const char* text) { return strdup(text) != 0; }
int main(void) { return inner("a") + inner("b") - 2; }
"""

LOCKS = """
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ready;
static void* wake(void* unused) {
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_mutex_lock(&mutex);
  pthread_mutex_trylock(&mutex);
  pthread_create(&thread, 0, wake, 0);
  while (!ready) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  return pthread_join(thread, 0);
}
"""

TYPES = """
struct Pair { int first; double second; };
union Either { float real[2]; struct { char letter; const char* text; } named; };
struct Base { Base(const Base&); virtual ~Base(); int number; };
struct Derived : Base { Pair pairs[2]; };
enum class Colour : unsigned char { kRed };
using Text = const char* const;
extern "C" int declared(Text, volatile long&, double);
int scalars(bool a, short b, Colour c, float d, unsigned long e, Text f) {
  return a + b + (int)c + (int)d + (int)e + *f;
}
long aggregates(Pair a, Either b, Derived c, __int128 d) {
  return a.first + b.named.letter + c.number + (long)d;
}
Derived* result(Derived&& a, int (*b)(int)) {
  long one = b(1);
  declared("x", one, 2);
  return &a;
}
"""


def chunks(trace):
    """(kind, payload) of each chunk of a trace file."""
    offset = HEADER_SIZE
    while offset < len(trace):
        _, kind, _, size, _, _, _ = CHUNK.unpack_from(trace, offset)
        offset += CHUNK.size
        yield kind, trace[offset : offset + size]
        offset += size


def jitdump():
    """Code that is loaded, moved, and replaced."""
    pid, address, code = 1, 0x7f0000001000, b"\x90\xc3"

    def record(kind, time_ns, body):
        return struct.pack("<IIQ", kind, 16 + len(body), time_ns) + body

    def load(time_ns, name, index):
        return record(0, time_ns, struct.pack("<IIQQQQ", pid, pid, address, address, len(code),
                                              index) + name + b"\0" + code)

    move = struct.pack("<IIQQQQQ", pid, pid, address, address, address + 64, len(code), 1)
    return (struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, pid, 5, 0) + load(10, b"first", 1) +
            record(2, 11, bytes(24)) + record(1, 20, move) + load(30, b"second", 2) +
            record(3, 40, b""))


def save_modules(arctrace, save):
    """Modules with symbols and without, of moved and of fixed addresses, and the plan of one."""
    with tempfile.TemporaryDirectory() as directory:
        for name, options in (("moved", ["-shared", "-fPIC"]), ("fixed", ["-no-pie", "-s"]),
                              ("cet", ["-shared", "-fPIC", "-fcf-protection=full", "-s"])):
            path = pathlib.Path(directory) / name
            subprocess.run(["g++", "-x", "c++", "-", "-O2", "-nostdlib", "-Wl,-z,noseparate-code",
                            "-Wl,-e,0", "-Wl,--unresolved-symbols=ignore-all", *options, "-o", path],
                           input=MODULE, text=True, check=True, cwd=directory)
            save("module_code", name, path.read_bytes())
        subprocess.run([arctrace, "functions", pathlib.Path(directory) / "moved"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "XDG_CACHE_HOME": directory})
        [plan] = (pathlib.Path(directory) / "arctrace/plans").iterdir()
        save("patch_plan", "moved", plan.read_bytes())


def save_symbols(arctrace, save):
    """A trace that has names and source lines itself."""
    with tempfile.TemporaryDirectory() as directory:
        program, trace, archive = (pathlib.Path(directory) / name for name in ("calls", "trace", "archive"))
        subprocess.run(["gcc", "-x", "c", "-", "-g", "-finstrument-functions", "-o", program], input=CALLS, text=True,
                       check=True)
        subprocess.run([arctrace, "record", "-b", "24k", "--block-size", "2k", "--slots", "4", "-o", trace, "--", program],
                       check=True, stderr=subprocess.DEVNULL)
        subprocess.run([arctrace, "archive", trace, "-o", archive], check=True, stderr=subprocess.DEVNULL)
        save("trace_file", "symbols", archive.read_bytes())


def save_locks(arctrace, save):
    """A trace of lock calls, whose entries have the locks."""
    with tempfile.TemporaryDirectory() as directory:
        program, trace = (pathlib.Path(directory) / name for name in ("locks", "trace"))
        subprocess.run(["gcc", "-x", "c", "-", "-pthread", "-o", program], input=LOCKS, text=True, check=True)
        subprocess.run([arctrace, "record", "-b", "24k", "--block-size", "2k", "--slots", "4", "-o", trace, "--", program],
                       check=True, stderr=subprocess.DEVNULL)
        save("trace_file", "locks", trace.read_bytes())


def save_kernel(arctrace, save):
    """A trace that the kernel has written into, where it may."""
    with tempfile.TemporaryDirectory() as directory:
        trace = pathlib.Path(directory) / "kernel"
        done = subprocess.run([arctrace, "record", "--kernel=bpf,irq", "--signals", "--contention", "--no-libcall",
                               "--no-symbols", "-o", trace, "--", "sh", "-c", "trap : USR1; kill -USR1 $$; sleep 0.01"],
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"seeds: run me as root, where the kernel may write: {done.stderr}")
        save("trace_file", "kernel", trace.read_bytes())


def main():
    arctrace, corpus = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    library = arctrace.parent.parent / "lib/libarctrace.so.0"
    program = [sys.executable, "-I", "-S", "-c", PROGRAM, library]

    def save(target, name, data):
        directory = corpus / target
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"seed-{name}").write_bytes(data)

    def run(*arguments):
        return subprocess.run([arctrace, *arguments], check=True, stderr=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True).stdout

    save("code_file", "map", b"7f0000001000 20 first\n0x7f0000001020 0x10 second one\nnone\n")
    save("code_file", "dump", jitdump())
    for version in (4, 5):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "types.so"
            subprocess.run(["g++", "-x", "c++", "-", "-std=c++20", "-O1", f"-gdwarf-{version}",
                            "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=none",
                            "-Wl,-z,noseparate-code", "-o", path],
                           input=TYPES, text=True, check=True, cwd=directory)
            save("function_types", f"dwarf{version}", path.read_bytes())
    save_modules(arctrace, save)
    save_symbols(arctrace, save)
    save_locks(arctrace, save)
    save_kernel(arctrace, save)
    small = ["-b", "24k", "--block-size", "2k", "--slots", "4"]
    with tempfile.TemporaryDirectory() as directory:
        for options in (["--mode=drop"], ["--mode=drop", "--scope=shared"],
                        ["--mode=overwrite"]):
            name = options[-1].split("=")[1]
            path = pathlib.Path(directory) / "trace"
            run("record", "--no-libcall", "-o", path, *small, *options, "--", *program)
            trace = path.read_bytes()
            save("trace_file", name, trace)
            seen = {}
            for kind, payload in chunks(trace):
                if kind != BLOCK:
                    continue
                form, block_class = struct.unpack_from("<HH", payload, 68)
                if len(payload) > seen.get((form, block_class), 0):
                    seen[form, block_class] = len(payload)
                    save("block", f"{name}-{form}-{block_class}", payload)
                    if block_class == DEFINITIONS:
                        save("definitions", name, payload[BLOCK_HEADER_SIZE:])
            session = f"seeds-{os.getpid()}"
            path = run("create", session, *small, *options, "--start").strip()
            try:
                run("record", "--no-libcall", f"--session={session}", "--", *program)
                save("buffer_image", name, pathlib.Path(path).read_bytes())
            finally:
                run("destroy", session)


if __name__ == "__main__":
    main()
