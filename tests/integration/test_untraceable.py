"""Programs that can't be traced run as ever, with one line that says why; those of their children that can be traced
are traced."""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import unittest

import cases
from command import HINT, lines_without, read_dump, read_info, read_report, run
from tracing import TracedTest

PARENT = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
int main(int count, char** words) {
  puts("untraced");
  fflush(stdout);
  if (CHILD && count > 1 && WEXITSTATUS(system(words[1])) != 0) return 1;
  return 3;
}
"""
# Prints whether LD_PRELOAD is in the environment, and ends with 3.
LOADER = """
.globl _start
_start: movl (%esp), %ecx
        leal 8(%esp,%ecx,4), %esi
        movl $without, %ecx
        movl $8, %edx
1:      movl (%esi), %eax
        addl $4, %esi
        testl %eax, %eax
        je 2f
        cmpl $0x505f444c, (%eax)
        jne 1b
        cmpl $0x4f4c4552, 4(%eax)
        jne 1b
        movl $with, %ecx
        movl $5, %edx
2:      movl $4, %eax; movl $1, %ebx; int $0x80
        movl $1, %eax; movl $3, %ebx; int $0x80
without: .ascii "without\\n"
with:    .ascii "with\\n"
"""
# write(1, "i386\\n", 5); _exit(3)
I386 = """
.globl _start
_start: movl $4, %eax; movl $1, %ebx; movl $text, %ecx; movl $5, %edx; int $0x80
        movl $1, %eax; movl $3, %ebx; int $0x80
text:   .ascii "i386\\n"
"""


class Untraceable(TracedTest):
    def build(self, name, *options, child=1):
        program = self.directory / name
        subprocess.run(["gcc", f"-DCHILD={child}", "-x", "c", "-", "-o", program, *options], input=PARENT, text=True,
                       check=True)
        return program

    def assert_untraced(self, program, why, *arguments, processes):
        """The program does the same as without us, and one line says once that it is `why`."""
        command = [str(program), *arguments]
        bare = run(*command)
        recorded = self.record(*command)
        self.assertEqual((recorded.status, recorded.stdout), (bare.returncode, bare.stdout))
        self.assertEqual(bare.returncode, 3)
        warning, summary = recorded.stderr.splitlines()
        self.assertEqual(warning, f"arctrace: warning: can't trace {program}: it is {why}")
        self.assertIn(f" {processes} process", summary)

    @unittest.skipUnless(shutil.which("prlimit"), "no prlimit")
    def test_no_room_for_the_buffer(self):
        """The program's address space is too small: it runs as ever, and a line says that it is not recorded."""
        limited = ("prlimit", "--as=60000000", "echo", "as always")
        recorded = self.record(*limited)
        self.assertEqual((recorded.status, recorded.stdout), (0, "as always\n"))
        warning = recorded.stderr.splitlines()[0]
        self.assertRegex(warning, "^arctrace: warning: 1 program is not recorded, without room in memory for the buffer "
                                  r"of \S+ .iB \(ulimit -v\): a smaller one may fit, such as -b 4M$")
        self.assertIn(" 1 process,", recorded.stderr)  # prlimit itself, before the exec
        recorded = self.record(*limited, options=("-b", "4M"))
        self.assertNotIn("warning", recorded.stderr)
        self.assertIn(" 1 process,", recorded.stderr)
        self.assertEqual(len(read_info(recorded.trace)["processes"]), 2)

    def test_static_and_its_child(self):
        for name, option in (("static", "-static"), ("static-pie", "-static-pie")):
            with self.subTest(option):
                self.assert_untraced(self.build(name, option), "statically linked", "ls /",
                                     processes=2)  # the shell executes ls
                self.assert_untraced(self.directory / name, "statically linked", processes=0)

    @unittest.skipUnless(shutil.which("musl-gcc"), "no musl-gcc")
    def test_musl_and_its_child(self):
        """Our library is loaded in a program of musl, and does nothing."""
        program = self.directory / "of-musl"
        subprocess.run(["musl-gcc", "-DCHILD=1", "-x", "c", "-", "-o", program], input=PARENT, text=True, check=True)
        # The process itself joins, but its calls are not recorded.
        self.assert_untraced(program, "linked with musl", processes=1)
        self.assert_untraced(program, "linked with musl", "ls /", processes=3)

    def test_early_glibc_and_its_child(self):
        """This libc poses as a glibc before 2.28: the libraries are loaded and do nothing."""
        self.build("plain")
        for version, why in (("2.27", "linked with a glibc before 2.28"), ("2.28", None), ("3.0", None)):
            with self.subTest(version):
                poses = "const char* gnu_get_libc_version(void) { return VERSION; }"
                program = self.directory / f"of-{version}"
                subprocess.run(["gcc", "-finstrument-functions", "-DCHILD=1", f'-DVERSION="{version}"', "-x", "c", "-",
                                "-rdynamic", "-o", program], input=PARENT + poses, text=True, check=True)
                if why is None:
                    recorded = self.record(program)
                    self.assertNotIn("warning", recorded.stderr)
                    self.assertTrue(self.calls_of(recorded.trace, "main"))
                    continue
                # The process itself joins, but its calls are not recorded.
                self.assert_untraced(program, why, processes=1)
                self.assertFalse(self.calls_of(self.directory / "arctrace.data", "main"))
                self.assert_untraced(program, why, "ls /", processes=3)

    def calls_of(self, trace, function):
        return [row for row in read_report(trace, "flat")["functions"] if row["name"] == function]

    def test_interpreter_of_a_script(self):
        """The interpreter that runs a script counts as the program, also if it is found by PATH."""
        interpreter = self.build("interpreter", "-static", child=0)
        script = self.directory / "script-of-ours"
        script.write_text(f"#! {interpreter}\n")
        script.chmod(0o755)
        self.assert_untraced(script, "statically linked", processes=0)
        os.environ["PATH"] += f":{self.directory}"
        self.assert_untraced("script-of-ours", "statically linked", processes=0)

    # Starts programs in each way; the last one does not exist, the one before can't be executed.
    STARTS = """
import os, subprocess
for word in "./static", "./setuid", "./plain", "./text", "./nowhere":
    try: print(word, subprocess.run([word], check=False).returncode, flush=True)
    except OSError as error: print(word, error.strerror)
os.environ["PATH"] = os.getcwd()
os.waitpid(os.posix_spawnp("found", ["found"], os.environ), 0)
if os.fork() == 0: os.execvp("replaced", ["replaced"])
os.wait()
"""

    def warnings(self, recorded):
        return [line.removeprefix("arctrace: warning: can't trace ")
                for line in recorded.stderr.splitlines() if "warning" in line]

    def test_children(self):
        """Programs that traced programs execute are named at the end, each once."""
        for name in ("static", "found", "replaced"):
            self.build(name, "-static", child=0)
        self.build("plain", child=0)
        program = self.build("setuid", child=0)
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(program, 65534, 65534)
            program.chmod(0o4755)
        (self.directory / "text").write_bytes((self.directory / "static").read_bytes())
        (self.directory / "text").chmod(0o644)
        command = [shutil.which("python3"), "-c", self.STARTS]
        bare = run(*command, cwd=self.directory)
        static = "statically linked"
        expected = {f"./static: it is {static}", f"{self.directory}/found: it is {static}",
                    f"{self.directory}/replaced: it is {static}"}
        if is_root:
            expected.add("./setuid: it is setuid")
        for mode in ("drop", "overwrite"):
            recorded = self.record(*command, options=(f"--mode={mode}",))
            self.assertEqual((recorded.status, recorded.stdout), (bare.returncode, bare.stdout))
            self.assertEqual(sorted(self.warnings(recorded)), sorted(expected))
        found = [record for record in read_dump(recorded.trace) if record["type"] == "UNTRACED"]
        self.assertEqual({(record["path"], record["why"]) for record in found},
                         {tuple(line.split(": it is ")) for line in expected})

    LEAKS = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static void* in_thread(void* text) { return strdup(text); }
