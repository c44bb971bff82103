"""Programs written for agentlace: with ``autoresearch.services`` put in its place, and nothing else changed."""

from __future__ import annotations

import io
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import autoresearch.services as agentlace
from autoresearch.errors import BadMessage, UsageError
from autoresearch.services.data.replay_buffer import ReplayBuffer
from autoresearch.services.data.trajectory_buffer import TrajectoryBuffer
from autoresearch.services.internal.utils import jpeg_to_mat, mat_to_jpeg
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer
from tests.daemon.daemons import wait_for

# Its public names, by the modules from which its README, its examples and its tests import them.
NAMES = {
    "action": "ActionClient ActionConfig ActionServer",
    "inference": "InferenceClient InferenceServer",
    "trainer": "TrainerClient TrainerConfig TrainerSMInterface TrainerServer",
    "gym_env": "GymEnvClient GymEnvServerWrapper",
    "data.data_store": "DataStoreBase QueuedDataStore",
    "data.jaxrl_data_store": "ReplayBufferDataStore TrajectoryBufferDataStore make_default_trajectory_buffer",
    "data.sampler": "FutureSampler LatestSampler Sampler SequenceSampler",
    "data.tfds": "make_datastore populate_datastore",
    "data.trajectory_buffer": "DataShape TrajectoryBuffer",
    "internal.utils": "jpeg_to_mat mat_to_jpeg",
}


@pytest.mark.parametrize("module", NAMES)
def test_a_module_has_its_names(module: str) -> None:
    imported = import_module(f"autoresearch.services.{module}")
    assert not [name for name in NAMES[module].split() if not hasattr(imported, name)]


@pytest.mark.slow
def test_data_is_there_without_an_import_of_its_own() -> None:
    program = "import autoresearch.services as agentlace; print(agentlace.data.ReplayBuffer(capacity=2).capacity)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "2\n"
    with pytest.raises(AttributeError):
        agentlace.data.Nothing  # noqa: B018


def test_steps_of_an_environment_reach_a_learner() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("CartPole-v1")
    config = TrainerConfig(port_number=0, broadcast_port=0)
    server = TrainerServer(config)
    learned = ReplayBuffer(capacity=2)
    with pytest.raises(UsageError, match="the buffer is empty"):
        learned.sample(1)
    server.register_data_store("agent1", learned)
    server.start(threaded=True)
    weights: list[Any] = []
    acted = agentlace.ReplayBuffer(capacity=2)
    ports = TrainerConfig(port_number=server.port, broadcast_port=server.broadcast_port)
    client = TrainerClient("agent1", "localhost", ports, acted)
    try:
        client.recv_network_callback(weights.append)
        env.reset(seed=1)
        for _ in range(3):
            acted.insert(env.step(0))
        assert client.update()
        observations, rewards, ended, cut, infos = learned.sample(5)
        assert (observations.shape, rewards.tolist(), ended.any(), cut.any()) == ((5, 4), [1.0] * 5, False, False)
        assert list(infos) == [{}] * 5
        server.publish_network({"w": observations[0]})
        wait_for(lambda: bool(weights))
    finally:
        client.stop()
        server.stop()


@given(
    st.lists(
        st.tuples(st.integers(-5, 5), st.dictionaries(st.text(), st.integers()) | st.none()), min_size=1, max_size=100
    )
)
def test_rows_that_are_tuples_come_back(rows: list[tuple[int, Any]]) -> None:
    buffer = ReplayBuffer(capacity=100)
    buffer.insert(rows[0])
    buffer.batch_insert(rows[1:])
    assert buffer.get_latest_data(-1) == rows
    assert [type(other) for _, other in buffer.get_latest_data(-1)] == [type(other) for _, other in rows]
    numbers, others = buffer.sample(len(rows), indx=range(len(rows)))
    assert list(zip(numbers.tolist(), others, strict=True)) == rows


def test_a_row_of_another_form_is_refused(tmp_path: Path) -> None:
    buffer = ReplayBuffer(capacity=4)
    buffer.insert((1.0, {"lives": 3}))
    with pytest.raises(UsageError, match="0 is no number"):
        buffer.insert((None, {}))
    with pytest.raises(UsageError, match="names are not those of the buffer"):
        buffer.insert((1.0, {}, 2))
    with pytest.raises(UsageError, match="a row holds no value"):
        ReplayBuffer(capacity=1).insert(())
    with pytest.raises(UsageError, match="1 of the rows holds no numbers"):
        buffer.save(tmp_path / "buffer.npz")
    assert not list(tmp_path.iterdir())
    pairs = ReplayBuffer(capacity=4)
    pairs.insert((1.0, 2))
    pairs.save(tmp_path / "pairs.npz")
    assert ReplayBuffer.load(tmp_path / "pairs.npz").get_latest_data(-1) == [(1.0, 2)]
    assert pairs.sample(1, keys=[]) == {}
    with pytest.raises(UsageError, match="value holds tuple, not numbers"):
        TrajectoryBuffer(capacity=4).insert((1.0, {}))


