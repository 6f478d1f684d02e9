"""`robot-fb train residual`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Literal

import torch
import tyro

from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.algorithms.residual.learn import learn
from robot_fb.config import to_mapping
from robot_fb.training.checkpoint import load_policy
from robot_fb.training.run_folder import RunFolder
