"""The figures of takeovers and hand-backs tell a good way from a bad one."""

from __future__ import annotations

from robot_fb.benchmarks import handover


def test_ours_neither_jumps_nor_snaps_back_where_the_naive_way_does(tmp_path):
    ours, naive = handover.run(["--count", "12", "--cuts", "0", "--out", str(tmp_path)])["rows"]
    assert ours["takeovers"] == naive["takeovers"] == 12 and (tmp_path / "handover.json").exists()
    assert ours["jumps"] == ours["snap_backs"] == ours["lost_steps"] == 0
    assert naive["jumps"] == 12 and naive["snap_backs"] > 0
    shortest, longest = ours["human_s_of_those"]
    assert ours["one_second_corrections"] > 0 and 0.95 <= shortest <= longest <= 1.05


def test_every_cut_link_stops_the_robot_and_what_was_measured_before_is_kept(tmp_path):
    handover.run(["--count", "2", "--cuts", "0", "--out", str(tmp_path)])
    rows = handover.run(["--count", "0", "--cuts", "2", "--out", str(tmp_path)])["rows"]
    assert [row.get("way") or row["cut"] for row in rows] == ["ours", "naive", "console", "hub", "member", "camera"]
    assert all(row["cuts"] == 2 and 0 < row["stops_within_ms"] < 500 for row in rows[2:])
