"""`elmo-tasks` in a process of its own, without waiting for its imports, which take longer than most commands.

A server that has imported everything makes a copy of itself for each command, or program `-c PROGRAM`.
`python tests/command_server.py ADDRESS ARGUMENT...` is a client: it hands its folder, its environment and its standard
streams over, and ends with the exit code. A client that gets SIGTERM kills its command before it ends, or with
`PASS_SIGTERM` in its environment hands it on; if it is killed, its command ends soon after. With no arguments after the
address, it is the server, which prints a line when commands can come; they wait for its imports. `start` starts it, and
the processes of the tests share one.
"""

import fcntl
import functools
import json
import os
import signal
import socket
import sys

KILLED = 70  # the exit code of a client whose command was killed
_PYTHON = """#!/bin/sh
case "$1 $2" in
"-m elmo_tasks") shift 2; set -- -I -S '{file}' '{address}' "$@";;
"-c "*) set -- -I -S '{file}' '{address}' "$@";;
esac
exec '{python}' "$@"
"""


@functools.cache
def start() -> str:
    """Starts the server; returns a script for Python, where `-m elmo_tasks ARGUMENT...` and `-c` are clients.

    With `COMMAND_SERVER` in the environment, there is one already: this is its script.
    """
    if "COMMAND_SERVER" in os.environ:
        return os.environ["COMMAND_SERVER"]
    import atexit
    import shutil
    import subprocess
    import tempfile
    from pathlib import Path

    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    script = Path(folder, "python")
    address = f"{script}.socket"
    script.write_text(_PYTHON.format(file=__file__, address=address, python=sys.executable))
    script.chmod(0o755)
    command = [sys.executable, "-m", "tests.command_server", address]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    atexit.register(server.kill)
    assert server.stdout
    assert server.stdout.readline()
    return str(script)


def run_command(address: str, arguments: list[str]) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        process = int.from_bytes(connection.recv(4), "big")
        number = signal.SIGTERM if "PASS_SIGTERM" in os.environ else signal.SIGKILL
        signal.signal(signal.SIGTERM, lambda *_: os.kill(process, number))
        code = connection.recv(1)
    return code[0] if code else KILLED


def serve(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)

        from tests import shared_training
        from tests.torture.workshop import import_everything

        import_everything()
        sys.executable = address.removesuffix(".socket")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    connection.sendall(os.getpid().to_bytes(4, "big"))
                    code = _answer(connection, shared_training.main)
                    connection.sendall(bytes([code]))
                    os._exit(code)


def _answer(connection: socket.socket, command: object) -> int:
    """Runs a command of a client in its folder, with its environment and its standard streams."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as file:
        request = json.load(file)
    # The end of the client gives this process SIGIO, which ends it.
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    try:
        if request["arguments"][0] == "-c":
            _, program, *sys.argv[1:] = request["arguments"]
            sys.path.insert(0, "")
            exec(program, {"__name__": "__main__"})
            return 0
        return int(command(request["arguments"]))  # type: ignore[operator]
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    if sys.argv[2:]:
        raise SystemExit(run_command(sys.argv[1], sys.argv[2:]))
    serve(sys.argv[1])