int main(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, in_thread, "leaked") != 0 ||
         pthread_join(thread, NULL) != 0 || strdup("leaked too") == NULL;
}
"""

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_valgrind(self):
        """valgrind prints the same of a program, with its stacks; it starts the program without us."""
        program = self.directory / "leaks"
        subprocess.run(["gcc", "-g", "-x", "c", "-", "-o", program, "-pthread"], input=self.LEAKS,
                       text=True, check=True)
        for tool in ("--leak-check=full", "--tool=helgrind"):
            command = ["valgrind", tool, str(program)]
            bare = run(*command)
            recorded = self.record(*command)
            self.assertEqual(recorded.status, bare.returncode)
            warnings = self.warnings(recorded)
            self.assertEqual(len(warnings), 1)
            self.assertRegex(warnings[0], "^/usr/libexec/valgrind/.*: it is statically linked$")
            of_valgrind = [re.sub("^==[0-9]+==", "", line) for line in recorded.errors.splitlines()]
            self.assertEqual(of_valgrind, [re.sub("^==[0-9]+==", "", line)
                                           for line in bare.stderr.splitlines()])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_child_of_another_user(self):
        """The user of the program may not open the buffer."""
        recorded = self.record("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               shutil.which("true"))
        self.assertEqual(self.warnings(recorded), [
            f"{shutil.which('true')}: it is out of the session's reach: another user's, or in "
            "another root directory"])
        recorded = self.record("setpriv", "--clear-groups", shutil.which("true"))
        self.assertEqual(self.warnings(recorded), [])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_setuid(self):
        program = self.build("setuid")
        os.chown(program, 65534, 65534)
        for mode, why in ((0o4755, "setuid"), (0o2755, "setgid")):
            program.chmod(mode)
            self.assert_untraced(program, why, processes=0)
        program.chmod(0o755)
        self.assertNotIn("warning", self.record(program).stderr)

    @unittest.skipUnless(platform.machine() == "x86_64", "of x86-64")
    def test_other_architecture(self):
        program = self.directory / "i386"
        for command in (["as", "--32", "-o", "i386.o"], ["ld", "-m", "elf_i386", "i386.o", "-o", program]):
            subprocess.run(command, input=I386, text=True, cwd=self.directory, check=True)
        try:
            run(program)
        except OSError:
            self.skipTest("this kernel runs no 32-bit programs")
        self.assert_untraced(program, "statically linked", processes=0)

    @unittest.skipUnless(platform.machine() == "x86_64", "of x86-64")
    def test_loader_of_another_word_size(self):
        """Our library would be an error for this loader, which it would print."""
        loader = self.directory / "loader"
        program = self.directory / "dynamic-i386"
        (self.directory / "with-loader.ld").write_text(
            "PHDRS { interp PT_INTERP; text PT_LOAD FILEHDR PHDRS; }\n"
            "SECTIONS { . = 0x8048000 + SIZEOF_HEADERS; .interp : { *(.interp) } :text :interp\n"
            " .text : { *(.text) } :text }\n")
        source = I386 + f'.section .interp,"a"\n.asciz "{loader}"\n'
        for text, command in ((LOADER, ["as", "--32", "-o", "loader.o"]), (source, ["as", "--32", "-o", "i386.o"]),
                              ("", ["ld", "-m", "elf_i386", "-Ttext-segment=0x9000000", "loader.o", "-o", loader]),
                              ("", ["ld", "-m", "elf_i386", "-T", "with-loader.ld", "i386.o", "-o", program])):
            subprocess.run(command, input=text, text=True, cwd=self.directory, check=True)
        try:
            bare = run(program)
        except OSError:
            self.skipTest("this kernel runs no 32-bit programs")
        self.assertEqual((bare.returncode, bare.stdout), (3, "without\n"))
        self.assert_untraced(program, "of another architecture", processes=0)
        script = self.directory / "foreign-script"
        script.write_text(f"#! {program}\n")
        script.chmod(0o755)
        os.environ["PATH"] += f":{self.directory}"
        for how in (f"{program}", "dynamic-i386", "foreign-script", "env dynamic-i386"):
            recorded = self.record("sh", "-c", f"{how}; env ls / > /dev/null; {how}")
            self.assertEqual((recorded.status, recorded.stdout), (3, "without\n" * 2))
            self.assertIn(" 0 lost", recorded.stderr)
        spawns = "import os; os.waitpid(os.posix_spawnp('dynamic-i386', ['x'], os.environ), 0)"
        self.assertEqual(self.record("/usr/bin/python3", "-c", spawns).stdout, "without\n")

    def test_loader_as_a_program(self):
        """The loader itself is linked to nothing, and traced all the same."""
        loader = next(pathlib.Path("/lib64").glob("ld-linux-*"), None)
        if loader is None:
            self.skipTest("no /lib64/ld-linux")
        recorded = self.record(str(loader), shutil.which("true"))
        self.assertNotIn("warning", recorded.stderr)
        self.assertIn(" 1 process", recorded.stderr)

    def test_script_without_interpreter_by_path(self):
        script = self.directory / "no-first-line"
        script.write_text('echo "$0 $1"\nexit 3\n')
        script.chmod(0o755)
        os.environ["PATH"] += f":{self.directory}"
        recorded = self.record("no-first-line", "so")
        self.assertEqual((recorded.status, recorded.stdout), (3, f"{script} so\n"))


# Begins without a list of robust locks, as a program of glibc 2.31 without libpthread; later gets libc's, as from a
# libpthread that is loaded, and makes a thread.
WITHOUT_LIST = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *list; static size_t size;
static void forget(void) {
  syscall(SYS_get_robust_list, 0, &list, &size);
  syscall(SYS_set_robust_list, 0, size);
}
__attribute__((section(".preinit_array"), used)) static void (*first)(void) = forget;
static void* run(void* unused) { return unused; }
int main(int count, char** words) {
  for (int i = 0; i < 1000; ++i) atoi(words[0]);
  if (count > 1 && strchr(words[1], 't')) {
    pthread_t thread;
    syscall(SYS_set_robust_list, list, size);
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
  }
  if (count > 1 && strchr(words[1], 'f') && fork() == 0) { for (int i = 0; i < 500; ++i) atoi(words[0]); _exit(0); }
  if (count > 1 && strchr(words[1], 'k')) raise(SIGKILL);
}
"""


class WithoutRobustList(TracedTest):
    def test_recorded_and_its_end_seen(self):
        program = self.directory / "without-list"
        subprocess.run(["gcc", "-x", "c", "-", "-o", program], input=WITHOUT_LIST, text=True, check=True)
        for word, processes in (("", 1), ("k", 1), ("t", 1), ("tk", 1), ("f", 2), ("tfk", 2)):
            with self.subTest(word):
                recorded = self.record(program, word, options=("--wait",))
                self.assertIn(f" 0 lost, {processes} process", recorded.stderr)
                self.assertEqual(len(lines_without(recorded.stderr, HINT)), 1, recorded.stderr)
                ends = [row for row in read_dump(recorded.trace) if row["type"] == "WRITER_END"]
                # All ends are known, because the kernel marks the words on the lists.
                self.assertEqual(len(ends), processes + ("t" in word), ends)


if __name__ == "__main__":
    cases.main()
