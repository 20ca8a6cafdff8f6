"""CPU time that the process which leads a campaign spends on a run that is made elsewhere: `FOLDER TRIALS ADDRESS`.

Prints the number of runs and the CPU seconds, all threads of Ray's included, of everything from plan to report.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from flakestorm import api


def main(folder: Path, trials: int, address: str) -> None:
    project = api.load(folder / "flakestorm.yaml")
    options = api.Options(
        trials=trials, early=False, tapes=folder / "tapes", ray=api.OnRay(2, address), seed=1, concurrency=2
    )
    before = time.process_time()
    report = project.contract(options)
    print(len(report.runs), time.process_time() - before)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
