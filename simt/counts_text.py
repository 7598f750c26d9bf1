"""The counters of a report, as text for a terminal: each kernel's, then what stands out line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from . import model
from .counts import TRAFFICS, Kernel, Launch, Report, Traffic
from .devices import DEVICES


def kernel_text(report: Report, kernel: Kernel, sources: Mapping[str, str]) -> str:
    launches = [launch for launch in report.launches if launch.kernel == kernel.name]
    last = launches[-1]
    c = kernel.counters
    often = "" if kernel.launches == 1 else f", {kernel.launches:,} launches (the last one's shape)"
    out = [f"{kernel.name}: grid {last.grid}, block {last.block}, {last.shared:,} bytes of shared memory{often}"]
    if last.sampled < last.blocks:
        errors = [last.error[name] / total for name, total in _error_bases(last) if total]
        out.append(f"  counted {last.sampled:,} of {last.blocks:,} blocks; standard error {max(errors, default=0):.1%} at most")
    for name in sorted(TRAFFICS):
        t: Traffic = getattr(c, name)
        if not t.requests:
            continue
        text = f"  {name.replace('_', ' ')}: {_number(t.requests)} requests, {t.lanes / t.requests:.1f} lanes each"
        if name.startswith("global"):
            text += f", {_number(t.sectors)} sectors ({t.sectors_per_request:.2f} a request, ideal {t.ideal_sectors_per_request:.2f})"
        if name.startswith("shared"):
            text += f", {_number(t.wavefronts)} wavefronts, {_number(t.conflicts)} of them bank conflicts"
        if name.endswith("atomics"):
            text += f", {t.lanes_per_address:.1f} lanes at the same address"
        out.append(text)
    out.append(f"  different bytes of the last launch: {_number(last.unique_bytes_read)} read, {_number(last.unique_bytes_written)} written")
    out.append(
        f"  {c.active_lanes:.1f} of 32 lanes active, {c.working_lanes:.1f} at work, {c.branch_uniformity:.0%} of {_number(c.branches)} branches uniform, "
        f"{_number(c.barriers)} barriers, {_number(c.exchanges)} shuffles and votes, {_number(c.flops)} floating-point operations"
    )
    if report.device in DEVICES:
        o = last.occupancy(report.device)
        out.append(f"  {o.device}: {o.blocks} blocks a multiprocessor, {o.ratio:.0%} of its warps, limited by {' and '.join(o.limited_by)} (registers unknown)")
        out += _predicted(launches, report.device)
    return "\n".join(out + _line_texts(kernel, sources))


def _predicted(launches: list[Launch], device: str) -> list[str]:
    if device not in model.GPUS:
        return []
    told = [model.predict(launch, device) for launch in launches]
    limits = Counter(p.limit for p in told).most_common(1)
    each = "" if len(told) == 1 else f" for {len(told):,} launches"
    off = f"on an H200 the prediction of half of all kernels was off by more than {model.MEDIAN_ERROR:.0%}"
    return [f"  {device}: predicted {_seconds(sum(p.seconds for p in told))}{each}, limited by {limits[0][0]} ({off})"]


def _seconds(value: float) -> str:
    return f"{1e6 * value:,.1f} µs" if value < 1e-3 else f"{1e3 * value:,.2f} ms"


def _error_bases(launch: Launch) -> list[tuple[str, float]]:
    c = launch.counters
    return [
        ("global_sectors", c.global_loads.sectors + c.global_stores.sectors + c.global_atomics.sectors),
        ("shared_wavefronts", c.shared_loads.wavefronts + c.shared_stores.wavefronts + c.shared_atomics.wavefronts),
        ("flops", c.flops),
        ("warp_instructions", c.warp_instructions),
    ]


def _line_texts(kernel: Kernel, sources: Mapping[str, str]) -> list[str]:
    """What stands out, line by line."""
    out = []
    for line in kernel.lines:
        c, remarks = line.counters, []
        for name in sorted(TRAFFICS):
            t: Traffic = getattr(c, name)
            if not t.requests:
                continue
            what = name.replace("_", " ")
            if name.startswith("global"):
                remarks.append(f"{what} {t.sectors_per_request:.2f} sectors a request (ideal {t.ideal_sectors_per_request:.2f})")
            elif name.startswith("shared"):
                remarks.append(f"{what} {t.wavefronts / t.requests:.2f} wavefronts a request (ideal {t.ideal_wavefronts / t.requests:.2f})")
            else:
                remarks.append(f"{what} {_number(t.requests)} requests")
        if c.divergent_branches:
            remarks.append(f"{c.divergent_branches / c.branches:.0%} of {_number(c.branches)} branches divergent")
        if c.warp_instructions and c.working_lanes < 31.95:
            remarks.append(f"{c.working_lanes:.1f} lanes at work")
        if remarks:
            text = sources.get(line.source, "").split("\n")
            shown = f"  | {text[line.line - 1].strip()}" if 0 < line.line <= len(text) and text[line.line - 1].strip() else ""
            out.append(f"  {line.source}:{line.line}: {'; '.join(remarks)}{shown}")
    return out


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:,.2f}"
