"""The command that serves runs."""

from __future__ import annotations

import argparse
import importlib.util

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.server import Limits
from elmo_tasks.progress import progress_bar

_NEEDED = ("fastapi", "fastapi_offline", "prometheus_client", "uvicorn")


def add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="*",
        help="the folder or archive of a run, or an installed model; NAME=RUN serves it under another name (default: "
        "all installed models, except those without ELMo that belong to another)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address to listen on; 0.0.0.0 is all addresses of this machine (default: 127.0.0.1, reachable only "
        "from this machine)",
    )
    options.add_number(
        parser, "--port", 8000, "the port to listen on; 0 picks a free one", options.Number(0, 65535, "a port")
    )
    options.add_device(parser)
    about = "a site whose pages may use the server, such as https://example.org; can be repeated (default: none)"
    options.add_repeated(parser, "--allow-origin", about, metavar="URL")
    about = "a name in addresses of this server, such as that of a proxy in front of it; can be repeated (default: the "
    about += "names of this machine; with another --host than them, all names)"
    options.add_repeated(parser, "--allow-host", about, metavar="NAME")
    parser.add_argument(
        "--note", metavar="TEXT", help="text for the top of the page, such as what the models were trained on"
    )
    group, limits = parser.add_argument_group("limits"), Limits()
    for name, default, text in (
        ("--batch-tokens", limits.batch_tokens, "the maximum number of tokens computed together"),
        ("--max-tokens", limits.request_tokens, "the maximum number of tokens of a request"),
        ("--max-bytes", limits.body_bytes, "the maximum number of bytes of a request"),
        ("--max-requests", limits.queue_requests, "the maximum number of unanswered requests; more get 429"),
        ("--max-waiting-tokens", limits.queue_tokens, "the maximum number of unanswered tokens; more get 429"),
        ("--timeout", round(limits.timeout_seconds), "the maximum number of seconds for a request; then it gets 504"),
    ):
        options.add_number(group, name, default, text)
    options.add_include_package(parser)


def run_serve(arguments: argparse.Namespace) -> None:
    if any(importlib.util.find_spec(name) is None for name in _NEEDED):
        raise ElmoTasksError("serve needs packages that are not installed: pip install 'elmo-tasks[server]'")
    from elmo_tasks.extras.server.app import create_app
    from elmo_tasks.extras.server.bilm_vectors import bilms_of_runs
    from elmo_tasks.extras.server.served_runs import load_runs
    from elmo_tasks.extras.server.serving import bind, is_loopback, serve
    from elmo_tasks.files.installed_models import INSTALL, installed_models, twins

    limits = Limits(
        batch_tokens=arguments.batch_tokens,
        request_tokens=arguments.max_tokens,
        body_bytes=arguments.max_bytes,
        queue_requests=arguments.max_requests,
        queue_tokens=arguments.max_waiting_tokens,
        timeout_seconds=arguments.timeout,
        connections=2 * arguments.max_requests,
    )
    with bind(arguments.host, arguments.port) as bound:  # before the runs are loaded, which takes a while
        installed = installed_models()
        without_elmo = twins(installed)  # loaded when one is asked for
        paths = arguments.runs or [
            f"{model.name}={model.folder}" for model in installed if model.name not in without_elmo
        ]
        if not paths:
            raise ElmoTasksError(f"no run given, and no models are installed; expected RUN, or install some: {INSTALL}")
        runs = load_runs(paths, batch_tokens=limits.batch_tokens, overrides=options.device_overrides(arguments))
        bilms = bilms_of_runs(runs)
        for run in runs.values():
            run.predictor.warm_up()
        for bilm in bilms.values():
            bilm.warm_up()
        own = ["localhost", "127.0.0.1", "[::1]", arguments.host, *arguments.allow_host]
        hosts = own if is_loopback(arguments.host) else ["*"]
        origins = arguments.allow_origin
        app = create_app(runs, bilms, limits, note=arguments.note, allowed_hosts=hosts, allowed_origins=origins)
        with progress_bar(visible=False):  # a server that waits for requests says nothing
            serve(app, bound, limits)