def test_images_travel_as_jpeg() -> None:
    rows, columns = np.mgrid[0:64, 0:48]
    image = np.stack([rows * 3, columns * 4, rows + columns], axis=-1).astype(np.uint8)
    data = mat_to_jpeg(image)
    assert len(data) < image.nbytes / 3
    decoded = jpeg_to_mat(data)
    assert decoded.shape == image.shape
    assert np.abs(decoded.astype(int) - image).mean() < 3, "blue, green and red are where they were"
    assert jpeg_to_mat(mat_to_jpeg(image[..., 0])).shape == image.shape
    with pytest.raises(UsageError, match="is no image"):
        mat_to_jpeg(image.astype(float))
    size = data.index(b"\xff\xc0") + 5  # in the header of the frame
    vast = [data[:size] + bytes(4 * [byte]) + data[size + 4 :] for byte in (0x30, 0xFF)]
    for broken in (*vast, b"", b"no image", data[: len(data) // 2], b"\x89PNG\r\n\x1a\n"):
        with pytest.raises(BadMessage):
            jpeg_to_mat(broken)


def with_scans(data: bytes, count: int, fill: bytes = b"") -> bytes:
    """A JPEG image whose scan is there so many times."""
    start, end = data.rindex(b"\xff\xda"), data.rindex(b"\xff\xd9")
    return data[:start] + count * (fill + data[start:end]) + data[end:]


def in_scans(image: np.ndarray, quality: int = 50) -> bytes:
    """A progressive image, as any program writes it."""
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=quality, progressive=True)
    return out.getvalue()


@pytest.mark.slow
def test_an_image_of_many_scans_is_not_decoded() -> None:
    small, wide = np.zeros((8, 8, 3), np.uint8), np.zeros((4096, 4096, 3), np.uint8)
    assert jpeg_to_mat(in_scans(small)).shape == small.shape
    assert jpeg_to_mat(in_scans(wide)).shape == wide.shape
    assert jpeg_to_mat(with_scans(in_scans(small), 50)).shape == small.shape
    few = (with_scans(in_scans(wide), 80), with_scans(mat_to_jpeg(wide), 70), with_scans(in_scans(wide), 70, b"\xff"))
    many = [with_scans(in_scans(small), count, fill) for count in (101, 3000) for fill in (b"", b"\xff", b"\xff\xff")]
    for hostile in (*many, *few, with_scans(mat_to_jpeg(small), 20_000)):
        with pytest.raises(BadMessage, match="scans came, which takes too long"):
            jpeg_to_mat(hostile)


def test_a_trainer_has_agentlaces_calls() -> None:
    server = TrainerServer(TrainerConfig(port_number=0, broadcast_port=0))
    store, own = agentlace.QueuedDataStore(100), agentlace.QueuedDataStore(100)
    server.register_data_store("rows", store)
    server.start(threaded=True)
    ports = TrainerConfig(port_number=server.port, broadcast_port=server.broadcast_port)
    client = TrainerClient("rows", "localhost", ports, own, wait_for_server=True)
    weights: list[Any] = []
    try:
        assert server.store_names() == {"rows"}
        assert client.get_server_last_update_id("rows") == -1
        own.batch_insert(list(range(10)))
        assert client.update_datastore("rows", 3)
        assert client.update_datastore("rows", -1, confirm_update=True)
        assert client.update()
        assert store.get_latest_data(-1) == [4, 5, 6, 7, 8, 9]
        assert client.get_server_last_update_id("rows") == 9
        client.req_rep_client.timeout_ms = 20_000
        client.req_rep_client.reset_socket()
        assert client.update()
        assert not client.update_datastore("unknown", -1)
        assert "no data store unknown" in str(client.last_error)
        assert client.get_server_last_update_id("unknown") is None
        client.recv_network_callback(callback=weights.append)
        server.publish_network(payload=[1])
        wait_for(lambda: bool(weights))
    finally:
        client.stop()
        server.stop()
    both = agentlace.TrainerSMInterface()
    assert both.request("stats", 1) is None
    both.register_request_callback(lambda kind, payload: {kind: payload})
    both.recv_network_callback(callback_fn=weights.append)
    both.publish_network(params=[2])
    assert (both.request("stats", 1), weights[-1]) == ({"stats": 1}, [2])
