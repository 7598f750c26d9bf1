"""Report counters by kernel and source line, as text for a terminal and as data for JSON."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from simt.counting import time_model
from simt.counting.counters import (
    TRAFFICS,
    Counters,
    Kernel,
    Launch,
    Line,
    Traffic,
    choose_requests,
    counters_dict,
    launch_dict,
    line_dict,
)
from simt.devices import DEVICES


@dataclass
class Report:
    """The counters of one `with simt.count()` block, complete when the block has ended."""

    launches: list[Launch] = field(default_factory=list)
    device: str = ""

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels in the order of their first launches."""
        found: dict[str, Kernel] = {}
        for launch in self.launches:
            kernel = found.setdefault(launch.kernel, Kernel(launch.kernel, 0, Counters(), []))
            kernel.launches += 1
            kernel.counters.add(launch.counters)
        for kernel in found.values():
            kernel.lines = [line for line in self.lines if line.kernel == kernel.name]
        return list(found.values())

    @property
    def lines(self) -> list[Line]:
        """The lines by kernel, source and line number, over all launches."""
        found: dict[tuple[str, str, int], Line] = {}
        for launch in self.launches:
            for line in launch.lines:
                key = line.kernel, line.source, line.line
                whole = found.setdefault(key, Line(*key))
                whole.counters.add(line.counters)
                whole.requests = choose_requests(whole.requests + line.requests)
        return [found[key] for key in sorted(found)]

    def text(self, sources: Mapping[str, str] | None = None) -> str:
        """Return the report for a terminal. sources: texts by label ("cuda_sources"), to show the source lines."""
        if not self.launches:
            return "No kernel was launched."
        return "\n\n".join(_format_kernel(self, kernel, sources or {}) for kernel in self.kernels)

    def as_dict(self) -> dict:
        """Return the report for JSON: "launches" and "kernels", with counters and derived figures."""
        return {
            "device": self.device,
            "launches": [_describe_launch(launch, self.device) for launch in self.launches],
            "kernels": [
                {
                    "name": k.name, "launches": k.launches, "counters": counters_dict(k.counters),
                    "lines": [line_dict(line) for line in k.lines],
                }
                for k in self.kernels
            ],
        }  # fmt: skip

    def json(self) -> str:
        """Return the report as a JSON text."""
        return json.dumps(self.as_dict(), indent=1)


def _describe_launch(launch: Launch, device: str) -> dict:
    """Return a launch for JSON, with its occupancy and its predicted time on the device."""
    plain = launch_dict(launch)
    if device in DEVICES:
        plain["occupancy"] = {**dataclasses.asdict(launch.occupancy(device)), "ratio": launch.occupancy(device).ratio}
        plain["predicted"] = _predict_dict(launch, device)
    return plain


def _predict_dict(launch: Launch, device: str) -> dict:
    return dataclasses.asdict(time_model.predict(launch, device)) if device in time_model.GPUS else {}


# ---- text ----


