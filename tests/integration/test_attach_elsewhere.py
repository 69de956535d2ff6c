"""Programs that are joined across borders: of another user, in another root directory, in namespaces as those of a
container, under a seccomp filter; and the environment of what they execute after a recording has ended."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

import cases
from attached_programs import JOINED, AttachTest
from command import ARCTRACE, arctrace, read, read_report, run, start_arctrace
from kernel_programs import NO_KERNEL
from states import wait_until

NOBODY = 65534
LIBRARIES = pathlib.Path(ARCTRACE).resolve().parent.parent / "lib"
IS_ROOT = os.geteuid() == 0
MAY_MOUNT = IS_ROOT and subprocess.run(["unshare", "--mount", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0
MAY_NEST = MAY_MOUNT and subprocess.run(["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--mount-proc", "true"],
                                        check=False, stderr=subprocess.DEVNULL).returncode == 0

# Executes a command for each line that it reads, and prints the number of its bytes of output, then the output.
SERVER = """
import subprocess, sys
print("begins", flush=True)
for line in sys.stdin:
    done = subprocess.run(line.split(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    print(len(done.stdout), flush=True)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.buffer.flush()
"""

# Installs a seccomp filter that allows all, but answers the system calls of its arguments with the action of its first.
FILTERED = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
action, numbers, command = int(sys.argv[1], 0), json_numbers, sys.argv[3:]
code = struct.pack("HBBI", 0x20, 0, 0, 0)
for number in numbers:
    code += struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 6, 0, 0, action)
code += struct.pack("HBBI", 6, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(code, len(code))
program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(text))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execv(command[0], command)
""".replace("json_numbers", "[int(n) for n in sys.argv[2].split(',') if n]")


# A program that calls a function which nobody hooks; it ends as the modes of attach_joined do. When there is a file
# "fewer" it has one descriptor less.
OWN_FUNCTION = """
#include <stdio.h>
#include "rounds.h"
__attribute__((noinline)) unsigned work(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) sum = sum * 31 + i;
  return sum;
}
int main(void) {
  volatile unsigned sum = 0;
  int extra = open("/dev/null", O_RDONLY);
  puts("begins");
  fflush(stdout);
  while (!is_stopped()) {
    sum += work(100);
    if (extra >= 0 && access("fewer", F_OK) == 0) {
      close(extra);
      extra = -1;
    }
    usleep(1000);
  }
  puts("as always");
  return 7;
}
"""


def own_function(directory):
    """Compiles OWN_FUNCTION."""
    source = directory / "own.c"
    source.write_text(OWN_FUNCTION, encoding="utf-8")
    headers = pathlib.Path(__file__).resolve().parent / "attach"
    subprocess.run(["gcc", "-O1", f"-I{headers}", source, "-o", directory / "own"], check=True)
    return directory / "own"


class Server:
    """The program SERVER, which executes commands."""

    def __init__(self, test, **options):
        self.process = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        **options)
        test.addCleanup(test.end, self.process)
        test.assertEqual(self.process.stdout.readline(), b"begins\n")
        self.pid = self.process.pid

    def execute(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.read(int(self.process.stdout.readline()))

    def environment(self):
        """The environment of a program that the server executes."""
        return sorted(self.execute("/usr/bin/env -0").split(b"\0"))


class ElsewhereTest(AttachTest):
    def recorder(self, pid, *options, trace="arctrace.data"):
        """A recorder that has joined the process."""
        recorder = start_arctrace("record", "-o", self.directory / trace, "-p", str(pid), *options, text=True,
                                  stderr=subprocess.PIPE)
        self.addCleanup(self.end, recorder)
        lines = [recorder.stderr.readline()]
        while "joined process" not in lines[-1]:
            self.assertNotEqual(lines[-1], "", lines)
            lines.append(recorder.stderr.readline())
        return recorder

    def finish(self, recorder):
        recorder.send_signal(signal.SIGINT)
        errors = recorder.communicate(timeout=600)[1]
        self.assertEqual(recorder.returncode, 0, errors)
        return errors


@cases.in_gate
class Environment(ElsewhereTest):
    """While a recording goes on, what the program executes is recorded; afterwards its environment is as before."""

    def test_after_the_end(self):
        server = Server(self)
        before = server.environment()
        for _ in range(2):
            recorder = self.recorder(server.pid)
            during = server.environment()
            self.assertEqual([entry.partition(b"=")[0] for entry in sorted(set(during) - set(before))],
                             [b"ARCTRACE_OPTIONS", b"ARCTRACE_SESSION", b"LD_PRELOAD"])
            self.finish(recorder)
            read("check", self.directory / "arctrace.data")
            self.assertIn("env", {thread["name"] for thread in read_report(self.directory / "arctrace.data", "tree")["threads"]})
            self.assertEqual(server.environment(), before)

    def test_after_the_recorder_was_killed(self):
        server = Server(self)
        before = server.environment()
        recorder = self.recorder(server.pid)
        recorder.kill()
        recorder.wait()
        wait_until(lambda: server.environment() == before, server.environment)
        for left in (*self.directory.glob("arctrace.data*"), *pathlib.Path("/dev/shm").glob(f"arctrace-*-{recorder.pid}-*")):
            left.unlink()

    def test_of_a_child_that_began_meanwhile(self):
        """A shell that was executed while a recording went on: what it executes afterwards has no trace of it, and can
        be joined."""
        server = Server(self)
        place = self.directory / "place"
        place.mkdir()
        script = place / "script"
        script.write_text(f"cd {place}; echo $$ > pid; until [ -e go ]; do sleep 0.01; done\n"
                          f"env -0 > after; exec {JOINED} sleeps > output\n", encoding="utf-8")
        before = server.environment()
        recorder = self.recorder(server.pid)
        start = place / "start"
        start.write_text(f"setsid sh {script} < /dev/null > /dev/null 2>&1 &\n", encoding="utf-8")
        server.execute(f"sh {start}")
        wait_until(lambda: (place / "pid").exists() and (place / "pid").read_text(encoding="ascii").endswith("\n"), "the shell")
        self.finish(recorder)
        self.addCleanup(run, "kill", "-KILL", (place / "pid").read_text(encoding="ascii").strip())  # if it is there still
        (place / "go").touch()
        wait_until(lambda: (place / "output").exists() and (place / "output").read_text(encoding="ascii") == "begins\n",
                   "the program")
        own = ("PWD=", "OLDPWD=", "_=", "SHLVL=")
        after = sorted((place / "after").read_bytes().split(b"\0"))
        self.assertEqual([entry for entry in after if not entry.decode().startswith(own)],
                         [entry for entry in before if not entry.decode().startswith(own)])
        pid = int((place / "pid").read_text(encoding="ascii"))
        recorder = self.recorder(pid, trace="child.data")
        self.wait_for_rounds(place)
        self.finish(recorder)
        (place / "stop").touch()
        wait_until(lambda: (place / "output").read_text(encoding="ascii") == "begins\nas always\n", "the end")
        self.assertGreater(self.functions("child.data")["getppid"], 0)


@cases.in_gate
@unittest.skipUnless(IS_ROOT, "needs root")
class AnotherUser(ElsewhereTest):
    def start_as(self, user, *command):
        place = self.directory / f"place-{len(list(self.directory.iterdir()))}"
        place.mkdir()
        for directory in (self.directory, place):
            directory.chmod(0o755)
        os.chown(place, user, user)
        program = subprocess.Popen(command, cwd=place, text=True, user=user, group=user, extra_groups=[],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), "begins\n")
        return program, place

    def setUp(self):
        super().setUp()
        for path in (JOINED, LIBRARIES / "libarctrace-shim.so"):
            if subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "test", "-r", path],
                              check=False).returncode != 0:
                self.skipTest(f"the user nobody may not read {path}")

    def test_recorded_by_root(self):
        """The buffer belongs to the program's user, for whom nothing else is there; the file is root's."""
        program, place = self.start_as(NOBODY, JOINED, "executes")
        recorder = self.recorder(program.pid)
        buffers = list(pathlib.Path("/dev/shm").glob(f"arctrace-*-{recorder.pid}-*"))
        self.assertEqual([(b.stat().st_uid, b.stat().st_mode & 0o777) for b in buffers], [(NOBODY, 0o600)])
        self.wait_for_rounds(place)
        self.finish(recorder)
        self.assertFalse(buffers[0].exists())
        self.assert_unharmed(program, place)
        trace = self.directory / "arctrace.data"
        read("check", trace)
        self.assertEqual((trace.stat().st_uid, trace.stat().st_mode & 0o777), (0, 0o600))
        # The recording may end while a program begins that has not said yet what it is.
        names = {thread["name"] for thread in read_report(trace, "tree")["threads"]} - {"process"}
        self.assertEqual(names, {"attach_joined", "true"})

    def test_files_that_its_user_may_not_read(self):
        """Root reads no names for a program from files that its user may not read."""
        for mode, is_named in ((0o755, True), (0o700, False)):
            binary = self.directory / f"own-{mode:o}"
            shutil.copy(own_function(self.directory), binary)
            program, place = self.start_as(NOBODY, binary)
            binary.chmod(mode)
            recorder = self.recorder(program.pid)
            self.wait_for_rounds(place)
            self.finish(recorder)
            self.assert_unharmed(program, place)
            binary.unlink()
            self.assertEqual("main" in self.functions(), is_named)

    def test_two_users(self):
        """Neither may see the other's records."""
        mine, my_place = self.start("sleeps")
        program, place = self.start_as(NOBODY, JOINED, "sleeps")
        done = self.attach(mine.pid, program.pid, options=("--duration=1ms",))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertRegex(done.stderr, rf"processes {mine.pid} of root and {program.pid} of (nobody|user {NOBODY}) cannot be "
                                      "recorded into one buffer")
        for pid in (mine.pid, program.pid):
            self.assertNotIn("arctrace-shim", pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8"))
        self.assert_unharmed(program, place)
        self.assert_unharmed(mine, my_place)

    def test_session_of_another_user(self):
        name = f"elsewhere-{os.getpid()}"
        read("create", name, "-b", "8M", "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)
        program, place = self.start_as(NOBODY, JOINED, "sleeps")
        done = arctrace("attach", name, "-o", self.directory / "refused.data", "-p", str(program.pid))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("arctrace record -p makes a buffer for its user\n", done.stderr)
        self.assert_unharmed(program, place)


class NamespacesTest(ElsewhereTest):
    """Programs that see another tree of files than the recorder."""

    def start_in(self, unshared, mounts, *command):
        """The program, in new namespaces in which these commands of sh were run; returns its pid here, and its place."""
        place = self.directory / f"place-{len(list(self.directory.iterdir()))}"
        place.mkdir()
        shutil.copy(JOINED, place / "program")
        program = subprocess.Popen(
            ["unshare", *unshared, "sh", "-ec", f'{mounts}\nexec "$@"', "sh", *command], cwd=place, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), "begins\n")
        children = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text(encoding="ascii").split()
        pid = int(children[0]) if "--fork" in unshared else program.pid
        return program, pid, place

    @staticmethod
    def descriptors(pid):
        """The files of ours that the process has open, and its sockets."""
        open_files = [os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
        return sorted(path for path in open_files if "arctrace" in path or path.startswith("socket"))

    def assert_recorded(self, program, pid, place, *options, names=("attach_joined",)):
        self.wait_for_rounds(place, times=1)
        before = self.descriptors(pid)
        recorder = self.recorder(pid, *options)
        self.wait_for_rounds(place)
        errors = self.finish(recorder)
        self.assertEqual(self.descriptors(pid), before)
        self.assert_unharmed(program, place)
        read("check", self.directory / "arctrace.data")
        threads = read_report(self.directory / "arctrace.data", "tree")["threads"]
        # A child that was forked at the end may have no name.
        self.assertEqual({thread["name"] for thread in threads} - {"process"}, set(names))
        return errors


@cases.in_gate
@unittest.skipUnless(MAY_MOUNT, "needs root that may make mount namespaces")
class Roots(NamespacesTest):
    def test_another_root_directory(self):
        """A program whose root is a view of the whole tree, below a directory; the recorder sees its files there."""
        root = self.directory / "root"
        root.mkdir()
        inside = f'mount --make-rprivate /; mount --rbind / {root}'
        program, pid, place = self.start_in(["--mount"], inside, "sh", "-c",
                                            f'exec chroot {root} sh -c "cd $PWD; exec ./program executes"')
        self.assertEqual(os.readlink(f"/proc/{pid}/root"), str(root))
        self.assert_recorded(program, pid, place, names=("program", "true"))

    def test_program_that_hides_the_buffer(self):
        """What it executes cannot be recorded while the recording goes on, which is said."""
        done = arctrace("record", "-o", self.directory / "arctrace.data", "--", "unshare", "--mount", "sh", "-c",
                        "mount -t tmpfs none /dev/shm; env; exec /bin/true")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("/env", "/bin/true"):
            self.assertRegex(done.stderr, rf"can't trace \S*{name}: it is out of the session's reach")
        self.assertIn("\nARCTRACE_SESSION=/dev/shm/", done.stdout)


CONTAINER = ["--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--mount-proc"]
HIDDEN = f"mount -t tmpfs none {LIBRARIES}; mount -t tmpfs none /dev/shm"


@cases.in_gate
@unittest.skipUnless(MAY_NEST, "needs root that may make namespaces")
class Containers(NamespacesTest):
    """Programs in namespaces as a container's, which find neither the shim nor the buffer."""

    def test_all_modes(self):
        """Its number is another one there; it has another /dev/shm and none of our libraries."""
        for mode in cases.shortened(["sleeps", "signals", "polls", "computes"]):
            with self.subTest(mode=mode):
                program, pid, place = self.start_in(CONTAINER, HIDDEN, "./program", mode)
                self.assert_recorded(program, pid, place, names=("program",))
                threads = read_report(self.directory / "arctrace.data", "tree")["threads"]
                self.assertEqual({thread["pid"] for thread in threads}, {1})

    def test_again(self):
        """It is joined again, also after the recorder was killed."""
        program, pid, place = self.start_in(CONTAINER, HIDDEN, "./program", "sleeps")
        for number, end in enumerate((signal.SIGINT, signal.SIGKILL, signal.SIGINT)):
            recorder = self.recorder(pid, trace=f"{number}.data")
            if end == signal.SIGKILL:
                left = list(pathlib.Path("/dev/shm").glob(f"arctrace-*-{recorder.pid}-*"))
                self.assertEqual(len(left), 1)
            self.wait_for_rounds(place, times=1)
            recorder.send_signal(end)
            recorder.communicate(timeout=600)
            self.assertEqual(recorder.returncode, 0 if end == signal.SIGINT else -end)
        for file in (*self.directory.glob("1.data*"), *left):
            file.unlink()
        self.assertGreater(self.functions("0.data")["getppid"], 0)
        self.assert_recorded(program, pid, place, names=("program",))

    def test_again_with_other_numbers(self):
        """The shim is handed over by the number that the library had before, for which the loader must not take it."""
        program, pid, place = self.start_in(CONTAINER, HIDDEN, own_function(self.directory))
        recorder = self.recorder(pid)
        self.wait_for_rounds(place, times=1)
        self.finish(recorder)
        (place / "fewer").touch()
        self.wait_for_rounds(place)
        self.assert_recorded(program, pid, place, names=("own",))

    def test_read_only_root(self):
        program, pid, place = self.start_in(
            CONTAINER, f"{HIDDEN}; mount --bind . .; mount -o remount,ro,bind /", "sh", "-c", 'cd "$PWD"; exec ./program sleeps')
        self.assert_recorded(program, pid, place, names=("program",))

    def test_names(self):
        """The names of its functions come from its own files, which lie at paths of its own."""
        program, pid, place = self.start_in(CONTAINER, f"{HIDDEN}; mkdir hidden; mount -t tmpfs none hidden; cp program hidden",
                                            "hidden/program", "sleeps")
        self.assertFalse((place / "hidden" / "program").exists())
        self.assert_recorded(program, pid, place, names=("program",))
        names = {function["name"] for function in read_report(self.directory / "arctrace.data", "flat")["functions"]}
        self.assertIn("main", names)

    @unittest.skipIf(NO_KERNEL, NO_KERNEL)
    def test_kernel(self):
        """The kernel's records have other numbers for its threads: their states would be wrong, so it is refused."""
        program, pid, place = self.start_in(CONTAINER, HIDDEN, "./program", "sleeps")
        done = self.attach(pid, options=("--kernel", "--duration=1ms"), trace="refused.data")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"cannot join process {pid} with --kernel: it is in another PID namespace", done.stderr)
        self.assertFalse((self.directory / "refused.data").exists())
        self.assert_unharmed(program, place)

    def test_patched(self):
        """With -P, functions of a program that nobody rebuilt."""
        program, pid, place = self.start_in(CONTAINER, HIDDEN, own_function(self.directory))
        self.assert_recorded(program, pid, place, "-P", "work", names=("own",))
        self.assertGreater(self.functions()["work"], 0)

    def test_what_it_executes(self):
        """It cannot find the shim, which is said."""
        program, pid, place = self.start_in(CONTAINER, HIDDEN, "./program", "executes")
        errors = self.assert_recorded(program, pid, place, names=("program",))
        self.assertIn("can't trace /bin/true: it is out of the session's reach", errors)

    def test_without_proc(self):
        program, pid, place = self.start_in(["--mount", "--pid", "--fork", "--kill-child"], f"{HIDDEN}; mount -t tmpfs none /proc",
                                            "./program", "sleeps")
        done = self.attach(pid, options=("--duration=1ms",))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("and has no /proc by which it could load it from a descriptor", done.stderr)
        self.assert_unharmed(program, place)

    def test_user_namespace(self):
        """As in a rootless container: root there is another user here."""
        if subprocess.run(["unshare", "--user", "--map-root-user", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no user namespaces")
        program, pid, place = self.start_in([*CONTAINER, "--user", "--map-root-user"], HIDDEN, "./program", "sleeps")
        self.assert_recorded(program, pid, place, names=("program",))


@cases.in_gate
class Filters(NamespacesTest):
    """Programs that a seccomp filter confines: joined if it permits all that is needed, else refused by its name, and
    nothing is tried."""
    KILL, ERROR = 0x80000000, 0x00050001

    def start_filtered(self, action, *numbers, command=(JOINED, "sleeps")):
        place = self.directory / f"place-{len(list(self.directory.iterdir()))}"
        place.mkdir()
        program = subprocess.Popen([sys.executable, "-c", FILTERED, hex(action), ",".join(map(str, numbers)), *command],
                                   cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), "begins\n")
        return program, place

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_that_permits_what_is_needed(self):
        reboot = 169
        for action in (self.KILL, self.ERROR):
            program, place = self.start_filtered(action, reboot)
            recorder = self.recorder(program.pid)
            self.wait_for_rounds(place)
            self.finish(recorder)
            self.assert_unharmed(program, place)
            self.assertGreater(self.functions()["getppid"], 0)

    def test_without_the_right_to_read_them(self):
        """Its threads are not even stopped."""
        program, place = self.start_filtered(self.KILL, 169)
        # Without the capability to read filters, and with that to trace.
        without = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"] if IS_ROOT else []
        done = run(*without, ARCTRACE, "record", "-o", self.directory / "refused.data", "-p", str(program.pid),
                   "--duration=1ms")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("a seccomp filter confines it, which only root may read", done.stderr)
        self.assert_unharmed(program, place)

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_with_patches(self):
        """-P would make calls that a filter may answer with the program's end: it makes none, and that is said."""
        memfd_create = 319
        program, place = self.start_filtered(self.KILL, memfd_create, command=[own_function(self.directory)])
        recorder = self.recorder(program.pid, "-P", "work")
        self.wait_for_rounds(place)
        self.assertRegex(self.finish(recorder), "nothing of some program was patched for -P: .*seccomp filter")
        self.assert_unharmed(program, place)
        self.assertGreater(self.functions()["usleep"], 0)

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_that_forbids(self):
        for number, name in ((53, "socketpair"), (47, "recvmsg"), (274, None)):  # get_robust_list
            for action in (self.KILL, self.ERROR):
                program, place = self.start_filtered(action, number)
                done = self.attach(program.pid, options=("--duration=1ms",), trace="refused.data")
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                self.assertIn("a seccomp filter confines it, which may forbid " + (
                    f"the system call {name} that joining needs" if name else "system calls of its recording"), done.stderr)
                self.assertFalse((self.directory / "refused.data").exists())
                self.assert_unharmed(program, place)


class Refusals(ElsewhereTest):
    """What has no glibc is refused by what it is."""

    @cases.in_gate
    def test_static(self):
        source = self.directory / "static.c"
        source.write_text('#include <stdio.h>\n#include <unistd.h>\n'
                          'int main(void) { puts("begins"); fflush(stdout); for (;;) pause(); }\n', encoding="utf-8")
        program = self.directory / "static"
        if subprocess.run(["gcc", "-static", source, "-o", program], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no gcc that links statically")
        self.assert_refused("it is statically linked: only programs that have loaded glibc can be joined", program)

    def test_musl(self):
        if shutil.which("musl-gcc") is None:
            self.skipTest("no musl-gcc")
        program = self.directory / "musl"
        source = self.directory / "musl.c"
        source.write_text('#include <stdio.h>\n#include <unistd.h>\n'
                          'int main(void) { puts("begins"); fflush(stdout); for (;;) pause(); }\n', encoding="utf-8")
        subprocess.run(["musl-gcc", source, "-o", program], check=True)
        self.assert_refused("its libc is musl: only programs that have loaded glibc can be joined", program)

    def test_go(self):
        if shutil.which("go") is None:
            self.skipTest("no go")
        source = self.directory / "begins.go"
        source.write_text('package main\nimport ("fmt"; "time")\n'
                          'func main() { fmt.Println("begins"); for { time.Sleep(time.Second) } }\n', encoding="utf-8")
        program = self.directory / "begins"
        subprocess.run(["go", "build", "-o", program, source], check=True, cwd=self.directory,
                       env={**os.environ, "GOCACHE": str(self.directory / "cache"), "CGO_ENABLED": "0"})
        self.assert_refused("it is a Go program, which is statically linked", program)

    def assert_refused(self, line, *command):
        program = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), "begins\n")
        done = self.attach(program.pid, options=("--duration=1ms",), trace="refused.data")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn(line, done.stderr)
        self.assertIsNone(program.poll())


if __name__ == "__main__":
    cases.main()
