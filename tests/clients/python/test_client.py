"""Tests of the Python client against an API server without kubelets: each test has its own namespace."""

import asyncio
import base64
import datetime
import threading
import time
import uuid

import pytest
import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

LABELS = {"app": "web"}


@pytest.fixture(scope="module", autouse=True)
def configuration():
    config.load_kube_config()


@pytest.fixture
def core():
    return client.CoreV1Api()


@pytest.fixture
def apps():
    return client.AppsV1Api()


@pytest.fixture
def custom():
    return client.CustomObjectsApi()


@pytest.fixture
def ns(core):
    name = f"python-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": name}})
    yield name
    core.delete_namespace(name)


@pytest.fixture(scope="module")
def crd(configuration):
    api = client.ApiextensionsV1Api()
    group = f"g{uuid.uuid4().hex[:6]}.example.com"
    definition = {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": True, "storage": True,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["color"], "properties": {
                        "color": {"type": "string", "enum": ["red", "blue"]},
                        "size": {"type": "integer", "default": 1, "maximum": 5}}},
                    "status": {"type": "object", "properties": {"size": {"type": "integer"}, "phase": {"type": "string"}}}}}},
            }],
        },
    }
    api.create_custom_resource_definition(definition)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = api.read_custom_resource_definition(f"widgets.{group}")
        if any(c.type == "Established" and c.status == "True" for c in found.status.conditions or []):
            break
        time.sleep(0.2)
    time.sleep(1)
    yield group
    api.delete_custom_resource_definition(f"widgets.{group}")


def config_map(name, data=None, labels=None):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data or {})


def deployment(name="web", replicas=1):
    return client.V1Deployment(
        metadata=client.V1ObjectMeta(name=name, labels=LABELS),
        spec=client.V1DeploymentSpec(
            replicas=replicas,
            selector=client.V1LabelSelector(match_labels=LABELS),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=LABELS),
                spec=client.V1PodSpec(containers=[client.V1Container(name="web", image="nginx:1.29")]),
            ),
        ),
    )


