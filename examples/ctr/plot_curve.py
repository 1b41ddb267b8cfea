"""Plot the scores that the chief of examples/ctr has written (setting curve=FILE).

    python3 examples/ctr/plot_curve.py FILE [IMAGE]

Prints a plot of characters; with matplotlib the image, a PNG, is written, too. The first
row of the file is the planted model's, if there is one.
"""

import csv
import importlib.util
import sys

COLUMNS, LINES = 64, 12


def read(path):
    """Rows of seconds, batches, AUC and loss."""
    with open(path, newline="") as file:
        return [tuple(map(float, row)) for row in list(csv.reader(file))[1:]]


def split(rows):
    """The planted scores, or None, and the rows of the job."""
    planted = rows[0] if rows and rows[0][1] == 0 else None
    return planted, rows[1:] if planted else rows


def print_loss(planted, rows):
    losses = [row[3] for row in rows] + ([planted[3]] if planted else [])
    low, high, last = min(losses), max(losses), rows[-1][0]
    lines = [[" "] * COLUMNS for _ in range(LINES)]

    def line_of(loss):
        return round((high - loss) / max(high - low, 1e-9) * (LINES - 1))

    if planted:
        lines[line_of(planted[3])] = ["-"] * COLUMNS
    for seconds, _, _, loss in rows:
        lines[line_of(loss)][int(seconds / last * (COLUMNS - 1))] = "*"
    for number, line in enumerate(lines):
        loss = high - (high - low) * number / (LINES - 1)
        print(f"{loss:8.4f} |{''.join(line)}")
    print(f"    loss +{'-' * COLUMNS} {last:.0f} s")
    if planted:
        print("          ---- what the planted model has")


def write_image(planted, rows, image):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axes, column, name in ((left, 3, "log loss"), (right, 2, "AUC")):
        axes.plot([row[0] for row in rows], [row[column] for row in rows], label="model")
        if planted:
            axes.axhline(planted[column], color="grey", linestyle="--", label="planted")
        axes.set(xlabel="seconds", ylabel=name)
        axes.legend()
    pyplot.savefig(image, dpi=100)


def main(path, image=None):
    planted, rows = split(read(path))
    if not rows:
        print(f"no scores in {path}")
        return 1
    print_loss(planted, rows)
    if image and importlib.util.find_spec("matplotlib") is not None:
        write_image(planted, rows, image)
        print(f"the plot is in {image}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]) if len(sys.argv) in (2, 3) else __doc__)
