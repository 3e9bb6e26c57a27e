"""Builds the wheel with the standard library alone (PEP 517, PEP 427): the same bytes from the same sources.

``python build_backend.py DIRECTORY`` writes it into a directory.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent
PACKAGE = ROOT / "src" / "execution_service"
VERSION = re.search(r'"(\d[^"]*)"', (PACKAGE / "_version.py").read_text()).group(1)
INFO = f"execution_service-{VERSION}.dist-info"

METADATA = f"""Metadata-Version: 2.1
Name: execution-service
Version: {VERSION}
Summary: Workflows, workers and a client for execution-service
License: MIT
Requires-Python: >=3.9
Provides-Extra: pydantic
Requires-Dist: pydantic>=2; extra == "pydantic"
Description-Content-Type: text/markdown

"""
WHEEL = """Wheel-Version: 1.0
Generator: execution-service
Root-Is-Purelib: true
Tag: py3-none-any
"""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    sources = sorted(path for path in PACKAGE.rglob("*") if path.suffix == ".py" or path.name == "py.typed")
    return _write(wheel_directory, {f"execution_service/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes() for path in sources})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, {"execution_service.pth": f"{PACKAGE.parent}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("Build a wheel: it has the sources.")


def _write(directory, files):
    files[f"{INFO}/METADATA"] = METADATA.encode() + (ROOT / "README.md").read_bytes()
    files[f"{INFO}/WHEEL"] = WHEEL.encode()
    license_file = ROOT.parent.parent / "LICENSE"
    if license_file.exists():
        files[f"{INFO}/LICENSE"] = license_file.read_bytes()
    record = "".join(f"{name},sha256={_hash(content)},{len(content)}\n" for name, content in files.items())
    files[f"{INFO}/RECORD"] = f"{record}{INFO}/RECORD,,\n".encode()
    name = f"execution_service-{VERSION}-py3-none-any.whl"
    Path(directory).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(Path(directory) / name, "w") as wheel:
        for path, content in files.items():
            # The time and the mode would differ between machines.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3
            # Deflate differs between versions of zlib.
            wheel.writestr(entry, content, zipfile.ZIP_STORED)
    return name


def _hash(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    print(build_wheel(sys.argv[1]))
