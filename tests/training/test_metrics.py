"""metrics.csv: columns that appear later, resume, TensorBoard beside it."""

from __future__ import annotations

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from robot_fb.training.metrics import CsvMetrics, TensorBoardMetrics, read_metrics


def test_rows_are_on_disk_at_once_and_new_columns_join(tmp_path):
    path = tmp_path / "metrics.csv"
    csv = CsvMetrics(path)
    csv.write(1, {"loss": 0.5})
    assert read_metrics(path) == [{"step": 1, "loss": 0.5}]

    csv.write(2, {"loss": 0.25, "actor_loss": -1.0})
    csv.write(3, {"loss": 0.125})

    assert path.read_text().splitlines()[0] == "step,loss,actor_loss"
    assert read_metrics(path)[1:] == [{"step": 2, "loss": 0.25, "actor_loss": -1.0}, {"step": 3, "loss": 0.125}]


def test_resume_drops_rows_after_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.csv"
    first = CsvMetrics(path)
    for step in (1, 2, 3):
        first.write(step, {"loss": float(step)})

    CsvMetrics(path, start=2).write(3, {"loss": 30.0})

    assert [row["loss"] for row in read_metrics(path)] == [1, 2, 30]


def test_a_new_run_starts_a_new_file(tmp_path):
    path = tmp_path / "metrics.csv"
    CsvMetrics(path).write(1, {"loss": 1.0})
    CsvMetrics(path)

    assert read_metrics(path) == []


def test_tensorboard_reads_the_same_curve(tmp_path):
    board = TensorBoardMetrics(tmp_path)
    board.write(1, {"loss": 0.5})
    board.write(2, {"loss": 0.25})
    board.close()

    events = EventAccumulator(str(tmp_path)).Reload().Scalars("loss")
    assert [(event.step, event.value) for event in events] == [(1, 0.5), (2, 0.25)]