def pod(name):
    return {"metadata": {"name": name, "labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "busybox", "command": ["sleep", "1"]}]}}


def until(f, seconds=15):
    deadline = time.monotonic() + seconds
    while True:
        found = f()
        if found or time.monotonic() > deadline:
            assert found
            return found
        time.sleep(0.2)


def is_gone(read, *arguments):
    try:
        read(*arguments)
    except ApiException as error:
        return error.status == 404
    return False


def test_version():
    assert client.VersionApi().get_code().major == "1"


def test_api_groups():
    names = [group.name for group in client.ApisApi().get_api_versions().groups]
    assert {"apps", "batch", "coordination.k8s.io", "networking.k8s.io", "rbac.authorization.k8s.io", "policy", "autoscaling"} <= set(names)


def test_core_resources(core):
    names = {resource.name for resource in core.get_api_resources().resources}
    assert {"pods", "pods/status", "nodes", "services", "secrets", "events", "persistentvolumes", "replicationcontrollers"} <= names


def test_config_map(core, ns):
    created = core.create_namespaced_config_map(ns, config_map("a", {"k": "1"}))
    assert created.metadata.uid and created.metadata.resource_version and created.metadata.creation_timestamp
    assert core.read_namespaced_config_map("a", ns).data == {"k": "1"}
    core.patch_namespaced_config_map("a", ns, {"data": {"k": "2", "l": "3"}})
    created = core.read_namespaced_config_map("a", ns)
    created.data = {"m": "4"}
    assert core.replace_namespaced_config_map("a", ns, created).data == {"m": "4"}
    core.delete_namespaced_config_map("a", ns)
    assert is_gone(core.read_namespaced_config_map, "a", ns)


def test_secret(core, ns):
    created = core.create_namespaced_secret(ns, {"metadata": {"name": "s"}, "stringData": {"password": "hidden"}})
    assert base64.b64decode(created.data["password"]) == b"hidden"
    assert created.type == "Opaque" and created.string_data is None


def test_service(core, ns):
    created = core.create_namespaced_service(ns, {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": 8080}]}})
    assert created.spec.type == "ClusterIP" and created.spec.cluster_ip and created.spec.ports[0].protocol == "TCP"
    patched = core.patch_namespaced_service("web", ns, {"spec": {"ports": [{"name": "new", "port": 80, "targetPort": 9090}]}})
    assert len(patched.spec.ports) == 1 and patched.spec.ports[0].target_port == 9090
    assert patched.spec.cluster_ip == created.spec.cluster_ip
    core.delete_namespaced_service("web", ns)
    assert is_gone(core.read_namespaced_service, "web", ns)


def test_service_account(core, ns):
    assert core.create_namespaced_service_account(ns, {"metadata": {"name": "robot"}}).metadata.name == "robot"


def test_pod(core, ns):
    created = core.create_namespaced_pod(ns, pod("p"))
    assert created.spec.restart_policy == "Always" and created.spec.containers[0].image_pull_policy == "Always"
    assert core.list_namespaced_pod(ns, label_selector="app=web").items[0].metadata.name == "p"
    core.delete_namespaced_pod("p", ns, grace_period_seconds=0)
    until(lambda: is_gone(core.read_namespaced_pod, "p", ns))


def test_pod_status(core, ns):
    core.create_namespaced_pod(ns, pod("p"))
    patched = core.patch_namespaced_pod_status("p", ns, {"status": {"message": "seen"}})
    assert patched.status.message == "seen"


def test_pod_spec_is_immutable(core, ns):
    core.create_namespaced_pod(ns, pod("p"))
    with pytest.raises(ApiException) as error:
        core.patch_namespaced_pod("p", ns, {"spec": {"restartPolicy": "Never"}})
    assert error.value.status == 422


def test_replication_controller(core, ns):
    created = core.create_namespaced_replication_controller(ns, {
        "metadata": {"name": "rc"}, "spec": {"replicas": 2, "selector": LABELS, "template": {"metadata": {"labels": LABELS}, "spec": pod("x")["spec"]}}})
    assert created.spec.replicas == 2
    core.delete_namespaced_replication_controller("rc", ns, propagation_policy="Background")
    until(lambda: is_gone(core.read_namespaced_replication_controller, "rc", ns))


def test_node(core):
    name = f"node-{uuid.uuid4().hex[:8]}"
    core.create_node({"metadata": {"name": name}})
    core.patch_node(name, {"spec": {"unschedulable": True}})
    assert core.read_node(name).spec.unschedulable is True
    assert name in [node.metadata.name for node in core.list_node().items]
    core.delete_node(name)
    assert is_gone(core.read_node, name)


def test_persistent_volume(core):
    name = f"pv-{uuid.uuid4().hex[:8]}"
    created = core.create_persistent_volume({"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}})
    assert created.spec.persistent_volume_reclaim_policy == "Retain" and created.spec.volume_mode == "Filesystem"
    core.delete_persistent_volume(name)


def test_persistent_volume_claim(core, ns):
    created = core.create_namespaced_persistent_volume_claim(ns, {"metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    assert created.spec.volume_mode == "Filesystem" and created.status.phase == "Pending"


def test_resource_quota_and_limit_range(core, ns):
    core.create_namespaced_resource_quota(ns, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "10"}}})
    core.create_namespaced_limit_range(ns, {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}})
    assert core.read_namespaced_resource_quota("q", ns).spec.hard == {"pods": "10"}


def test_event(core, ns):
    now = datetime.datetime.now(datetime.timezone.utc)
    core.create_namespaced_event(ns, client.CoreV1Event(
        metadata=client.V1ObjectMeta(generate_name="e-"), reason="Tested", message="m", type="Normal", first_timestamp=now, last_timestamp=now, count=1,
        involved_object=client.V1ObjectReference(kind="ConfigMap", name="a", namespace=ns, api_version="v1"), source=client.V1EventSource(component="test")))
    assert core.list_namespaced_event(ns, field_selector="involvedObject.name=a,reason=Tested").items
    # The typed list refuses an event without eventTime.
    listed = client.CustomObjectsApi().list_namespaced_custom_object("events.k8s.io", "v1", ns, "events")
    assert listed["items"][0]["note"] == "m"


def test_deployment(apps, ns):
    created = apps.create_namespaced_deployment(ns, deployment())
    assert created.metadata.generation == 1
    assert created.spec.strategy.type == "RollingUpdate" and created.spec.strategy.rolling_update.max_surge == "25%"
    assert created.spec.revision_history_limit == 10 and created.spec.progress_deadline_seconds == 600
    patched = apps.patch_namespaced_deployment("web", ns, {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.30"}]}}}})
    assert [c.image for c in patched.spec.template.spec.containers] == ["nginx:1.30"] and patched.metadata.generation == 2
    apps.delete_namespaced_deployment("web", ns)
    until(lambda: is_gone(apps.read_namespaced_deployment, "web", ns))


def test_deployment_scale(apps, ns):
    apps.create_namespaced_deployment(ns, deployment())
    scale = apps.read_namespaced_deployment_scale("web", ns)
    assert scale.spec.replicas == 1 and scale.status.selector == "app=web"
    apps.patch_namespaced_deployment_scale("web", ns, {"spec": {"replicas": 3}})
    assert apps.read_namespaced_deployment("web", ns).spec.replicas == 3


def test_deployment_status(apps, ns):
    apps.create_namespaced_deployment(ns, deployment(replicas=0))
    body = {"status": {"conditions": [{"type": "Tested", "status": "True", "reason": "r", "message": "m"}]}}
    patched = apps.patch_namespaced_deployment_status("web", ns, body)
    assert "Tested" in [c.type for c in patched.status.conditions] and patched.metadata.generation == 1


def test_deployment_invalid(apps, ns):
    wrong = deployment()
    wrong.spec.template.metadata.labels = {"app": "other"}
    with pytest.raises(ApiException) as error:
        apps.create_namespaced_deployment(ns, wrong)
    assert error.value.status == 422 and "`selector` does not match template `labels`" in error.value.body


def test_stateful_set(apps, ns):
    created = apps.create_namespaced_stateful_set(ns, {"metadata": {"name": "db"}, "spec": {
        "serviceName": "db", "selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": pod("x")["spec"]}}})
    assert created.spec.pod_management_policy == "OrderedReady" and created.spec.replicas == 1


def test_daemon_set(apps, ns):
    created = apps.create_namespaced_daemon_set(ns, {"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": pod("x")["spec"]}}})
    assert created.spec.update_strategy.type == "RollingUpdate"


def test_controller_revision(apps, ns):
    assert apps.create_namespaced_controller_revision(ns, {"metadata": {"name": "r"}, "revision": 1, "data": {"a": 1}}).revision == 1


def test_job(ns):
    batch = client.BatchV1Api()
    spec = dict(pod("x")["spec"], restartPolicy="Never")
    created = batch.create_namespaced_job(ns, {"metadata": {"name": "j"}, "spec": {"template": {"spec": spec}}})
    assert created.spec.completions == 1 and created.spec.backoff_limit == 6
    assert created.spec.selector.match_labels.get("batch.kubernetes.io/controller-uid") == created.metadata.uid
    batch.delete_namespaced_job("j", ns, propagation_policy="Background")
    until(lambda: is_gone(batch.read_namespaced_job, "j", ns))


def test_cron_job(ns):
    batch = client.BatchV1Api()
    spec = dict(pod("x")["spec"], restartPolicy="Never")
    created = batch.create_namespaced_cron_job(ns, {"metadata": {"name": "c"}, "spec": {
        "schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": spec}}}}})
    assert created.spec.concurrency_policy == "Allow" and created.spec.suspend is False


