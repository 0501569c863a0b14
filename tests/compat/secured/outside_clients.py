"""Programs that are clients: franz-go, kafkajs, kcat; each needs its language, and its registry."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.compat.secured.brokers import SecuredBroker
from tests.compat.secured.cells import OAUTHBEARER, Cell
from tests.compat.secured.clients import Outcomes, plain

_HERE: Final = Path(__file__).parent
_PROGRAM_S: Final = 120.0
_KCAT_S: Final = 7.0
_THREADS: Final = 4


def outside_clients(folder: Path) -> dict[str, Outcomes]:
    """Return those whose languages are here, built in a folder."""
    found: dict[str, Outcomes] = {}
    if shutil.which("go"):
        program = folder / "connect"
        build = ["go", "build", "-o", str(program), "."]
        subprocess.run(build, cwd=_HERE / "connect_go", check=True)
        found["franz-go"] = _program([str(program)])
    if shutil.which("npm"):
        script = shutil.copytree(_HERE / "connect_js", folder / "connect_js")
        subprocess.run(["npm", "install", "--silent"], cwd=script, check=True)
        found["kafkajs"] = _program(["node", str(script / "connect.js")])
    if shutil.which("kcat"):
        found["kcat"] = kcat
    return found


def _program(command: list[str]) -> Outcomes:
    """Return a client that takes cells as lines of JSON, and gives outcomes so."""

    def outcomes(cells: Sequence[Cell], broker: SecuredBroker, certificates: Path) -> list[str]:
        lines = [json.dumps(_line(cell, broker, certificates)) for cell in cells]
        done = subprocess.run(
            command,
            input="\n".join(lines),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=_PROGRAM_S,
        )
        return [plain(json.loads(line)) for line in done.stdout.splitlines()]

    return outcomes


def _line(cell: Cell, broker: SecuredBroker, certificates: Path) -> dict[str, Any]:
    return {
        "address": broker.address(cell.listener),
        "protocol": cell.protocol,
        "mechanism": cell.mechanism or "",
        "user": cell.user,
        "password": cell.password,
        "token_s": cell.token_s,
        "authority": str(certificates / cell.authority),
        "certificate": str(certificates / cell.certificate) if cell.certificate else "",
        "duration_ms": cell.duration_ms,
    }


def kcat(cells: Sequence[Cell], broker: SecuredBroker, certificates: Path) -> list[str]:
    """Return what kcat prints for each cell, `ok` where it lists the metadata."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda cell: _kcat(cell, broker, certificates), cells))


def _kcat(cell: Cell, broker: SecuredBroker, certificates: Path) -> str:
    settings = {"security.protocol": cell.protocol.lower()}
    if cell.mechanism == OAUTHBEARER:
        counts = f"principal={cell.user} lifeSeconds={abs(cell.token_s)}"
        settings |= {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": counts,
        }
    if cell.mechanism is not None:
        settings["sasl.mechanism"] = cell.mechanism
        if cell.mechanism != OAUTHBEARER:
            settings |= {"sasl.username": cell.user, "sasl.password": cell.password}
    if cell.protocol.endswith("SSL"):
        settings["ssl.ca.location"] = str(certificates / cell.authority)
        if cell.certificate is not None:
            path = str(certificates / cell.certificate)
            settings |= {"ssl.certificate.location": path, "ssl.key.location": path}
    command = ["kcat", "-L", "-b", broker.address(cell.listener), "-m", str(int(_KCAT_S))]
    for name, value in settings.items():
        command += ["-X", f"{name}={value}"]
    until_s = time.monotonic() + cell.duration_ms / 1000
    while True:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "FAIL" in line or "ERROR" in line]
            first = lines[0] if lines else done.stderr.strip()
            return plain(first.rpartition("[thrd:")[2].partition("]: ")[2] or first)
        if time.monotonic() >= until_s:
            return "ok"
        time.sleep(0.2)
