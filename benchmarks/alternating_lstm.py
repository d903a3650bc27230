"""The time of a training step of the alternating highway LSTM, compared to torch's LSTM.

    python -m benchmarks.alternating_lstm [--layers 8] [--units 300] [--threads 1] [--device cuda] [--json FILE]

Both run a forward and a backward pass on the same batch of sentences without padding, with the same number of layers
and units. Torch's LSTM has one direction and no highway connections: it computes 8 of the 11 products of the
alternating LSTM (4 of 6 on inputs, 4 of 5 on states), so that a ratio of 1.4 is the best possible one. The kinds run in
turns.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import common
from benchmarks.common import Clock, Measurement
from elmo_tasks.modules.alternating_lstm import AlternatingLstm

TORCH = "nn.LSTM"
KINDS = (TORCH, "alternating LSTM")


def make_steps(arguments: argparse.Namespace, precision: str) -> dict[str, Callable[[], None]]:
    """A training step of each kind, without the optimizer."""
    torch.manual_seed(1)
    device = torch.device(arguments.device)
    shape = arguments.sentences, arguments.tokens, arguments.input_size
    inputs = torch.randn(shape, device=device, requires_grad=True)  # (B, T, D)
    mask = torch.ones(shape[:2], dtype=torch.bool, device=device)  # (B, T)
    sizes = arguments.input_size, arguments.units, arguments.layers
    theirs = nn.LSTM(*sizes, batch_first=True).to(device)
    ours = AlternatingLstm(*sizes).to(device)

    def step(run: Callable[[], Tensor]) -> Callable[[], None]:
        def forward_and_back() -> None:
            use_bfloat16 = precision == "bfloat16"
            with torch.autocast(device.type, torch.bfloat16) if use_bfloat16 else contextlib.nullcontext():
                outputs = run()
            outputs.float().square().mean().backward()
            if device.type == "cuda":
                torch.cuda.synchronize()

        return forward_and_back

    runs = (lambda: theirs(inputs)[0], lambda: ours(inputs, mask))
    return dict(zip(KINDS, map(step, runs), strict=True))


def compare(steps: dict[str, Callable[[], None]], repeats: int) -> dict[str, dict[str, Any]]:
    """The milliseconds of each kind, as the median over repeats without the first two."""
    found: dict[str, list[Measurement]] = {kind: [] for kind in steps}
    for _ in range(repeats + 2):
        for kind, step in steps.items():
            clock = Clock()
            step()
            found[kind].append(clock.stop())
    results: dict[str, dict[str, Any]] = {}
    for kind, measurements in found.items():
        seconds, quiet_repeats = common.median_of_quiet(measurements[2:])
        results[kind] = {"milliseconds": 1000 * seconds, "quiet_repeats": quiet_repeats}
    for result in results.values():
        result["ratio"] = result["milliseconds"] / results[TORCH]["milliseconds"]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--units", type=int, default=300)
    parser.add_argument("--input-size", type=int, default=200)
    parser.add_argument("--sentences", type=int, default=80)
    parser.add_argument("--tokens", type=int, default=25)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results = {
        precision: compare(make_steps(arguments, precision), arguments.repeats) for precision in arguments.precision
    }
    rows = [
        [
            kind,
            precision,
            f"{result['milliseconds']:.0f}",
            f"{result['ratio']:.2f}",
            f"{result['quiet_repeats']}/{arguments.repeats}",
        ]
        for precision, by_kind in results.items()
        for kind, result in by_kind.items()
    ]
    print(
        common.markdown_table(
            [f"{arguments.layers} x {arguments.units}", "precision", "ms", "time over nn.LSTM", "quiet"], rows
        )
    )
    settings = {key: value for key, value in vars(arguments).items() if key != "json"}
    common.write_json(arguments.json, {"machine": common.machine(), "settings": settings, "results": results})


if __name__ == "__main__":
    main()
