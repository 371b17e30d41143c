"""Jars of Maven Central for servers that tests run: a program and all that it needs at run time.

Of several versions the one nearest to the root is taken, as Maven does. What was fetched stays in
``.pytest_cache``; where nothing can be fetched, tests are skipped with the reason.
"""

from __future__ import annotations

import hashlib
import os
import re
import xml.etree.ElementTree as ET
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import httpx

REPOSITORY = os.environ.get("MILLPOND_MAVEN", "https://repo1.maven.org/maven2")
CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jars"


@dataclass(frozen=True)
class Artifact:
    """A jar, by its coordinates."""

    group: str
    name: str
    version: str

    def path(self, suffix: str) -> str:
        folder = f"{self.group.replace('.', '/')}/{self.name}/{self.version}"
        return f"{folder}/{self.name}-{self.version}.{suffix}"


class UnreachableError(Exception):
    """Something could not be fetched."""


def jars(root: Artifact) -> list[Path]:
    """The jar of an artifact and those that it needs, fetched if they are not here yet."""
    listing = CACHE / f"{root.name}-{root.version}.txt"
    if not listing.exists():
        with httpx.Client(base_url=REPOSITORY, follow_redirects=True, timeout=60) as client:
            found = [_fetched(client, each) for each in _needed(client, root)]
        listing.write_text("".join(f"{path.name}\n" for path in found))
    return [CACHE / name for name in listing.read_text().split()]


def jar(artifact: Artifact) -> Path:
    """The jar of an artifact alone, fetched if it is not here yet."""
    with httpx.Client(base_url=REPOSITORY, follow_redirects=True, timeout=60) as client:
        return _fetched(client, artifact)


def _needed(client: httpx.Client, root: Artifact) -> list[Artifact]:
    chosen: dict[tuple[str, str], Artifact] = {}
    waiting = deque([(root, frozenset[tuple[str, str]]())])
    while waiting:
        artifact, excluded = waiting.popleft()
        key = artifact.group, artifact.name
        if key in chosen or key in excluded or (artifact.group, "*") in excluded:
            continue
        chosen[key] = artifact
        for needed, without in _Pom(client, artifact).dependencies():
            waiting.append((needed, excluded | without))
    return list(chosen.values())


class _Pom:
    """What an artifact says of itself, with what it has from its parents."""

    def __init__(self, client: httpx.Client, artifact: Artifact) -> None:
        self._client = client
        self.properties: dict[str, str] = {}
        self.managed: dict[tuple[str, str], str] = {}
        self._dependencies: list[ET.Element] = []
        self._read(artifact, is_own=True)

    def _read(self, artifact: Artifact, is_own: bool) -> None:
        text = _get(self._client, artifact.path("pom"))
        root = ET.fromstring(_plain(text))
        own = {"project.version": artifact.version, "project.groupId": artifact.group}
        listed = root.find("properties")
        own |= {each.tag: each.text or "" for each in ([] if listed is None else listed)}
        self.properties = own | self.properties
        if is_own:
            self._dependencies = root.findall("dependencies/dependency")
        parent = root.find("parent")
        if parent is not None:
            self._read(self._artifact(parent), is_own=False)
        for each in root.findall("dependencyManagement/dependencies/dependency"):
            found = self._artifact(each)
            if each.findtext("scope") == "import":
                imported = _Pom(self._client, found)
                self.managed = imported.managed | self.managed
            else:
                self.managed[found.group, found.name] = found.version

    def dependencies(self):
        for each in self._dependencies:
            scope = self._said(each.findtext("scope") or "compile")
            if scope in ("compile", "runtime") and each.findtext("optional") != "true":
                found = self._artifact(each)
                version = found.version or self.managed[found.group, found.name]
                without = {
                    (self._said(e.findtext("groupId") or ""), e.findtext("artifactId") or "")
                    for e in each.findall("exclusions/exclusion")
                }
                yield Artifact(found.group, found.name, version), frozenset(without)

    def _artifact(self, element: ET.Element) -> Artifact:
        parts = (element.findtext(tag) or "" for tag in ("groupId", "artifactId", "version"))
        return Artifact(*map(self._said, parts))

    def _said(self, text: str) -> str:
        while (found := re.search(r"\$\{([^}]*)\}", text)) is not None:
            text = text.replace(found[0], self.properties.get(found[1], ""))
        return text.strip()


def _plain(text: bytes) -> str:
    return re.sub(r'\sxmlns(:\w+)?="[^"]*"|\s\w+:schemaLocation="[^"]*"', "", text.decode())


def _get(client: httpx.Client, path: str) -> bytes:
    try:
        answer = client.get(f"/{path}")
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise UnreachableError(
            f"{path} cannot be fetched: {type(error).__name__}: {error}"
        ) from None
    return answer.content


def _fetched(client: httpx.Client, artifact: Artifact) -> Path:
    """The jar, whole: it has the sum that the repository says."""
    place = CACHE / Path(artifact.path("jar")).name
    if not place.exists():
        content = _get(client, artifact.path("jar"))
        wanted = _get(client, artifact.path("jar.sha1")).decode().split()[0]
        if hashlib.sha1(content).hexdigest() != wanted:
            raise UnreachableError(f"{place.name} came with another checksum than {wanted}")
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_name(f"{place.name}.{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(place)
    return place
