"""Google's protobuf compiler as a process: source texts in, descriptors out.

It reads and writes only files, so each call uses a temporary folder.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from engine.errors import EngineError
from engine.host.processes import python_command
from engine.host.temporary import temporary_folder

_OUT = ".descriptors"


class NotProtobuf(EngineError):
    """The compiler rejected a source text."""


def compile_protobuf(texts: Mapping[str, str], name: str) -> bytes:
    """Return a serialised FileDescriptorSet of the file `name` and of its imports.

    `texts` are the sources by import name. Errors: NotProtobuf, NoTemporaryFolder.
    """
    import grpc_tools

    known = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
    with temporary_folder("kctl-schema-") as folder:
        for file_name, text in texts.items():
            path = os.path.normpath(os.path.join(folder, file_name))
            if not path.startswith(folder + os.sep):
                raise NotProtobuf(f"it imports {file_name}")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        out = os.path.join(folder, _OUT)
        command = python_command(
            "grpc_tools.protoc",
            f"-I{folder}",
            f"-I{known}",
            f"--descriptor_set_out={out}",
            "--include_imports",
            name,
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode:
            raise NotProtobuf("; ".join(done.stderr.split("\n")).strip("; "))
        with open(out, "rb") as compiled:
            return compiled.read()
