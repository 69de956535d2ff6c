#!/usr/bin/env python3
"""Files that claim to be far larger than they are, where a command comes across them."""

import os
import pathlib
import struct
import subprocess

import attack
from command import ARCTRACE, arctrace, start_arctrace
from tracing import TracedTest

KIB_MAX = 400_000  # of memory, for a command that finds a bomb
SECONDS_MAX = 600  # much more than any takes, much less than a bomb does

PROGRAM = """
__attribute__((noinline)) void found_it(void) { asm volatile(""); }
int main(void) { for (int i = 0; i < 3; ++i) found_it(); return 0; }
"""


class BombTest(TracedTest):
    def run_bounded(self, *arguments):
        """Runs the command, which must use little time and memory. Returns (status, text)."""
        output = self.directory / "output"
        with open(output, "w+b") as text:
            with start_arctrace(*arguments, stdout=text, stderr=text) as process:
                try:
                    process.wait(timeout=SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    process.kill()
                    self.fail(f"{arguments} did not end")
            memory = process.returncode, output.read_text(errors="replace")
        output.unlink()
        return memory

    def peak_kib(self, *arguments):
        pid = os.posix_spawn(ARCTRACE, [ARCTRACE, *map(str, arguments)], os.environ, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
        return os.wait4(pid, 0)[2].ru_maxrss

    def check_bounded(self, *arguments):
        status, text = self.run_bounded(*arguments)
        self.assertLess(self.peak_kib(*arguments), KIB_MAX, text)
        return status, text

    def buffer_bomb(self, path):
        """A buffer whose header is valid, for 2^19 blocks of 16 MiB: 8 TiB, all of them a hole."""
        done = arctrace("create", path, "-b", "32M", "--block-size=16M", "--slots=16")
        self.assertEqual(done.returncode, 0, done.stderr)
        blocks = 1 << 19
        with open(path, "r+b") as file:
            header = bytearray(file.read(4096))
            blocks_offset = struct.unpack_from("<Q", header, 72)[0]
            count_at = header.index(struct.pack("<II", 16 << 20, 2)) + 4
            struct.pack_into("<I", header, count_at, blocks)
            total = blocks_offset + blocks * (16 << 20)
            struct.pack_into("<Q", header, 80, total)
            file.truncate(4096)
            file.seek(0)
            file.write(header)
            file.truncate(total)

    def test_a_buffer_that_is_a_hole(self):
        bomb = pathlib.Path(f"/dev/shm/arctrace-{os.geteuid()}-{os.getpid()}-b0b")
        self.addCleanup(bomb.unlink)
        self.buffer_bomb(bomb)
        output = self.directory / "out"
        status, text = self.check_bounded("recover", bomb, "-o", output)
        self.assertEqual(status, 2)
        self.assertIn("are a hole", text)
        self.assertFalse(output.exists())

    def test_a_program_with_huge_sections_or_debug_files(self):
        program = self.directory / "program"
        subprocess.run(["gcc", "-x", "c", "-finstrument-functions", "-o", program, "-"],
                       input=PROGRAM, text=True, check=True)
        link = self.directory / "program.debug"
        link.write_bytes(program.read_bytes())
        subprocess.run(["objcopy", f"--add-gnu-debuglink={link}", "--remove-section=.note.gnu.build-id",
                        program], check=True, cwd=self.directory)
        trace = self.record(program).trace
        with open(link, "r+b") as file:
            file.truncate(15 << 40 if os.statvfs(link).f_bavail else 1 << 40)
        self.check_bounded("report", trace)
        link.unlink()
        with open(program, "r+b") as file:
            file.seek(0, 2)
            file.truncate(1 << 40)
        self.check_bounded("report", trace)
        self.check_bounded("report", trace, "--view=flat", "--format=json")

    def test_list_shows_what_is_not_ones_own(self):
        planted = pathlib.Path(f"/dev/shm/arctrace-{os.geteuid()}-{os.getpid()}-1ist")
        planted.write_bytes(b"\0" * 8192)
        self.addCleanup(lambda: planted.unlink(missing_ok=True))
        listed = arctrace("list").stdout
        self.assertRegex(listed, f"{planted} .*not a buffer")
        if attack.is_root():
            os.chown(planted, attack.NOBODY, attack.NOBODY)
            self.assertRegex(arctrace("list").stdout, f"{planted} .*of user {attack.NOBODY}")
            self.assertEqual(arctrace("destroy", planted).returncode, 2)
            os.chown(planted, 0, 0)
        self.assertEqual(arctrace("destroy", planted).returncode, 0)


if __name__ == "__main__":
    attack.main()
