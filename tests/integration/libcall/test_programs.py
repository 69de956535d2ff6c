"""Real programs of the distribution, untraced and traced."""

import collections
import pathlib
import re
import shutil
import subprocess
import unittest

import cases
import plain
from command import run

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = str(HERE / "fixtures/counted.c")
PYTHON = """
import collections, ctypes, hashlib, json, re, subprocess, threading
print(hashlib.sha256(b"x").hexdigest(), json.dumps({"a": [1, 2.5]}), re.sub("a+", "b", "caat"))
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout)
threads = [threading.Thread(target=sorted, args=([3, 1, 2],)) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
values = (ctypes.c_int * 3)(3, 1, 2)
ctypes.CDLL(None).qsort(values, 3, 4, callback(lambda a, b: a[0] - b[0]))
print(list(values))
try: 1 / 0
except ZeroDivisionError as error: print(error)
raise SystemExit(5)
"""
NODE = """
const crypto = require('crypto');
class Shape { constructor(n) { this.n = n; } area() { return this.n * this.n; } }
let sum = 0;
for (let i = 0; i < 200000; i++) sum += new Shape(i % 7).area();
console.log(sum, crypto.createHash('sha256').update('x').digest('hex'));
Promise.resolve(1).then(() => { throw new Error('late'); }).catch((e) => console.log(e.message));
require('child_process').exec('echo child', (e, out) => { console.log(out); process.exitCode = 4; });
"""
RUBY = """
puts 4.times.map { |i| Thread.new { (1..99).sum { |n| n * i } } }.map(&:value).inspect
fiber = Fiber.new { 3.times { |i| Fiber.yield i }; :end }
5.times { puts fiber.resume.inspect rescue puts $!.message }
puts catch(:done) { 9.times { |i| throw :done, i if i == 3 } }
puts `echo child`; Process.wait(fork { exit! 3 }); puts $?.exitstatus; exit 5
"""
LUAJIT = """
local sum, ffi = 0, require "ffi"
ffi.cdef "int abs(int);"
for i = 1, 1e6 do sum = sum + ffi.C.abs(-i) end
local yields = coroutine.wrap(function() coroutine.yield(1) error "late" end)
print(sum, yields(), pcall(yields)) os.exit(3)
"""
ZSH = ("a=(3 1 2); print ${(o)a}; coproc cat; print -p text; read -p line; print $line; (exit 3);"
       " print $?; TRAPUSR1() { print signal }; kill -USR1 $$; zmodload zsh/datetime; [[ x =~ y ]]")
# man's filters confine themselves by seccomp.
MANUAL = "printf '.TH X 1\n.SH NAME\nx \\- y\n' > x.1; man -P cat -l x.1; man nonsense"
SOUND = ("sox -D -n -b 16 -r 8000 a.wav synth 0.2 sine 440 && sox -D a.wav b.au speed 1.5 &&"
         " cat a.wav b.au | cksum; sox nothing.wav -n stat")
CIPHER = ("openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -k key -in /etc/services | tee secret |"
          " cksum; openssl enc -d -aes-256-cbc -pbkdf2 -k key -S 0011223344556677 -in secret | cksum")
