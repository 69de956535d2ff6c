"""CPython's own tests, by Debian's interpreter."""

import pathlib
import shutil

import suites

# These need a network, a terminal, minutes, or a CPU that nobody shares.
LEFT_OUT = {"test_asyncio", "test_concurrent_futures", "test_ftplib", "test_gdb", "test_idle",
            "test_imaplib", "test_largefile", "test_multiprocessing_fork",
            "test_multiprocessing_forkserver", "test_multiprocessing_main_handling",
            "test_multiprocessing_spawn", "test_nntplib", "test_peg_generator", "test_regrtest",
            "test_smtpnet", "test_socketserver", "test_ssl", "test_telnetlib", "test_tix",
            "test_tk", "test_tools", "test_ttk_guionly", "test_ttk_textonly", "test_urllib2net",
            "test_urllibnet", "test_venv", "test_winreg", "test_xmlrpc_net", "test_zipfile64",
            "test_ensurepip", "test_distutils", "test_lib2to3", "test_curses", "test_ossaudiodev",
            "test_tcl", "test_turtle", "test_zoneinfo"}
VARIES = rb"in \d+\.\d+s|0x[0-9a-f]{6,}|@test_\d+_tmp\w*|/tmp/\w+|\d+\.\d{3,}"


class Cpython(suites.Suite):
    name = "cpython"
    seconds = 200

    def prepare(self):
        if not pathlib.Path("/usr/bin/python3.11").exists():
            raise suites.Unavailable("Debian's python3.11 is not installed")
        package = self.fetch("libpython3.11-testsuite", binary=True)
        self.library = self.place / "library"
        if self.library.is_dir():
            return
        # The tests, with those in the interpreter's own packages.
        part = self.place / "part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(package / "usr/lib/python3.11/test", part / "test", symlinks=True)
        shutil.copytree("/usr/lib/python3.11/test", part / "test", symlinks=True,
                        dirs_exist_ok=True)
        part.rename(self.library)

    def programs(self):
        tests = {path.name.removesuffix(".py") for path in
                 (self.library / "test").glob("test_*")} - LEFT_OUT
        runs = self.place / "runs"
        for name in self.some(tests):
            directory = runs / name
            directory.mkdir(parents=True, exist_ok=True)
            yield suites.Program(
                name, ["/usr/bin/python3.11", "-m", "unittest", "-v", f"test.{name}"], directory,
                {"PYTHONPATH": str(self.library), "PYTHONHASHSEED": "1"}, VARIES)
