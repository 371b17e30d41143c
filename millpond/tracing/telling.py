"""Who traces are told to: OpenTelemetry, which is installed apart.

What there is to say is in `following.py`; here is how it is said. Nothing is imported before
somebody wants traces.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from millpond import version
from millpond.errors import InputError
from millpond.settings import OFF, Settings

PROCESS = "process"
"""The setting that leaves it to what the process has set up."""

EXPORT_SECONDS = 2.0
"""So long a collector has for an answer: who ends waits no longer for one that is not there."""

Context = Any
"""By which another span says that it follows one."""


def check_packages(settings: Settings) -> None:
    """Refuses traces where what they need is not installed, with the command that installs it."""
    needed = ["opentelemetry.trace"]
    if settings.traces not in (OFF, PROCESS):
        needed += ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"]
    for name in needed if settings.traces != OFF else ():
        _module(name)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            "traces need OpenTelemetry, which is not installed; install it with "
            "pip install 'millpond[traces]'"
        ) from None


class Telling:
    """Says spans: what was done, from when until when, for what, and behind which other ones."""

    def __init__(self, settings: Settings) -> None:
        self._trace = _module("opentelemetry.trace")
        self._provider: Any = None
        self._exporter: Exporter | None = None
        self._ending: threading.Thread | None = None
        if settings.traces != PROCESS:
            self._exporter = Exporter(settings.traces)
            self._provider = _provider(settings, self._exporter)
        provider = self._provider or self._trace.get_tracer_provider()
        self._tracer = provider.get_tracer("millpond", version.VERSION)

    def root(self, name: str, began: float, about: Mapping[str, Any]) -> Context | None:
        """Says a span that ends now and is the first of ours; nothing if it is not to be traced.

        Where the caller of `push` is within a span of its own, it is that one's child.
        """
        span = self._tracer.start_span(name, start_time=_nanoseconds(began), attributes=about)
        span.end()
        context = span.get_span_context()
        return context if context.trace_flags.sampled else None

    def child(
        self,
        name: str,
        behind: Sequence[Context],
        began: float,
        about: Mapping[str, Any],
        error: str = "",
    ) -> Context:
        """Says a span that ends now; it follows others, the first of which is its parent."""
        trace = self._trace
        parent = trace.set_span_in_context(trace.NonRecordingSpan(behind[0]))
        span = self._tracer.start_span(
            name,
            context=parent,
            start_time=_nanoseconds(began),
            attributes=about,
            links=[trace.Link(each) for each in behind[1:]],
        )
        if error:
            span.set_status(trace.Status(trace.StatusCode.ERROR, error))
        span.end()
        return span.get_span_context()

    @contextmanager
    def within(self, headers: Mapping[str, str]) -> Iterator[None]:
        """What is said inside belongs to the trace that the headers of a request name, if any."""
        context = _module("opentelemetry.context")
        token = context.attach(_module("opentelemetry.propagate").extract(headers))
        try:
            yield
        finally:
            context.detach(token)

    def end(self) -> None:
        """Says what is left, in the background, and nothing more."""
        if self._provider is not None and self._ending is None:
            self._ending = threading.Thread(target=self._provider.shutdown, daemon=True)
            self._ending.start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and all is said."""
        return self._provider is None or (self._ending is not None and not self._ending.is_alive())

    def close(self, seconds: float) -> None:
        """Ends it; what is not said after so many seconds is given up, and not tried again."""
        self.end()
        if self._ending is not None:
            self._ending.join(max(seconds, 0.0))
        if self._exporter is not None:
            self._exporter.shutdown()


class Exporter:
    """Hands spans on to a collector until it is shut down, by whom and how often that may be."""

    def __init__(self, address: str) -> None:
        otlp = _module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        self._results = _module("opentelemetry.sdk.trace.export").SpanExportResult
        self._exporter = otlp.OTLPSpanExporter(_endpoint(address), timeout=EXPORT_SECONDS)
        self._lock = threading.Lock()
        self._is_over = False

    def export(self, spans: Sequence[Any]) -> Any:
        """Hands spans on, trying again for a while; none when it is over."""
        return self._results.FAILURE if self._is_over else self._exporter.export(spans)

    def shutdown(self) -> None:
        """Has nothing be tried again."""
        with self._lock:
            is_over, self._is_over = self._is_over, True
        if not is_over:
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 0) -> bool:
        """Nothing waits here."""
        return True


def _nanoseconds(moment: float) -> int:
    """A moment of this process's own clock, as others tell it."""
    return time.time_ns() - int((time.monotonic() - moment) * 1e9)


def _provider(settings: Settings, exporter: Exporter) -> Any:
    """Hands spans on to a collector, in the background."""
    sdk, sampling = _module("opentelemetry.sdk.trace"), _module("opentelemetry.sdk.trace.sampling")
    resources, export = (
        _module("opentelemetry.sdk.resources"),
        _module("opentelemetry.sdk.trace.export"),
    )
    facts = {"service.version": version.VERSION}
    if "OTEL_SERVICE_NAME" not in os.environ:
        facts["service.name"] = "millpond"
    provider = sdk.TracerProvider(
        sampler=sampling.ParentBased(sampling.TraceIdRatioBased(settings.trace_share)),
        resource=resources.Resource.create(facts),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    return provider


def _endpoint(address: str) -> str:
    """Where a collector takes spans.

    >>> _endpoint("http://localhost:4318"), _endpoint("https://example.org/otlp/v1/traces")
    ('http://localhost:4318/v1/traces', 'https://example.org/otlp/v1/traces')
    """
    has_path = urlsplit(address).path not in ("", "/")
    return address if has_path else f"{address.rstrip('/')}/v1/traces"