def test_ingress_and_network_policy(ns):
    api = client.NetworkingV1Api()
    api.create_namespaced_ingress(ns, {"metadata": {"name": "i"}, "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}})
    created = api.create_namespaced_network_policy(ns, {"metadata": {"name": "n"}, "spec": {"podSelector": {}}})
    assert created.spec.policy_types == ["Ingress"]


def test_autoscaler(ns):
    api = client.AutoscalingV2Api()
    created = api.create_namespaced_horizontal_pod_autoscaler(ns, {"metadata": {"name": "h"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3}})
    assert created.spec.min_replicas == 1 and created.spec.metrics[0].resource.name == "cpu"


def test_pod_disruption_budget(ns):
    api = client.PolicyV1Api()
    created = api.create_namespaced_pod_disruption_budget(ns, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}}})
    assert created.spec.min_available == 1


def test_rbac(ns):
    api = client.RbacAuthorizationV1Api()
    api.create_namespaced_role(ns, {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
    created = api.create_namespaced_role_binding(ns, {"metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                                                     "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": ns}]})
    assert created.subjects[0].name == "x"


def test_lease(ns):
    api = client.CoordinationV1Api()
    now = datetime.datetime.now(datetime.timezone.utc)
    api.create_namespaced_lease(ns, client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=client.V1LeaseSpec(
        holder_identity="me", lease_duration_seconds=5, acquire_time=now, renew_time=now)))
    assert api.read_namespaced_lease("l", ns).spec.renew_time == now


def test_storage_and_priority_class():
    name = f"c-{uuid.uuid4().hex[:8]}"
    storage, scheduling = client.StorageV1Api(), client.SchedulingV1Api()
    assert storage.create_storage_class({"metadata": {"name": name}, "provisioner": "x/y"}).reclaim_policy == "Delete"
    assert scheduling.create_priority_class({"metadata": {"name": name}, "value": 7}).preemption_policy == "PreemptLowerPriority"
    storage.delete_storage_class(name)
    scheduling.delete_priority_class(name)


def test_self_subject_access_review():
    created = client.AuthorizationV1Api().create_self_subject_access_review(
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}})
    assert created.status.allowed is True


def test_token_review():
    created = client.AuthenticationV1Api().create_token_review({"spec": {"token": "wrong"}})
    assert not created.status.authenticated


def test_service_account_token(core, ns):
    core.create_namespaced_service_account(ns, {"metadata": {"name": "robot"}})
    created = core.create_namespaced_service_account_token("robot", ns, {"spec": {"expirationSeconds": 3600}})
    assert created.status.token


def test_endpoint_slice(ns):
    created = client.DiscoveryV1Api().create_namespaced_endpoint_slice(ns, {
        "metadata": {"name": "e", "labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.9"]}], "ports": [{"port": 80}]})
    assert created.ports[0].protocol == "TCP"


