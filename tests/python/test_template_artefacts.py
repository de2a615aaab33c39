"""What is packaged can run on Lambda; each way in which it could not is noticed."""

import platform
import re
import shutil
import subprocess
import tomllib
import zipfile

import pytest

from artefacts import MACHINES, Unusable, check, main
from conftest import REPOSITORY

PROGRAM = "int main(void) { return 0; }\n"
HERE, ELSEWHERE = "x86_64", "arm64"
if platform.machine() in ("aarch64", "arm64"):
    HERE, ELSEWHERE = ELSEWHERE, HERE


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compiles a C program, as cargo's linker would; such a compiler builds the workspace."""
    folder = tmp_path_factory.mktemp("programs")

    def build(name, text):
        source, program = folder / f"{name}.c", folder / name
        source.write_text(text, encoding="utf-8")
        subprocess.run(["cc", "-o", program, source], check=True, timeout=60)
        return program

    return build


def zipped(folder, content, name="bootstrap", mode=0o755):
    path = folder / "function.zip"
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, content)
    return path


@pytest.fixture
def program(compiled):
    return compiled("plain", PROGRAM).read_bytes()


# DP-01: `bootstrap` at the root, executable, a program.
def test_a_zip_with_its_bootstrap_passes(tmp_path, program):
    major, minor = check(zipped(tmp_path, program), HERE)
    assert (2, 2) <= (major, minor) <= (2, 34)


# DP-01
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "receiver"}, "no `bootstrap`"),
        ({"name": "target/bootstrap"}, "no `bootstrap`"),
        ({"mode": 0o644}, "not executable"),
        ({"content": b"#!/bin/sh\n"}, "no 64-bit ELF"),
        ({"content": b""}, "no 64-bit ELF"),
    ],
)
def test_a_zip_that_cannot_start_is_refused(tmp_path, program, change, why):
    content = change.pop("content", program)
    with pytest.raises(Unusable, match=why):
        check(zipped(tmp_path, content, **change), HERE)


# DP-02: the program's machine is the one in the template.
def test_a_program_for_another_machine_is_refused(tmp_path, program):
    path = zipped(tmp_path, program)
    with pytest.raises(Unusable, match=f"not for {ELSEWHERE}"):
        check(path, ELSEWHERE)
    elsewhere = program[:18] + MACHINES[ELSEWHERE].to_bytes(2, "little") + program[20:]
    check(zipped(tmp_path, elsewhere), ELSEWHERE)
    with pytest.raises(Unusable, match=f"not for {HERE}"):
        check(zipped(tmp_path, elsewhere), HERE)


# DP-03: no symbol that is newer than the runtime's glibc.
@pytest.mark.parametrize(("version", "is_there"), [("2.34", True), ("2.35", False)])
def test_a_program_that_needs_a_newer_glibc_is_refused(tmp_path, program, version, is_there):
    named = lambda match: f"GLIBC_{version}".encode().ljust(len(match[0]), b"\0")
    path = zipped(tmp_path, re.sub(rb"GLIBC_2\.\d+(\.\d+)?", named, program))
    if is_there:
        assert check(path, HERE) == (2, 34)
        return
    with pytest.raises(Unusable, match="needs glibc 2.35"):
        check(path, HERE)


def test_the_versions_are_those_that_objdump_shows(compiled):
    program = compiled("plain", PROGRAM)
    shown = subprocess.run(
        ["objdump", "-T", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", shown)
    newest = max((int(major), int(minor)) for major, minor in versions)
    assert check(program, HERE) == newest


def test_a_file_that_is_not_executable_is_refused(tmp_path, compiled):
    path = tmp_path / "bootstrap"
    shutil.copyfile(compiled("plain", PROGRAM), path)
    path.chmod(0o644)
    with pytest.raises(Unusable, match="not executable"):
        check(path, HERE)


def test_the_command_tells_sizes_and_fails_for_one_bad_file(tmp_path, program, capsys):
    path = zipped(tmp_path, program)
    assert main(HERE, str(path)) == 0
    assert f"{path}: 0.0" in capsys.readouterr().out
    assert main(ELSEWHERE, str(path)) == 1
    assert f"not for {ELSEWHERE}" in capsys.readouterr().err


def manifest(path):
    return tomllib.loads((REPOSITORY / path).read_text(encoding="utf-8"))


# FD-02, WK-03: cargo-lambda would choose to abort, and a panic would end the process.
def test_programs_unwind():
    profiles = manifest("Cargo.toml")["profile"]
    for name in ("release", "function"):
        assert profiles[name]["panic"] == "unwind"
    small = {"inherits": "release", "opt-level": "s", "lto": "fat", "codegen-units": 1}
    assert small.items() <= profiles["function"].items()


# DP-05: a toolchain that changes by itself is one that breaks by itself.
def test_tools_are_pinned():
    for path in ("xtask/requirements.txt", "tests/python/requirements.txt"):
        lines = (REPOSITORY / path).read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[0-9A-Za-z.]+", line) for line in lines)
    assert manifest("rust-toolchain.toml")["toolchain"]["channel"].count(".") == 2
