"""The residual's table: what is put into it, and what a person reads from it."""

from __future__ import annotations

from robot_fb.benchmarks import residual_table
from robot_fb.benchmarks.residual import ResidualArgs, chosen


def row(name, seed, success, touch="live", **more):
    about = {"task": "keyed_socket", "base": "diffusion", "seed": seed, "row": name, "touch": touch, "what": name}
    found = {"episodes": 200, "success_rate": success, "peak_force_p95_n": 7.0, "over_cap": 1, "ceiling": 0.5}
    return {**about, **found, **more}


def test_a_row_is_the_mean_of_its_seeds_and_is_held_against_the_base_of_each_seed():
    rows = [row("touch", 1, 0.9, worst_trial_against_base=-0.04), row("base", 0, 0.2), row("base", 1, 0.4)]
    rows += [row("touch", 0, 1.0, worst_trial_against_base=0.0), row("touch", 0, 0.3, "shuffled")]

    title, head, base, touch, shuffled = residual_table.table(rows).splitlines()

    assert title == "keyed_socket on a diffusion base; without touch at most 50%"
    assert head.split()[:4] == ["row", "what", "touch", "seeds"]
    assert base.split() == ["base", "base", "live", "2", "30.0%", "20.0%", "7.0", "0.5%"]
    assert touch.split() == ["touch", "touch", "live", "2", "95.0%", "90.0%", "+65.0", "-4.0", "7.0", "0.5%"]
    assert shuffled.split() == ["touch", "touch", "shuffled", "1", "30.0%", "30.0%", "+10.0", "7.0", "0.5%"]


def test_the_whole_plan_has_the_main_rows_of_every_task_and_seed_once():
    plan = list(chosen(ResidualArgs()))
    assert len(plan) == len(set(plan))
    assert {(task, seed) for task, base, seed, row in plan if row == "touch" and base == "diffusion"} == {
        (task, seed) for task in ("keyed_socket", "occluded_peg", "fragile_lift") for seed in range(3)
    }
    assert {base for _, base, _, _ in plan} == {"diffusion", "flow", "chunk_mlp"}


def test_a_choice_narrows_the_plan_and_a_row_may_be_asked_for_anywhere():
    assert list(chosen(ResidualArgs(task="fragile_lift", seed=2, row="touch"))) == [
        ("fragile_lift", "diffusion", 2, "touch")
    ]
    assert list(chosen(ResidualArgs(task="occluded_peg", base="flow", seed=0, row="sac"))) == [
        ("occluded_peg", "flow", 0, "sac")
    ]
    assert {task for task, *_ in chosen(ResidualArgs(task="occluded_peg"))} == {"occluded_peg"}
