"""The website operator: it keeps a Deployment and a Service for each Website."""

import datetime
import logging
import threading

import kopf
import kubernetes
from kubernetes.client.exceptions import ApiException

GROUP = ("web.example.com", "v1", "websites")

# A timer runs at the same time as the other handlers of its object.
lock = threading.Lock()


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.persistence.finalizer = "web.example.com/finalizer"
    settings.posting.level = logging.WARNING


@kopf.on.login()
def login(**kwargs):
    # The client of the handlers uses the same kubeconfig.
    kubernetes.config.load_kube_config()
    return kopf.login_via_client(**kwargs)


# kopf does not watch the objects that an operator owns: the timer creates them again, and reads their status.
@kopf.on.resume(*GROUP, backoff=1)
@kopf.on.create(*GROUP, backoff=1)
@kopf.on.update(*GROUP, field="spec", backoff=1)
@kopf.timer(*GROUP, interval=2, backoff=1)
def reconcile(name, namespace, spec, meta, status, patch, **_):
    with lock:
        # A timer's `spec` and `meta` change with the object, so that the generation must be read first.
        generation, image, replicas, port = meta["generation"], spec["image"], spec["replicas"], spec["port"]
        labels = {"app": name}
        container = {
            "name": "web",
            "image": image,
            "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        }
        apps, core = kubernetes.client.AppsV1Api(), kubernetes.client.CoreV1Api()
        deployment = ensure(
            apps.patch_namespaced_deployment,
            apps.create_namespaced_deployment,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                },
            },
        )
        ensure(
            core.patch_namespaced_service,
            core.create_namespaced_service,
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {
                    "selector": labels,
                    "ports": [{"name": "http", "port": port, "targetPort": "http", "protocol": "TCP"}],
                },
            },
        )
        wanted = {
            "observedGeneration": generation,
            "replicas": replicas,
            "readyReplicas": deployment.status.ready_replicas or 0,
            "selector": f"app={name}",
            "conditions": [ready(status, generation, f"image {image}")],
        }
        patch.status.update({key: value for key, value in wanted.items() if status.get(key) != value})


@kopf.on.delete(*GROUP, backoff=1)
def record(name, namespace, **_):
    """Records the deletion outside of the objects that the garbage collector knows."""
    body = {"metadata": {"name": f"{name}-deleted", "namespace": namespace}}
    try:
        kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, body)
    except ApiException as error:
        if "AlreadyExists" not in str(error.body):
            raise


def ensure(update, create, body):
    """Patches an object that the Website owns, or creates it."""
    kopf.adopt(body)
    name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
    try:
        # A strategic merge patch would keep the old port beside the new one.
        return update(name, namespace, body, _content_type="application/merge-patch+json")
    except ApiException as error:
        if error.status != 404:
            raise
        return create(namespace, body)


def ready(status, generation, message):
    """Returns the condition, with the time of its last transition."""
    found = next((it for it in status.get("conditions", []) if it["type"] == "Ready"), {})
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Reconciled",
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": found.get("lastTransitionTime", now),
    }