def test_conflict(core, ns):
    old = core.create_namespaced_config_map(ns, config_map("a"))
    core.patch_namespaced_config_map("a", ns, {"data": {"x": "1"}})
    with pytest.raises(ApiException) as error:
        core.replace_namespaced_config_map("a", ns, old)
    assert error.value.status == 409 and '"reason":"Conflict"' in error.value.body


def test_already_exists(core, ns):
    core.create_namespaced_config_map(ns, config_map("a"))
    with pytest.raises(ApiException) as error:
        core.create_namespaced_config_map(ns, config_map("a"))
    assert error.value.status == 409 and '"reason":"AlreadyExists"' in error.value.body


def test_not_found(core, ns):
    with pytest.raises(ApiException) as error:
        core.read_namespaced_config_map("none", ns)
    assert error.value.status == 404 and 'configmaps \\"none\\" not found' in error.value.body


def test_invalid_name(core, ns):
    with pytest.raises(ApiException) as error:
        core.create_namespaced_config_map(ns, config_map("Not_A_Name"))
    assert error.value.status == 422


def test_namespace_not_found(core):
    with pytest.raises(ApiException) as error:
        core.create_namespaced_config_map("no-such-namespace", config_map("a"))
    assert error.value.status == 404


def test_dry_run(core, ns):
    core.create_namespaced_config_map(ns, config_map("a"), dry_run="All")
    assert is_gone(core.read_namespaced_config_map, "a", ns)


def test_generate_name(core, ns):
    created = core.create_namespaced_config_map(ns, {"metadata": {"generateName": "g-"}})
    assert created.metadata.name.startswith("g-") and len(created.metadata.name) == 7


def test_field_validation(core, ns):
    with pytest.raises(ApiException) as error:
        core.create_namespaced_config_map(ns, {"metadata": {"name": "a"}, "unknown": 1}, field_validation="Strict")
    assert error.value.status == 400 and "strict decoding error" in error.value.body


