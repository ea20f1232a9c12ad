"""A table in the form of recorded training: more epochs, more reward, more cost."""

from __future__ import annotations

import random
from pathlib import Path

EPOCHS = {"satellite": 3, "weather": 5, "rice": 3, "scenes": 5, "cats_dogs": 3}


def write_table(folder: Path) -> Path:
    """image_training.csv, twelve trainings of every kind."""
    draw = random.Random(0)
    with open(folder / "image_training.csv", "w", encoding="utf-8") as file:
        file.write("task_type,item_id,option,reward,cost\n")
        for kind, most in EPOCHS.items():
            for item in range(12):
                for epochs in range(1, most + 1):
                    reward, cost = 1.0 - 0.5**epochs + draw.gauss(0.0, 0.02), 2.0 + epochs + draw.random()
                    file.write(f"{kind},{item},{epochs},{reward},{cost}\n")
    return folder
