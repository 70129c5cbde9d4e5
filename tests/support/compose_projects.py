"""Compose projects in every form that users write them: file name to content, first file first."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Project(NamedTuple):
    """`files`: those given to compose; `beside`: what they lead to. `warned`: (service, key)."""

    name: str
    files: dict[str, str]
    beside: Mapping[str, str] = MappingProxyType({})
    warned: frozenset[tuple[str, str]] = frozenset()
    profiles: tuple[str, ...] = ()

    def laid(self, directory: Path) -> list[str]:
        """Write all files below the directory; the paths of those that are given to compose."""
        for name, text in {**self.files, **self.beside}.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [str(directory / name) for name in self.files]


def _one(name: str, text: str, *warned: tuple[str, str], **more: object) -> Project:
    return Project(name, {"compose.yaml": text}, warned=frozenset(warned), **more)  # type: ignore[arg-type]


PROJECTS = (
    _one("no ports", "services:\n  web:\n    image: box\n"),
    _one("nothing in a service", "services:\n  web:\n    image: box\n  job: {image: box}\n"),
    _one(
        "short syntax",
        """
services:
  web:
    image: box
    ports:
      - "3000"
      - 3001
      - "8000:8000"
      - "49100:22"
      - "127.0.0.1:8001:8001"
      - "127.0.0.1::5000"
      - "0.0.0.0:6061:6061"
      - "[::1]:6062:6062"
      - "6060:6060/udp"
      - "53:53/udp"
      - "53:53/tcp"
""",
    ),
    _one(
        "ranges",
        """
services:
  web:
    image: box
    ports:
      - "3000-3003"
      - "9090-9091:8080-8081"
      - "127.0.0.1:5000-5003:5000-5003"
      - "7000-7009:80"
      - "6000-6002:6000-6002/udp"
""",
    ),
    _one(
        "a range that is too wide to name each port",
        """
services:
  media:
    image: box
    ports:
      - "10000-10200:10000-10200/udp"
      - "8080:8080"
""",
        ("media", "ports"),
    ),
    _one(
        "long syntax",
        """
services:
  web:
    image: box
    ports:
      - name: http
        target: 80
        published: "8080"
        protocol: tcp
        app_protocol: http
        mode: host
      - target: 81
        published: 8081
      - target: 82
        host_ip: 127.0.0.1
        published: "8082-8090"
      - target: 83
        protocol: udp
      - 84:84
""",
    ),
    _one(
        "one container port twice",
        'services:\n  web:\n    image: box\n    ports: ["8000:80", "9000:80"]\n',
    ),
    _one(
        "variables with defaults",
        """
services:
  web:
    image: box
    container_name: ${CONTAINER:-acme}-web
    ports:
      - "${WEB_PORT:-3000}:3000"
      - "${IP:-127.0.0.1}:${API_PORT-3001}:${INNER:-8080}"
      - "${MAPPING:-4000:4001}"
      - "${UNSET:-}${HOST_PORT:-5001}:5001/${PROTOCOL:-udp}"
      - target: ${LONG:-5005}
        published: ${LONG:-5005}
    environment:
      PRICE: $$5
""",
        beside={".env": "WEB_PORT=3333\nINNER=9191 # a comment\nQUOTED='x'\n"},
    ),
    _one(
        "container names, images that are built, replicas",
        """
services:
  web:
    build: .
    image: acme/web:dev
    container_name: web
    ports: ["3000:3000"]
  worker:
    build: .
    image: acme/worker:dev
    container_name: worker
  migrate:
    image: acme/worker:dev
  scaled:
    image: box
    scale: 2
    ports: ["8000-8001:80"]
  deployed:
    image: box
    deploy:
      replicas: 3
    ports: ["81"]
""",
        ("worker", "image"),
        ("scaled", "ports"),
        ("deployed", "ports"),
    ),
    _one(
        "host and foreign networks",
        """
services:
  host:
    image: box
    network_mode: host
  sidecar:
    image: box
    network_mode: "service:web"
  web:
    image: box
    network_mode: bridge
    ports: ["80:80"]
  foreign:
    image: box
    network_mode: "container:somebody"
  linked:
    image: box
    external_links: [somebody, "other:alias"]
    volumes_from: ["container:somebody:ro", "web:ro"]
""",
        ("host", "network_mode"),
        ("foreign", "network_mode"),
        ("linked", "external_links"),
        ("linked", "volumes_from"),
    ),
    _one(
        "volumes and networks with names of their own",
        """
services:
  db:
    image: box
    networks: [back, shared, named]
    volumes:
      - data:/data
      - named:/named
      - shared:/shared
      - varied:/varied
      - /srv/acme:/srv
      - /srv/read:/read:ro
      - ./here:/here
      - /var/run/docker.sock:/var/run/docker.sock
      - type: bind
        source: /srv/long
        target: /long
      - type: volume
        source: data
        target: /again