def test_limit_and_continue(core, ns):
    for i in range(5):
        core.create_namespaced_config_map(ns, config_map(f"page-{i}", labels=LABELS))
    names, token = [], None
    for _ in range(3):
        page = core.list_namespaced_config_map(ns, label_selector="app=web", limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
    assert names == [f"page-{i}" for i in range(5)] and not token


def test_selectors(core, ns):
    core.create_namespaced_config_map(ns, config_map("a", labels={"color": "red"}))
    core.create_namespaced_config_map(ns, config_map("b", labels={"color": "blue"}))
    names = lambda **kw: [item.metadata.name for item in core.list_namespaced_config_map(ns, **kw).items if item.metadata.name in "ab"]
    assert names(label_selector="color in (red,green)") == ["a"]
    assert names(label_selector="color!=red") == ["b"]
    assert names(field_selector="metadata.name=b") == ["b"]


def test_delete_collection(core, ns):
    for i in range(3):
        core.create_namespaced_config_map(ns, config_map(f"x-{i}", labels=LABELS))
    core.delete_collection_namespaced_config_map(ns, label_selector="app=web")
    assert not core.list_namespaced_config_map(ns, label_selector="app=web").items


def test_finalizer(core, ns):
    core.create_namespaced_config_map(ns, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    core.delete_namespaced_config_map("a", ns)
    assert core.read_namespaced_config_map("a", ns).metadata.deletion_timestamp
    core.patch_namespaced_config_map("a", ns, {"metadata": {"finalizers": None}})
    until(lambda: is_gone(core.read_namespaced_config_map, "a", ns))


def test_owner_reference(core, ns):
    owner = core.create_namespaced_config_map(ns, config_map("owner"))
    core.create_namespaced_secret(ns, {"metadata": {"name": "owned", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}]}})
    core.delete_namespaced_config_map("owner", ns)
    until(lambda: is_gone(core.read_namespaced_secret, "owned", ns))


def test_namespace_deletion(core):
    name = f"python-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": name}})
    core.create_namespaced_config_map(name, config_map("a"))
    core.delete_namespace(name)
    # The namespace controller retries with a backoff.
    until(lambda: is_gone(core.read_namespace, name), 45)


def test_watch(core, ns):
    events = []

    def collect():
        for event in watch.Watch().stream(core.list_namespaced_config_map, ns, label_selector="app=web", timeout_seconds=5):
            events.append((event["type"], event["object"].metadata.name))
            if len(events) == 3:
                return

    thread = threading.Thread(target=collect)
    thread.start()
    time.sleep(0.5)
    core.create_namespaced_config_map(ns, config_map("w", labels=LABELS))
    core.patch_namespaced_config_map("w", ns, {"data": {"x": "1"}})
    core.delete_namespaced_config_map("w", ns)
    thread.join(10)
    assert events == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


def test_watch_from_resource_version(core, ns):
    version = core.list_namespaced_config_map(ns).metadata.resource_version
    core.create_namespaced_config_map(ns, config_map("later", labels=LABELS))
    events = watch.Watch().stream(core.list_namespaced_config_map, ns, resource_version=version, label_selector="app=web", timeout_seconds=2)
    assert [(event["type"], event["object"].metadata.name) for event in events] == [("ADDED", "later")]


def test_watch_label_change(core, ns):
    core.create_namespaced_config_map(ns, config_map("w", labels=LABELS))
    version = core.list_namespaced_config_map(ns).metadata.resource_version
    core.patch_namespaced_config_map("w", ns, {"metadata": {"labels": {"app": "other"}}})
    events = watch.Watch().stream(core.list_namespaced_config_map, ns, resource_version=version, label_selector="app=web", timeout_seconds=2)
    assert [event["type"] for event in events] == ["DELETED"]


def test_informer(core, ns):
    seen = []
    informer = SharedInformer(core.list_namespaced_config_map, namespace=ns, label_selector="app=web")
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(kind, lambda obj, kind=kind: seen.append(kind))
    informer.start()
    try:
        time.sleep(0.5)
        core.create_namespaced_config_map(ns, config_map("i", labels=LABELS))
        core.patch_namespaced_config_map("i", ns, {"data": {"x": "1"}})
        core.delete_namespaced_config_map("i", ns)
        until(lambda: seen == ["ADDED", "MODIFIED", "DELETED"])
    finally:
        informer.stop()


def test_leader_election(core, ns):
    led = []
    election = leaderelection.LeaderElection(electionconfig.Config(
        ConfigMapLock("lock", ns, "me"), lease_duration=4, renew_deadline=3, retry_period=1, onstarted_leading=lambda: led.append(1), onstopped_leading=None))
    threading.Thread(target=election.run, daemon=True).start()
    until(lambda: led)
    assert "me" in core.read_namespaced_config_map("lock", ns).metadata.annotations["control-plane.alpha.kubernetes.io/leader"]


def test_create_from_yaml(apps, ns):
    text = yaml.safe_load_all(f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: y}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: y}}
spec:
  selector: {{matchLabels: {{app: y}}}}
  template:
    metadata: {{labels: {{app: y}}}}
    spec: {{containers: [{{name: m, image: i}}]}}
