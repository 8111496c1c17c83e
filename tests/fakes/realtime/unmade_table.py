"""A Pinot that does not have the REALTIME table yet: servers and brokers, and nothing else."""

from __future__ import annotations

import httpx
from fakes.realtime.answers import ok
from fakes.realtime.memory import FakeRealtime


class UnmadeTable(FakeRealtime):
    """`FakeRealtime` before its table is made."""

    def _read(self, host: str, path: str, params: httpx.QueryParams) -> httpx.Response:
        instances = [*self.servers, *(f"Broker_{name}_8099" for name in self.brokers)]
        match path.strip("/").split("/"):
            case ["tables", _] | ["zk", "get"]:
                return httpx.Response(404, json={"error": "not here"})
            case ["instances"]:
                return ok({"instances": ["Controller_c_9000", *instances]})
            case ["instances", name] if name.startswith("Broker_"):
                return ok({"instanceName": name, "hostName": f"Broker_{name.split('_')[1]}", "port": "8099"})
            case ["instances", name]:
                port = {"adminPort": 8097, "hostName": f"host{self.servers[name].number}"}
                return ok({"instanceName": name, "tags": ["DefaultTenant_REALTIME"], **port})
            case ["zk", "lsl"]:
                return ok({name: {"ctime": 1, "mtime": 1, "version": 0} for name in instances})
        return super()._read(host, path, params)