volumes:
  data:
  named:
    name: acme-data
  varied:
    name: ${COMPOSE_PROJECT_NAME}-data
  shared:
    external: true
  bound:
    driver_opts: {type: none, o: bind, device: /srv/data}
networks:
  back: {}
  named:
    name: acme-net
  shared:
    external: true
    name: proxy
  bridged:
    driver_opts: {com.docker.network.bridge.name: acme0}
""",
        ("db", "volumes"),
        ("", "volumes.shared"),
        ("", "volumes.bound"),
        ("", "networks.shared"),
        ("", "networks.bridged"),
    ),
    _one(
        "fixed subnets and addresses",
        """
services:
  web:
    image: box
    networks:
      back:
        ipv4_address: 172.28.0.10
        aliases: [www]
  api:
    image: box
    networks: [back]
networks:
  back:
    name: acme-back
    ipam:
      config:
        - subnet: 172.28.0.0/16
  plain:
    ipam:
      driver: default
""",
        ("web", "networks.back.ipv4_address"),
        ("", "networks.back.ipam"),
    ),
    _one(
        "anchors and merge keys",
        """
x-common: &common
  image: box
  environment: &env
    LOG: "1"
  labels: [a=b]
x-ports: &ports
  - "8080:80"
services:
  web:
    <<: *common
    ports: *ports
  api:
    <<: *common
    ports: ["8081:80"]
    container_name: fixed
    environment:
      <<: *env
      MORE: "2"
  same: &same
    image: box
    extends: web
    ports: ["8082:81"]
  twin: *same
""",
    ),
    _one(
        "profiles",
        """
services:
  web: {image: box, ports: ["80:80"]}
  debug: {image: box, profiles: [debug], ports: ["9229:9229"], container_name: debug}
""",
        profiles=("debug",),
    ),
    _one(
        "extends in the same file",
        """
services:
  base:
    image: box
    ports: ["8000:80"]
  web:
    extends: base
    ports: ["8001:81"]
  api:
    extends: {service: web}
    ports: ["8002:80"]
    container_name: api
""",
    ),
    _one(
        "extends from another file, in circles of files",
        """
services:
  web:
    extends: {file: parts/common.yaml, service: app}
    ports: ["8001:81"]
  local: {image: box, ports: ["9:9"]}
""",
        beside={
            "parts/common.yaml": """
services:
  app: {image: box, container_name: app, ports: ["8000:80"], environment: [A=1]}
  other:
    extends: {file: ../compose.yaml, service: local}
"""
        },
    ),
    _one(
        "include",
        """
include:
  - infra/compose.yaml
  - path: [infra/more.yaml]
    env_file: infra/more.env
services:
  web: {image: box, ports: ["80:80"], depends_on: [db]}
""",
        beside={
            "infra/compose.yaml": """
include: [deeper/compose.yaml]
services:
  db: {image: box, container_name: db, ports: ["5432:5432"]}
""",
            "infra/deeper/compose.yaml": 'services:\n  deep: {image: box, ports: ["7:7"]}\n',
            "infra/more.yaml": """
services:
  more: {image: box, ports: ["${MORE:-1}:${MORE:-1}"]}
""",
            "infra/more.env": "MORE=8\n",
        },
    ),
    Project(
        "several files",
        {
            "compose.yaml": """
name: acme
services:
  web: {image: box, ports: ["80:80"], environment: [A=1, B]}
  api: {image: box, ports: ["81:81"], container_name: api}
  old: {image: box, ports: ["82:82"], environment: [KEEP=1]}
""",
            "compose.more.yaml": """
services:
  web:
    ports: ["8080:80", "443:443"]
    environment: {A: "2"}
  api:
    ports: !override ["8081:8081"]
    container_name: !reset null
  old:
    ports: !reset []
  new: {image: box, ports: ["83:83"]}
""",
        },
    ),
    _one(
        "several documents in one file",
        """
services:
  web: {image: box, ports: ["80:80"]}
---
services:
  web: {ports: ["81:81"]}
  api: {image: box, ports: ["82:82"]}
""",
    ),
    _one(
        "env_file and environment as a list",
        """
services:
  web:
    image: box
    env_file: [web.env]
    environment: ["FROM_LIST=base", "PASSED"]
    ports: ["80:80"]
""",
        beside={"web.env": "FROM_FILE=base\nOVERRIDDEN=base\n"},
    ),
    _one(
        "names that YAML readers mistake",
        """
services:
  "on": {image: box, ports: ["80:80"]}
  "1": {image: box, ports: ["81:81"]}
  a.b_c-d: {image: box, ports: ["82:82"]}
""",
    ),
)
