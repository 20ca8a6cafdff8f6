"""Rules of the corpus that are code."""

from flakestorm.contracts.base import RunView


def backup_before_pay(run: RunView) -> bool:
    """Where the backup is asked, it is asked before anything is paid."""
    names = [call.tool for call in run.calls()]
    return "backup" not in names or "pay" not in names[: names.index("backup")]
