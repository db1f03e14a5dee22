"""Tests of what outgrows one process; they find `private_network` beside them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# Ray gives its processes 30 or 60 s to start and to answer. On a busy machine they need more.
PATIENCE = {
    "RAY_raylet_start_wait_time_s": "600",
    "RAY_gcs_server_port_wait_time_s": "600",
    "RAY_gcs_server_request_timeout_seconds": "600",
    "RAY_gcs_rpc_server_connect_timeout_s": "600",
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "600",
}
os.environ.update(PATIENCE)
