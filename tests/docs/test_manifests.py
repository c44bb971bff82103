"""The manifests that start nodes elsewhere: YAML with the fields that each engine asks for, and commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs/how-to/start-nodes-elsewhere.md"
# The fields of each engine that the page may use; SkyPilot's YAML and dstack's task have more.
SKY = {"name", "workdir", "resources", "envs", "setup", "run"}
DSTACK = {"type", "name", "image", "env", "commands", "resources", "volumes"}


def manifests(heading: str) -> list[dict[str, Any]]:
    """The documents of the YAML below a heading of the page."""
    _, _, below = PAGE.read_text().partition(f"\n## {heading}\n")
    match = re.search(r"```yaml\n(.*?)```", below, re.DOTALL)
    assert match
    return list(yaml.safe_load_all(match[1]))


def test_skypilot() -> None:
    (task,) = manifests("SkyPilot")
    assert set(task) == SKY
    assert set(task["resources"]) == {"accelerators", "disk_size"}


def test_dstack() -> None:
    (task,) = manifests("dstack")
    assert set(task) == DSTACK
    assert (task["type"], task["env"]) == ("task", ["INVITE"])
    assert set(task["resources"]) == {"gpu", "disk"}
    assert all(re.fullmatch(r"[\w-]+:/\S+", volume) for volume in task["volumes"])


def test_kubernetes() -> None:
    claim, deployment = manifests("Kubernetes")
    for each, kind, version in ((claim, "PersistentVolumeClaim", "v1"), (deployment, "Deployment", "apps/v1")):
        assert (each["kind"], each["apiVersion"], set(each)) == (
            kind,
            version,
            {"apiVersion", "kind", "metadata", "spec"},
        )
        assert each["metadata"]["name"]
    assert set(claim["spec"]) == {"accessModes", "resources"}
    spec = deployment["spec"]
    assert set(spec) == {"replicas", "strategy", "selector", "template"}
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate"), "a home belongs to one node"
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    pod = spec["template"]["spec"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    assert {"name", "image", "command", "args"} <= set(container)
    assert [mount["name"] for mount in container["volumeMounts"]] == [volume["name"]]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert all(("value" in each) != ("valueFrom" in each) for each in container["env"])


def scripts() -> Iterator[str]:
    """What the manifests have a shell do."""
    (sky,), (dstack,), (_, deployment) = map(manifests, ("SkyPilot", "dstack", "Kubernetes"))
    yield from (sky["setup"], sky["run"], "\n".join(dstack["commands"]))
    yield from deployment["spec"]["template"]["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("script", list(scripts()))
def test_what_a_shell_is_given_are_commands_that_exist(script: str) -> None:
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    ours = [shlex.split(line) for line in re.split(r"\n|&&", script) if re.match(r"\s*(exec )?autoresearch", line)]
    commands = [["autoresearch", "network", "join", "$INVITE"], ["exec", "autoresearchd", "--work"]]
    assert all(line in commands for line in ours)
