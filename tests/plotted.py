"""What a plot shows."""

import numpy as np
from matplotlib.lines import Line2D


def points(line: Line2D) -> list[list[float]]:
    """The [x, y] of each point."""
    return np.asarray(line.get_xydata()).tolist()
