"""A Ray cluster on this machine's loopback interface, with two processors, until standard input ends.

Its processes end with this one, so nothing has to be looked for and stopped.
"""

import sys

from flakestorm.executors.distributed import load_ray

ray = load_ray("local")
ray.init(
    address="local",
    num_cpus=2,
    num_gpus=0,
    include_dashboard=False,
    object_store_memory=100 * 2**20,
    log_to_driver=False,
    logging_level="ERROR",
)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
