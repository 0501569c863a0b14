"""kctl on a PATH of the tests: has the server of forks run its words with its own streams.

A script of a shell runs it for each command of a guide. It imports next to nothing: Python's start
and imports are half of a command's costs.
"""

import json
import os
import socket
import sys


def main(path: str, program: list[str], real_only: list[str], words: list[str]) -> int:
    """Run a command as a fork of the server at `path`, or by `program` where that is not the same.

    A command that is interrupted is not the same: signals go to the process that the shell began.
    """
    if words and words[0] in real_only:
        os.execv(program[0], [*program, *words])
    message = json.dumps([words, dict(os.environ), os.getcwd()]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [len(message).to_bytes(4, "big")], [0, 1, 2])
        connection.sendall(message)
        # Who reads the other end sees it end with the command.
        os.close(0)
        os.close(1)
        os.close(2)
        code = connection.recv(4)
    return int.from_bytes(code, "big", signed=True) if code else 137


if __name__ == "__main__":
    path, program, real_only = json.loads(sys.argv[1])
    os._exit(main(path, program, real_only, sys.argv[2:]) & 0xFF)
