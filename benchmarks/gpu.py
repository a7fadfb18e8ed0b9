"""`python benchmarks/gpu.py`: fractions of an NVIDIA GPU's copy bandwidth, into results/gpu.json.

Building a table writes its bytes once, adding an encoding reads x and writes the sum, rotating
reads x and writes it turned. Each is set against a copy that moves as many bytes, which for the
smallest may stay in the cache. The table that a sum reads as well is not counted, so "plain x +
table" beside it shows what plain PyTorch reaches, and "plain rotation of q" the same for a step of
decoding. Calls are queued behind a device that is kept busy, so that what counts is the device's
time, unless it waits for the host to launch. It needs no peer, no package beyond the library's own,
and 20 GB on the device.
"""

import datetime
import json
import platform
import subprocess
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from statistics import median

import torch

from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    rotate,
    sinusoidal_table,
)

SHAPES = [(4096, 1024), (32768, 1024), (131072, 1024)]
REPEATS, CALLS, WARM_UP = 15, 10, 5
HEAD_START = 20_000_000  # cycles, some 10 ms: enough to queue the calls meanwhile


def seconds(run: Callable[[], object]) -> float:
    """Median time of a call on the device."""
    for _ in range(WARM_UP):
        run()
    times: list[float] = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(HEAD_START)
        begin.record()
        for _ in range(CALLS):
            run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1000 / CALLS)
    return median(times)


@cache
def seconds_to_copy(moved: int) -> float:
    """Time of a copy that reads half of so many bytes, and writes half."""
    source = torch.ones(moved // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return seconds(lambda: target.copy_(source))


def builders(seq_len: int, d_model: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Each task: the bytes it must move, and the call. A table starts elsewhere every time."""
    starts = count(1000, 997)
    x = torch.randn(8, seq_len, d_model, device="cuda")
    module = SinusoidalPositionalEncoding(d_model, scale_input=True).cuda()
    row, both = seq_len * d_model * x.itemsize, 2 * x.nbytes

    def build(start: int) -> torch.Tensor:
        return sinusoidal_table(seq_len, d_model, start=start, device="cuda")

    rotary = RotaryPositionalEncoding(d_model, layout="interleaved")
    heads = RotaryPositionalEncoding(128, layout="interleaved")
    q = torch.randn(64, 32, 1, 128, device="cuda", dtype=torch.bfloat16)
    # A graph reads the rows that are cached when it is compiled.
    module(x), rotary(x), heads(torch.zeros(seq_len, 128, device="cuda", dtype=q.dtype))
    compiled_heads = torch.compile(heads, fullgraph=True)
    compiled_rotary = torch.compile(rotary, fullgraph=True)
    compiled_build = torch.compile(build, fullgraph=True, dynamic=True)
    compiled_module = torch.compile(module, fullgraph=True)
    compiled_rotate = torch.compile(rotate, fullgraph=True)
    table = sinusoidal_table(seq_len, d_model, device="cuda")
    cos, sin = torch.rand(2, 1, 128, device="cuda").to(q.dtype)

    def plain_sum(x: torch.Tensor) -> torch.Tensor:
        return x + table

    def plain_rotation(q: torch.Tensor) -> torch.Tensor:
        """As models in transformers turn one token: with a row of cosines and one of sines."""
        first, second = q.chunk(2, dim=-1)
        turned: torch.Tensor = q * cos + torch.cat((-second, first), dim=-1) * sin
        return turned

    compiled_sum = torch.compile(plain_sum, fullgraph=True)
    compiled_rotation = torch.compile(plain_rotation, fullgraph=True)
    return {
        "table, eager": (row, lambda: build(next(starts))),
        "table, compiled": (row, lambda: compiled_build(next(starts))),
        "add, eager": (both, lambda: module(x)),
        "add, compiled": (both, lambda: compiled_module(x)),
        "plain x + table, eager": (both, lambda: plain_sum(x)),
        "plain x + table, compiled": (both, lambda: compiled_sum(x)),
        "rotate, eager": (both, lambda: rotate(x, by=7)),
        "rotate, compiled": (both, lambda: compiled_rotate(x, by=7)),
        "rotary, eager": (both, lambda: rotary(x)),
        "rotary, compiled": (both, lambda: compiled_rotary(x)),
        "decode, eager": (2 * q.nbytes, lambda: heads(q, offset=seq_len - 1)),
        "decode, compiled": (2 * q.nbytes, lambda: compiled_heads(q, offset=seq_len - 1)),
        "plain rotation of q, eager": (2 * q.nbytes, lambda: plain_rotation(q)),
        "plain rotation of q, compiled": (2 * q.nbytes, lambda: compiled_rotation(q)),
    }


def main() -> None:
    largest = 2**31
    results: dict[str, object] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": "python benchmarks/gpu.py",
        "device": torch.cuda.get_device_name(),
        "driver": driver(),
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "copy_bandwidth": largest / seconds_to_copy(largest),
        "runs": [],
    }
    runs = []
    with torch.no_grad():
        for seq_len, d_model in SHAPES:
            for name, (moved, run) in builders(seq_len, d_model).items():
                time = seconds(run)
                fraction = seconds_to_copy(moved) / time
                runs.append(
                    {
                        "task": name,
                        "seq_len": seq_len,
                        "d_model": d_model,
                        "seconds": time,
                        "fraction_of_copy_bandwidth": fraction,
                    }
                )
                print(f"{seq_len}x{d_model}  {name}: {fraction:.0%} of the copy bandwidth")
    results["runs"] = runs
    path = Path(__file__).parent / "results" / "gpu.json"
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout.split("\n")[0]


if __name__ == "__main__":
    if torch.cuda.is_available():
        main()
    else:
        raise SystemExit("benchmarks/gpu.py needs an NVIDIA GPU and a CUDA build of PyTorch")