""")
    utils.create_from_yaml(client.ApiClient(), yaml_objects=list(text), namespace=ns)
    assert apps.read_namespaced_deployment("y", ns).spec.replicas == 1


def test_create_from_yaml_list(core, ns):
    text = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n}} for n in ("l1", "l2")]}
    utils.create_from_yaml(client.ApiClient(), yaml_objects=[text], namespace=ns)
    assert core.read_namespaced_config_map("l2", ns)


def test_create_from_yaml_apply(core, ns):
    text = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    for value in ("1", "2"):
        text["data"]["x"] = value
        utils.create_from_yaml(client.ApiClient(), yaml_objects=[text], namespace=ns, apply=True)
    assert core.read_namespaced_config_map("a", ns).data == {"x": "2"}


def test_custom_object(custom, crd, ns):
    body = {"apiVersion": f"{crd}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": "red"}}
    created = custom.create_namespaced_custom_object(crd, "v1", ns, "widgets", body)
    assert created["spec"]["size"] == 1
    patched = custom.patch_namespaced_custom_object(crd, "v1", ns, "widgets", "w", {"spec": {"color": "blue"}})
    assert patched["spec"]["color"] == "blue" and patched["metadata"]["generation"] == 2
    assert len(custom.list_namespaced_custom_object(crd, "v1", ns, "widgets")["items"]) == 1
    custom.delete_namespaced_custom_object(crd, "v1", ns, "widgets", "w")
    assert is_gone(custom.get_namespaced_custom_object, crd, "v1", ns, "widgets", "w")


def test_custom_object_validation(custom, crd, ns):
    body = {"apiVersion": f"{crd}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": "green", "size": 9}}
    with pytest.raises(ApiException) as error:
        custom.create_namespaced_custom_object(crd, "v1", ns, "widgets", body)
    assert error.value.status == 422
    assert 'Unsupported value: \\"green\\": supported values: \\"red\\", \\"blue\\"' in error.value.body


def test_custom_object_status_and_scale(custom, crd, ns):
    body = {"apiVersion": f"{crd}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": "red"}, "status": {"phase": "ignored"}}
    assert "status" not in custom.create_namespaced_custom_object(crd, "v1", ns, "widgets", body)
    custom.patch_namespaced_custom_object_status(crd, "v1", ns, "widgets", "w", {"status": {"phase": "Ready", "size": 1}})
    custom.patch_namespaced_custom_object_scale(crd, "v1", ns, "widgets", "w", {"spec": {"replicas": 3}})
    found = custom.get_namespaced_custom_object(crd, "v1", ns, "widgets", "w")
    assert found["status"]["phase"] == "Ready" and found["spec"]["size"] == 3


def test_crd_is_discovered(crd):
    groups = [group.name for group in client.ApisApi().get_api_versions().groups]
    assert crd in groups


def test_dynamic_custom_object(crd, ns):
    api = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version=f"{crd}/v1", kind="Widget")
    api.create(namespace=ns, body={"apiVersion": f"{crd}/v1", "kind": "Widget", "metadata": {"name": "d"}, "spec": {"color": "red"}})
    api.status.patch(namespace=ns, name="d", body={"status": {"phase": "Ready"}}, content_type="application/merge-patch+json")
    assert api.get(namespace=ns, name="d").status.phase == "Ready"


def test_dynamic_server_side_apply(ns):
    api = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"x": "1"}}
    api.server_side_apply(namespace=ns, body=body, name="s", field_manager="one")
    body["data"]["x"] = "2"
    with pytest.raises(dynamic.exceptions.ConflictError):
        api.server_side_apply(namespace=ns, body=body, name="s", field_manager="two")
    assert api.server_side_apply(namespace=ns, body=body, name="s", field_manager="two", force_conflicts=True).data.x == "2"


def test_json_patch(core, ns):
    core.create_namespaced_config_map(ns, config_map("j", {"a": "1"}))
    patched = core.patch_namespaced_config_map("j", ns, [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "2"}])
    assert patched.data == {"a": "1", "b": "2"}


def test_aio():
    from kubernetes.aio import client as aio_client, config as aio_config

    async def main():
        await aio_config.load_kube_config()
        async with aio_client.ApiClient() as api:
            names = [item.metadata.name for item in (await aio_client.CoreV1Api(api).list_namespace()).items]
            assert "default" in names

    asyncio.run(main())
