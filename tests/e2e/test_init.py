"""`flakestorm init`: from an agent that is there to a report about it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config_support import loaded_config
from e2e_support import PROGRAMS, clean_env, flakestorm, sdk_agent, wait_until, world
