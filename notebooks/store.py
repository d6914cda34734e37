"""Run notebooks from top to bottom, and store them with what they show (extra `notebook`).

    python notebooks/store.py [NOTEBOOK ...]     all, if none is named

`jupyter execute --inplace` would store the times of the machine as well.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def store(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=300,
        record_timing=False,
        coalesce_streams=True,  # what is printed in one cell is one output
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(FOLDER.glob("*.ipynb")):
        store(Path(name))
        print(Path(name).name)
