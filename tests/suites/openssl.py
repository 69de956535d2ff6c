"""OpenSSL's own tests, as far as they use its public interface only, built with each kind of hook
against Debian's library; asynctest switches between jobs that have stacks of their own."""

import pathlib

import suites

TESTS = ("asn1_decode_test", "asn1_encode_test", "asn1_string_table_test", "asynctest", "bftest",
         "bio_callback_test", "bio_enc_test", "bntest", "casttest", "constant_time_test", "ct_test",
         "destest", "dhtest", "dsatest", "ecdsatest", "ecstresstest", "enginetest", "errtest",
         "exdatatest", "exptest", "gmdifftest", "hexstr_test", "hmactest", "igetest",
         "lhash_test", "mdc2test", "memleaktest", "packettest", "pbetest", "pemtest", "rc2test",
         "rc4test", "rsa_test", "sanitytest", "secmemtest", "sha_test", "sparse_array_test",
         "stack_test", "threadstest", "time_offset_test", "v3nametest", "x509_time_test")
VARIES = rb"0x[0-9a-f]+|random seed \d+|\d+\.\d+"


class Openssl(suites.Suite):
    name = "openssl"
    seconds = 100

    def prepare(self):
        self.source = self.fetch("openssl")
        headers = self.fetch("libssl-dev", binary=True) / "usr/include"
        self.library = pathlib.Path("/usr/lib/x86_64-linux-gnu/libcrypto.so.3")
        if not self.library.exists():
            raise suites.Unavailable("Debian's libssl3 is not installed")
        self.options = ["-O1", "-w", "-pthread", "-DOPENSSL_SUPPRESS_DEPRECATED",
                        "-I", headers, "-I", headers / "x86_64-linux-gnu",
                        "-I", self.source / "include", "-I", self.source / "test",
                        "-I", self.source / "apps/include", "-I", self.source]
        common = [*sorted((self.source / "test/testutil").glob("*.c")),
                  self.source / "apps/lib/opt.c"]
        for hook, flags in suites.HOOKS.items():
            archive = self.place / f"{hook}.a"
            if archive.exists():
                continue
            directory = self.place / hook
            directory.mkdir(exist_ok=True)
            self.build(["gcc", *self.options, *flags, "-c", *common], directory)
            part = archive.with_suffix(".part")
            part.unlink(missing_ok=True)
            self.build(["ar", "rc", part, *sorted(directory.glob("*.o"))], directory)
            part.rename(archive)

    def programs(self):
        runs = self.place / "runs"
        runs.mkdir(exist_ok=True)
        for test in self.some(TESTS):
            for hook, flags in suites.HOOKS.items():
                program = self.place / f"{test}-{hook}"
                source = self.source / f"test/{test}.c"
                try:
                    self.build_file(program, ["gcc", *self.options, *flags, source,
                                              self.place / f"{hook}.a", self.library, "-lm"],
                                    self.place)
                except suites.Unavailable:
                    continue  # it needs symbols that the library does not export
                yield suites.Program(f"{test} {hook}", [program], runs, varies=VARIES)