MAKEFILE = "all: a b c d\na b c d:\n\t@gcc -O1 -o $@ %s && echo $@ > $@.done\n" % SOURCE
COMMANDS = {
    "python3": ["/usr/bin/python3", "-c", PYTHON],
    "git": ["git", "-C", str(HERE), "--no-pager", "log", "--oneline", "-5"],
    "gcc": ["gcc", "-O2", "-S", "-o", "-", SOURCE],
    "g++": ["g++", "-x", "c++", "-fsyntax-only", "-include", "map", "/dev/null"],
    "clang": ["clang-14", "-O2", "-S", "-o", "-", SOURCE],
    "ld": ["ld", "--version"],
    "bash": ["bash", "-c", "trap 'echo t' USR1; kill -USR1 $$; for i in 1 2; do echo $i | cat; done;"
             " (exit 3)"],
    "dash": ["dash", "-c", "echo $((6 * 7)); cd /nonexistent"],
    "perl": ["perl", "-e", 'print join(",", sort map { $_ * 2 } 1 .. 9); eval { die "x\\n" }; print $@;'
             ' print `echo sub`'],
    "tar": ["sh", "-c", f"tar cf - -C {HERE} . | tar tf - | sort"],
    "find": ["find", str(HERE), "-name", "*.c", "-newer", "/etc/hostname"],
    "sort": ["sort", "-k2", "/etc/services"],
    "sqlite3": ["sqlite3", ":memory:", "create table t(a, b); insert into t values (1, 'x'), (2, 'y');"
                "select sum(a), group_concat(b) from t; select nonsense;"],
    "gzip": ["sh", "-c", "gzip -nc /etc/services | gzip -dc | cksum"],
    "xz": ["sh", "-c", "xz -T2 -c /etc/services | xz -dc | cksum"],
    "openssl": ["openssl", "dgst", "-sha256", "/etc/services"],
    "cipher": ["sh", "-c", CIPHER],
    "sox": ["sh", "-c", SOUND],
    "node": ["node", "-e", NODE],
    "ruby": ["ruby", "--disable-gems", "-e", RUBY],
    "luajit": ["luajit", "-e", LUAJIT],
    "zsh": ["zsh", "-fc", ZSH],
    "man": ["sh", "-c", MANUAL],
    "tclsh": ["sh", "-c", "echo 'puts [expr {2 ** 70}]; puts [lsort {b a}]; exit 3' | tclsh"],
    "m4": ["sh", "-c", "echo 'define(x, `y$1')x(1) x(2)' | m4"],
    "objdump": ["objdump", "-d", "--stop-address=0x3000", "/bin/true"],
    "make": ["make", "-s", "-j2", "-f", "Makefile"],
    "ls": ["ls", "-la", str(HERE / "fixtures")],
    "awk": ["awk", 'BEGIN { for (i = 0; i < 999; i++) s += sqrt(i); printf "%.6f\\n", s }'],
    "sed": ["sed", "-n", "s/tcp/TCP/p", "/etc/services"],
    "grep": ["grep", "-rE", "^(foo|bar)+", "/etc/services"],
    "diff": ["diff", "/etc/passwd", "/etc/group"],
    "gdb": ["gdb", "-q", "-batch", "-ex", "print 6 * 7", "-ex", "info line main", "/bin/true"],
    "curl": ["curl", "-s", "file:///etc/services"],
    "ssh": ["ssh", "-V"],
    "vim": ["vim", "-es", "-u", "NONE", "-c", "put ='x'", "-c", "%print", "-c", "q!"],
    "bc": ["sh", "-c", "echo '2^200; sqrt(2)' | bc -l"],
    "file": ["file", "/bin/true"],
    "readelf": ["readelf", "-d", "/bin/true"],
    "cmake": ["cmake", "-E", "echo", "text"],
}

SHELL_SCRIPTS = ("tar", "cipher")


class Programs(plain.PlainTest):
    def test_same_output_and_exit(self):
        tried = 0
        for name, command in COMMANDS.items():
            if shutil.which(command[0]) is None or (
                    command[0] == "sh" and shutil.which(name) is None and name not in SHELL_SCRIPTS):
                continue
            tried += 1
            directory = self.place("program")
            (directory / "Makefile").write_text(MAKEFILE)
            bare = run(*command, cwd=directory)
            for mode in plain.MODES:
                if mode == "--nest-libcall" and name in ("clang", "gdb", "make", "node"):
                    continue  # these take seconds each
                with self.subTest(name=name, mode=mode):
                    directory = self.place("program")
                    (directory / "Makefile").write_text(MAKEFILE)
                    traced = self.record_quietly(*command, directory=directory, options=[mode, "-b", "32M"],
                                                 may_say=[plain.CONFINED] if name == "man" else ())
                    self.assert_same(bare, traced)
        self.assertGreaterEqual(tried, 25)


@unittest.skipUnless(shutil.which("ltrace"), "no ltrace")
class AgainstLtrace(plain.PlainTest):
    """Another tool's count of the same calls: ltrace stops at PLT entries."""

    FUNCTIONS = ("malloc", "realloc", "strlen", "strchr", "memcpy", "fwrite", "opendir", "readdir",
                 "strcoll", "setlocale", "memset", "sigaction", "getopt_long", "getenv", "fflush", "fclose", "__errno_location")

    def test_counts(self):
        for command in (["sort", "/etc/passwd"], ["ls", str(HERE / "fixtures")], ["gzip", "-nc", "/etc/passwd"]):
            with self.subTest(command=command):
                directory = self.place("program")
                counts = directory / "counts"
                subprocess.run(["ltrace", "-o", counts, "-c", *command], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                theirs = collections.Counter()
                for line in counts.read_text().splitlines():
                    fields = line.split()
                    if len(fields) == 5 and re.fullmatch(r"\d+", fields[3]):
                        theirs[fields[4]] = int(fields[3])
                traced = self.record_quietly(*command, directory=directory)
                ours = traced.calls()
                compared = [name for name in self.FUNCTIONS if name in theirs]
                self.assertGreater(len(compared), 2, theirs)
                for name in compared:
                    self.assertEqual(ours.get(name), theirs[name], name)


if __name__ == "__main__":
    cases.main()
