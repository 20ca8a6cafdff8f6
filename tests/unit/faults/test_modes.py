"""The table of built-in modes says the truth: about what is registered where, and about the settings."""

import subprocess
import sys

import pytest

from flakestorm.config.model import ContextAttack, Fault, LlmFault, ToolFault
from flakestorm.core.registry import Registry
from flakestorm.faults.base import (
    context_attacks,
    conversation_attacks,
    llm_faults,
    result_attacks,
    result_faults,
    tool_faults,
)
from flakestorm.faults.modes import CONTEXT, CONTEXT_RESULT, CONVERSATION, LLM, RESULT, TOOL, Modes, arguments, homes

FAMILIES: list[tuple[Modes, Registry[object], type[Fault]]] = [
    (TOOL, tool_faults, ToolFault),  # type: ignore[list-item]
    (RESULT, result_faults, ToolFault),  # type: ignore[list-item]
    (LLM, llm_faults, LlmFault),  # type: ignore[list-item]
    (CONTEXT, context_attacks, ContextAttack),  # type: ignore[list-item]
    (CONTEXT_RESULT, result_attacks, ContextAttack),  # type: ignore[list-item]
    (CONVERSATION, conversation_attacks, ContextAttack),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("modes", "registry", "settings"), FAMILIES)
def test_every_mode_is_registered_by_the_module_it_is_said_to_be_in(
    modes: Modes, registry: Registry[object], settings: type[Fault]
) -> None:
    for mode, home in homes(modes).items():
        assert getattr(registry.get(mode), "__module__", None) == home
    ours = {name for name, mode in registry._known.items() if getattr(mode, "__module__", "").startswith("flakestorm.")}
    assert ours == set(homes(modes)), "a mode that is not in the table cannot be found"
    assert set(arguments(modes).values()) <= set(settings.__struct_fields__)


def test_a_result_takes_the_argument_that_the_call_takes() -> None:
    both = set(homes(TOOL)) & set(homes(RESULT))
    assert both
    assert {mode: arguments(TOOL).get(mode) for mode in both} == {mode: arguments(RESULT).get(mode) for mode in both}


def test_a_schedule_is_checked_and_told_without_its_modes() -> None:
    code = (
        "import sys\n"
        "from flakestorm.config.model import Chaos\n"
        "from flakestorm.faults.schedule import Schedule\n"
        "faults = {'tool_faults': ['error'], 'llm_faults': ['empty', 'response_drift']}\n"
        "chaos = Chaos.of({key: [{'mode': mode} for mode in modes] for key, modes in faults.items()})\n"
        "print(Schedule.of(chaos).describe())\n"
        "modes = {f'flakestorm.faults.{name}' for name in ('tool', 'tool_result', 'llm', 'drift', 'context')}\n"
        "assert not modes & set(sys.modules)\n"
        "assert not [name for name in sys.modules if name.startswith('flakestorm.wire.')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