def _format_kernel(report: Report, kernel: Kernel, sources: Mapping[str, str]) -> str:
    """Return the lines of text about one kernel."""
    launches = [launch for launch in report.launches if launch.kernel == kernel.name]
    last = launches[-1]
    c = kernel.counters
    often = "" if kernel.launches == 1 else f", {kernel.launches:,} launches (the last one's shape)"
    out = [f"{kernel.name}: grid {last.grid}, block {last.block}, {last.shared:,} bytes of shared memory{often}"]
    if last.sampled < last.blocks:
        errors = [last.error[name] / total for name, total in _list_error_bases(last) if total]
        out.append(
            f"  counted {last.sampled:,} of {last.blocks:,} blocks; standard error {max(errors, default=0):.1%} at most"
        )
    for name in sorted(TRAFFICS):
        t: Traffic = getattr(c, name)
        if not t.requests:
            continue
        text = (
            f"  {name.replace('_', ' ')}: {_format_number(t.requests)} requests, {t.lanes / t.requests:.1f} lanes each"
        )
        if name.startswith("global"):
            text += f", {_format_number(t.sectors)} sectors ({t.sectors_per_request:.2f} per request, "
            text += f"ideal {t.ideal_sectors_per_request:.2f})"
        if name.startswith("shared"):
            text += f", {_format_number(t.wavefronts)} wavefronts, {_format_number(t.conflicts)} of them bank conflicts"
        if name.endswith("atomics"):
            text += f", {t.lanes_per_address:.1f} lanes at the same address"
        out.append(text)
    out.append(
        f"  distinct bytes of the last launch: {_format_number(last.unique_bytes_read)} read, "
        f"{_format_number(last.unique_bytes_written)} written"
    )
    out.append(
        f"  {c.active_lanes:.1f} of 32 lanes active ({c.working_lanes:.1f} not predicated off), "
        f"{c.branch_uniformity:.0%} of {_format_number(c.branches)} branches uniform, "
        f"{_format_number(c.barriers)} barriers, "
        f"{_format_number(c.exchanges)} shuffles and votes, {_format_number(c.flops)} floating-point operations"
    )
    if report.device in DEVICES:
        o = last.occupancy(report.device)
        out.append(
            f"  {o.device}: {o.blocks} blocks per multiprocessor, {o.ratio:.0%} of its warps, limited by "
            f"{' and '.join(o.limited_by)} (registers unknown)"
        )
        out += _format_prediction(launches, report.device)
    return "\n".join(out + _format_lines(kernel, sources))


def _format_prediction(launches: list[Launch], device: str) -> list[str]:
    if device not in time_model.GPUS:
        return []
    predictions = [time_model.predict(launch, device) for launch in launches]
    limits = Counter(p.limit for p in predictions).most_common(1)
    each = "" if len(predictions) == 1 else f" for {len(predictions):,} launches"
    off = f"median error of predictions on an H200: {time_model.MEDIAN_ERROR:.0%}"
    total = _format_seconds(sum(p.seconds for p in predictions))
    return [f"  {device}: predicted {total}{each}, limited by {limits[0][0]} ({off})"]


def _format_seconds(value: float) -> str:
    return f"{1e6 * value:,.1f} µs" if value < 1e-3 else f"{1e3 * value:,.2f} ms"


def _list_error_bases(launch: Launch) -> list[tuple[str, float]]:
    c = launch.counters
    return [
        ("global_sectors", c.global_loads.sectors + c.global_stores.sectors + c.global_atomics.sectors),
        ("shared_wavefronts", c.shared_loads.wavefronts + c.shared_stores.wavefronts + c.shared_atomics.wavefronts),
        ("flops", c.flops),
        ("warp_instructions", c.warp_instructions),
    ]


def _format_lines(kernel: Kernel, sources: Mapping[str, str]) -> list[str]:
    """Return the notable counters of each source line as text."""
    out = []
    for line in kernel.lines:
        c, remarks = line.counters, []
        for name in sorted(TRAFFICS):
            t: Traffic = getattr(c, name)
            if not t.requests:
                continue
            what = name.replace("_", " ")
            if name.startswith("global"):
                remarks.append(
                    f"{what} {t.sectors_per_request:.2f} sectors per request (ideal {t.ideal_sectors_per_request:.2f})"
                )
            elif name.startswith("shared"):
                remarks.append(
                    f"{what} {t.wavefronts / t.requests:.2f} wavefronts per request "
                    f"(ideal {t.ideal_wavefronts / t.requests:.2f})"
                )
            else:
                remarks.append(f"{what} {_format_number(t.requests)} requests")
        if c.divergent_branches:
            remarks.append(
                f"{c.divergent_branches / c.branches:.0%} of {_format_number(c.branches)} branches divergent"
            )
        if c.warp_instructions and c.working_lanes < 31.95:
            remarks.append(f"{c.working_lanes:.1f} of 32 lanes not predicated off")
        if remarks:
            text = sources.get(line.source, "").split("\n")
            shown = (
                f"  | {text[line.line - 1].strip()}"
                if 0 < line.line <= len(text) and text[line.line - 1].strip()
                else ""
            )
            out.append(f"  {line.source}:{line.line}: {'; '.join(remarks)}{shown}")
    return out


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:,.2f}"
