package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ConfigMapList;
import io.fabric8.kubernetes.api.model.DeletionPropagation;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.OwnerReferenceBuilder;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.SecretBuilder;
import io.fabric8.kubernetes.api.model.ServiceAccountBuilder;
import io.fabric8.kubernetes.api.model.ServiceBuilder;
import io.fabric8.kubernetes.api.model.authorization.v1.SelfSubjectAccessReviewBuilder;
import io.fabric8.kubernetes.api.model.batch.v1.JobBuilder;
import io.fabric8.kubernetes.api.model.coordination.v1.LeaseBuilder;
import io.fabric8.kubernetes.api.model.networking.v1.IngressBuilder;
import io.fabric8.kubernetes.api.model.rbac.RoleBuilder;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ClientTest extends Base {
  static final PatchContext SERVER_SIDE = new PatchContext.Builder().withPatchType(PatchType.SERVER_SIDE_APPLY).withFieldManager("one").build();

  int code(org.junit.jupiter.api.function.Executable call) {
    return assertThrows(KubernetesClientException.class, call).getCode();
  }

  @Test
  void version() {
    assertEquals("1", client.getKubernetesVersion().getMajor());
  }

  @Test
  void discovery() {
    assertTrue(client.hasApiGroup("apps", true));
    assertTrue(client.supports("networking.k8s.io/v1", "Ingress"));
    assertFalse(client.supports("example.com/v1", "Nothing"));
  }

  @Test
  void configMapCrud() {
    var created = client.resource(configMap("a", "k", "1")).create();
    assertNotNull(created.getMetadata().getUid());
    var edited = client.configMaps().inNamespace(ns).withName("a").edit(c -> new ConfigMapBuilder(c).addToData("l", "2").build());
    assertEquals(Map.of("k", "1", "l", "2"), edited.getData());
    edited.setData(Map.of("m", "3"));
    assertEquals(Map.of("m", "3"), client.resource(edited).update().getData());
    assertEquals(1, client.configMaps().inNamespace(ns).withName("a").delete().size());
    assertNull(client.configMaps().inNamespace(ns).withName("a").get());
  }

  @Test
  void secretStringData() {
    var created = client.resource(new SecretBuilder().withNewMetadata().withName("s").withNamespace(ns).endMetadata().addToStringData("p", "hidden").build()).create();
    assertEquals("hidden", new String(Base64.getDecoder().decode(created.getData().get("p")), StandardCharsets.UTF_8));
    assertEquals("Opaque", created.getType());
  }

  @Test
  void serviceDefaults() {
    var created = client.resource(new ServiceBuilder().withNewMetadata().withName("web").withNamespace(ns).endMetadata()
        .withNewSpec().addToSelector("app", "web").addNewPort().withPort(80).endPort().endSpec().build()).create();
    assertEquals("ClusterIP", created.getSpec().getType());
    assertNotNull(created.getSpec().getClusterIP());
    assertEquals(80, created.getSpec().getPorts().get(0).getTargetPort().getIntVal());
  }

  @Test
  void podDefaults() {
    var created = client.resource(new PodBuilder().withNewMetadata().withName("p").withNamespace(ns).endMetadata()
        .withNewSpec().addNewContainer().withName("c").withImage("busybox").endContainer().endSpec().build()).create();
    assertEquals("Always", created.getSpec().getRestartPolicy());
    assertEquals("Always", created.getSpec().getContainers().get(0).getImagePullPolicy());
    client.pods().inNamespace(ns).withName("p").withGracePeriod(0).delete();
  }

  @Test
  void deploymentDefaults() {
    var created = client.resource(deployment("web")).create();
    assertEquals("RollingUpdate", created.getSpec().getStrategy().getType());
    assertEquals(600, created.getSpec().getProgressDeadlineSeconds());
    assertEquals(1, created.getMetadata().getGeneration());
  }

  @Test
  void deploymentScale() {
    client.resource(deployment("web")).create();
    assertEquals(3, client.apps().deployments().inNamespace(ns).withName("web").scale(3).getSpec().getReplicas());
    assertEquals("app=web", client.apps().deployments().inNamespace(ns).withName("web").scale().getStatus().getSelector());
  }

  @Test
  void deploymentImage() {
    client.resource(deployment("web")).create();
    var changed = client.apps().deployments().inNamespace(ns).withName("web").rolling().updateImage("nginx:1.30");
    assertEquals("nginx:1.30", changed.getSpec().getTemplate().getSpec().getContainers().get(0).getImage());
  }

  @Test
  void jobDefaults() {
    var created = client.resource(new JobBuilder().withNewMetadata().withName("j").withNamespace(ns).endMetadata()
        .withNewSpec().withNewTemplate().withNewSpec().withRestartPolicy("Never").addNewContainer().withName("c").withImage("busybox").endContainer().endSpec().endTemplate().endSpec()
        .build()).create();
    assertEquals(6, created.getSpec().getBackoffLimit());
    assertEquals(created.getMetadata().getUid(), created.getSpec().getSelector().getMatchLabels().get("batch.kubernetes.io/controller-uid"));
  }

  @Test
  void roleAndIngressAndServiceAccount() {
    client.resource(new RoleBuilder().withNewMetadata().withName("r").withNamespace(ns).endMetadata()
        .addNewRule().withApiGroups("").withResources("pods").withVerbs("get").endRule().build()).create();
    client.resource(new IngressBuilder().withNewMetadata().withName("i").withNamespace(ns).endMetadata()
        .withNewSpec().withNewDefaultBackend().withNewService().withName("web").withNewPort().withNumber(80).endPort().endService().endDefaultBackend().endSpec().build()).create();
    client.resource(new ServiceAccountBuilder().withNewMetadata().withName("sa").withNamespace(ns).endMetadata().build()).create();
    assertEquals(1, client.rbac().roles().inNamespace(ns).list().getItems().size());
    assertEquals(1, client.network().v1().ingresses().inNamespace(ns).list().getItems().size());
  }

  @Test
  void selfSubjectAccessReview() {
    var review = client.authorization().v1().selfSubjectAccessReview().create(new SelfSubjectAccessReviewBuilder()
        .withNewSpec().withNewResourceAttributes().withVerb("get").withResource("pods").endResourceAttributes().endSpec().build());
    assertTrue(review.getStatus().getAllowed());
  }

  @Test
  void loadAndServerSideApplyOfYaml() {
    String yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y1}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: y2}\n";
    var items = client.load(new ByteArrayInputStream(yaml.getBytes(StandardCharsets.UTF_8))).inNamespace(ns).serverSideApply();
    assertEquals(2, items.size());
    assertNotNull(client.configMaps().inNamespace(ns).withName("y2").get());
  }

  @Test
  void createOrReplace() {
    client.resource(configMap("a", "k", "1")).create();
    var replaced = client.resource(configMap("a", "k", "2")).createOr(r -> r.update());
    assertEquals("2", replaced.getData().get("k"));
  }

  @Test
  void serverSideApply() {
    client.resource(configMap("a", "k", "1", "l", "1")).patch(SERVER_SIDE);
    var applied = client.resource(configMap("a", "k", "2")).patch(SERVER_SIDE);
    assertEquals(Map.of("k", "2"), applied.getData());
    assertEquals("Apply", applied.getMetadata().getManagedFields().get(0).getOperation());
  }

  @Test
  void serverSideApplyConflict() {
    client.resource(configMap("a", "k", "1")).patch(SERVER_SIDE);
    var other = new PatchContext.Builder().withPatchType(PatchType.SERVER_SIDE_APPLY).withFieldManager("two");
    assertEquals(409, code(() -> client.resource(configMap("a", "k", "2")).patch(other.withForce(false).build())));
    assertEquals("2", client.resource(configMap("a", "k", "2")).patch(other.withForce(true).build()).getData().get("k"));
  }

  @Test
  void jsonPatch() {
    client.resource(configMap("a", "k", "1")).create();
    var patched = client.configMaps().inNamespace(ns).withName("a").patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"add\",\"path\":\"/data/l\",\"value\":\"2\"}]");
    assertEquals(Map.of("k", "1", "l", "2"), patched.getData());
  }

  @Test
  void jsonMergePatch() {
    client.resource(configMap("a", "k", "1")).create();
    var patched = client.configMaps().inNamespace(ns).withName("a").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"k\":null,\"l\":\"2\"}}");
    assertEquals(Map.of("l", "2"), patched.getData());
  }

  @Test
  void strategicMergePatch() {
    client.resource(deployment("web")).create();
    var patched = client.apps().deployments().inNamespace(ns).withName("web").patch(PatchContext.of(PatchType.STRATEGIC_MERGE),
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"side\",\"image\":\"busybox\"}]}}}}");
    assertEquals(2, patched.getSpec().getTemplate().getSpec().getContainers().size());
  }

  @Test
  void statusSubresource() {
    client.resource(deployment("web")).create();
    var patched = client.apps().deployments().inNamespace(ns).withName("web").editStatus(d -> {
      d.getStatus().setObservedGeneration(1L);
      d.getStatus().setCollisionCount(7);
      return d;
    });
    assertEquals(7, patched.getStatus().getCollisionCount());
    assertEquals(1, patched.getMetadata().getGeneration());
  }

  @Test
  void errorNotFound() {
    assertEquals(404, code(() -> client.resource(configMap("none")).update()));
  }

  @Test
  void errorAlreadyExists() {
    client.resource(configMap("a")).create();
    var error = assertThrows(KubernetesClientException.class, () -> client.resource(configMap("a")).create());
    assertEquals(409, error.getCode());
    assertEquals("AlreadyExists", error.getStatus().getReason());
  }

  @Test
  void errorConflict() {
    var old = client.resource(configMap("a")).create();
    client.configMaps().inNamespace(ns).withName("a").edit(c -> new ConfigMapBuilder(c).addToData("x", "1").build());
    var error = assertThrows(KubernetesClientException.class, () -> client.resource(old).lockResourceVersion().update());
    assertEquals(409, error.getCode());
    assertEquals("Conflict", error.getStatus().getReason());
  }

  @Test
  void errorInvalid() {
    var error = assertThrows(KubernetesClientException.class, () -> client.resource(configMap("Not_A_Name")).create());
    assertEquals(422, error.getCode());
    assertEquals("metadata.name", error.getStatus().getDetails().getCauses().get(0).getField());
  }

  @Test
  void deleteWithResourceVersion() {
    var old = client.resource(configMap("a")).create();
    client.configMaps().inNamespace(ns).withName("a").edit(c -> new ConfigMapBuilder(c).addToData("x", "1").build());
    assertEquals(409, code(() -> client.resource(old).lockResourceVersion(old.getMetadata().getResourceVersion()).delete()));
  }

  @Test
  void dryRun() {
    client.resource(configMap("a")).dryRun().create();
    assertNull(client.configMaps().inNamespace(ns).withName("a").get());
  }

  @Test
  void listWithLimit() {
    for (int i = 0; i < 5; i++) {
      client.resource(configMap("page-" + i)).create();
    }
    List<String> names = new ArrayList<>();
    String token = null;
    int pages = 0;
    do {
      ConfigMapList page = client.configMaps().inNamespace(ns).withLabel("app", "test").list(new ListOptionsBuilder().withLimit(2L).withContinue(token).build());
      page.getItems().forEach(c -> names.add(c.getMetadata().getName()));
      token = page.getMetadata().getContinue();
      pages++;
    } while (token != null && !token.isEmpty());
    assertEquals(List.of("page-0", "page-1", "page-2", "page-3", "page-4"), names);
    assertEquals(3, pages);
  }

  @Test
  void selectors() {
    client.resource(configMap("a")).create();
    client.resource(configMap("b")).create();
    assertEquals(1, client.configMaps().inNamespace(ns).withLabelIn("app", "test", "x").withField("metadata.name", "b").list().getItems().size());
    assertEquals(2, client.configMaps().inNamespace(ns).withLabel("app").withoutLabel("none").list().getItems().size());
    assertTrue(client.configMaps().inAnyNamespace().withLabel("app", "test").list().getItems().size() >= 2);
  }

  @Test
  void deleteCollection() {
    client.resource(configMap("a")).create();
    client.resource(configMap("b")).create();
    client.configMaps().inNamespace(ns).withLabel("app", "test").delete();
    assertTrue(client.configMaps().inNamespace(ns).withLabel("app", "test").list().getItems().isEmpty());
  }

  @Test
  void finalizer() throws Exception {
    client.resource(new ConfigMapBuilder(configMap("a")).editMetadata().addToFinalizers("example.com/hold").endMetadata().build()).create();
    client.configMaps().inNamespace(ns).withName("a").delete();
    assertTrue(client.configMaps().inNamespace(ns).withName("a").get().isMarkedForDeletion());
    client.configMaps().inNamespace(ns).withName("a").edit(c -> {
      c.removeFinalizer("example.com/hold");
      return c;
    });
    until(() -> client.configMaps().inNamespace(ns).withName("a").get() == null);
  }

  @Test
  void ownerReference() throws Exception {
    var owner = client.resource(configMap("owner")).create();
    var reference = new OwnerReferenceBuilder().withApiVersion("v1").withKind("ConfigMap").withName("owner").withUid(owner.getMetadata().getUid()).build();
    client.resource(new ConfigMapBuilder(configMap("owned")).editMetadata().addToOwnerReferences(reference).endMetadata().build()).create();
    client.configMaps().inNamespace(ns).withName("owner").withPropagationPolicy(DeletionPropagation.FOREGROUND).delete();
    until(() -> client.configMaps().inNamespace(ns).withName("owned").get() == null);
    until(() -> client.configMaps().inNamespace(ns).withName("owner").get() == null);
  }

  @Test
  void namespaceDeletion() throws Exception {
    client.resource(configMap("a")).create();
    client.namespaces().withName(ns).delete();
    until(() -> client.namespaces().withName(ns).get() == null);
  }

  static Watcher<ConfigMap> collect(List<String> events) {
    return new Watcher<>() {
      @Override
      public void eventReceived(Action action, ConfigMap c) {
        events.add(action + " " + c.getMetadata().getName());
      }

      @Override
      public void onClose(WatcherException cause) {
        events.add("CLOSED " + cause.getMessage());
      }
    };
  }

  void changes() {
    client.resource(configMap("w")).create();
    client.configMaps().inNamespace(ns).withName("w").edit(c -> new ConfigMapBuilder(c).addToData("x", "1").build());
    client.configMaps().inNamespace(ns).withName("w").delete();
  }

  @Test
  void watchByWebSocket() throws Exception {
    List<String> events = Collections.synchronizedList(new ArrayList<>());
    try (var watch = client.configMaps().inNamespace(ns).withLabel("app", "test").watch(collect(events))) {
      changes();
      until(() -> events.equals(List.of("ADDED w", "MODIFIED w", "DELETED w")));
    }
  }

  @Test
  void watchFromResourceVersion() throws Exception {
    String version = client.configMaps().inNamespace(ns).list().getMetadata().getResourceVersion();
    changes();
    List<String> events = Collections.synchronizedList(new ArrayList<>());
    try (var watch = client.configMaps().inNamespace(ns).withLabel("app", "test").watch(new ListOptionsBuilder().withResourceVersion(version).build(), collect(events))) {
      until(() -> events.equals(List.of("ADDED w", "MODIFIED w", "DELETED w")));
    }
  }

  @Test
  void watchOfOneObject() throws Exception {
    client.resource(configMap("other")).create();
    List<String> events = Collections.synchronizedList(new ArrayList<>());
    try (var watch = client.configMaps().inNamespace(ns).withName("w").watch(collect(events))) {
      changes();
      until(() -> events.equals(List.of("ADDED w", "MODIFIED w", "DELETED w")));
    }
  }

  @Test
  void informer() throws Exception {
    List<String> events = Collections.synchronizedList(new ArrayList<>());
    client.resource(configMap("first")).create();
    try (var informer = client.configMaps().inNamespace(ns).withLabel("app", "test").inform(new ResourceEventHandler<>() {
      @Override
      public void onAdd(ConfigMap c) {
        events.add("add " + c.getMetadata().getName());
      }

      @Override
      public void onUpdate(ConfigMap before, ConfigMap c) {
        events.add("update " + c.getMetadata().getName());
      }

      @Override
      public void onDelete(ConfigMap c, boolean unknown) {
        events.add("delete " + c.getMetadata().getName());
      }
    })) {
      assertEquals(1, informer.getIndexer().list().size());
      changes();
      until(() -> events.equals(List.of("add first", "add w", "update w", "delete w")));
      assertTrue(informer.isWatching());
    }
  }

  @Test
  void waitUntilCondition() throws Exception {
    var waiter = new Thread(() -> {
      try {
        Thread.sleep(500);
      } catch (InterruptedException e) {
        return;
      }
      client.resource(configMap("w", "ready", "yes")).create();
    });
    waiter.start();
    var found = client.configMaps().inNamespace(ns).withName("w").waitUntilCondition(c -> c != null && c.getData().containsKey("ready"), 15, TimeUnit.SECONDS);
    assertEquals("yes", found.getData().get("ready"));
    waiter.join();
  }

  @Test
  void lease() {
    client.resource(new LeaseBuilder().withNewMetadata().withName("l").withNamespace(ns).endMetadata()
        .withNewSpec().withHolderIdentity("me").withLeaseDurationSeconds(5).endSpec().build()).create();
    assertEquals("me", client.leases().inNamespace(ns).withName("l").get().getSpec().getHolderIdentity());
  }

  @Test
  void leaderElection() throws Exception {
    var started = new CountDownLatch(1);
    var stopped = new CountDownLatch(1);
    var elector = client.leaderElector().withConfig(new LeaderElectionConfigBuilder().withName("test")
        .withLeaseDuration(Duration.ofSeconds(5)).withRenewDeadline(Duration.ofSeconds(3)).withRetryPeriod(Duration.ofSeconds(1)).withReleaseOnCancel(true)
        .withLock(new LeaseLock(ns, "lock", "me")).withLeaderCallbacks(new LeaderCallbacks(started::countDown, stopped::countDown, name -> {
        })).build()).build();
    var run = elector.start();
    assertTrue(started.await(15, TimeUnit.SECONDS));
    assertEquals("me", client.leases().inNamespace(ns).withName("lock").get().getSpec().getHolderIdentity());
    run.cancel(true);
    assertTrue(stopped.await(15, TimeUnit.SECONDS));
  }

  @Test
  void crdIsInstalled() throws Exception {
    installWidgets();
    assertEquals("Widget", client.apiextensions().v1().customResourceDefinitions().withName("widgets.fabric8.example.com").get().getStatus().getAcceptedNames().getKind());
  }

  @Test
  void customResource() throws Exception {
    installWidgets();
    var created = client.resource(widget("a", "red")).create();
    assertEquals(1, created.getSpec().replicas);
    created.getSpec().color = "blue";
    assertEquals(2, client.resource(created).update().getMetadata().getGeneration());
    assertEquals(1, client.resources(Widget.class).inNamespace(ns).list().getItems().size());
    client.resource(created).delete();
    until(() -> client.resources(Widget.class).inNamespace(ns).withName("a").get() == null);
  }

  @Test
  void customResourceStatus() throws Exception {
    installWidgets();
    var created = client.resource(widget("a", "red")).create();
    created.setStatus(new Widget.Status());
    created.getStatus().phase = "Ready";
    var updated = client.resource(created).updateStatus();
    assertEquals("Ready", updated.getStatus().phase);
    assertEquals(1, updated.getMetadata().getGeneration());
    updated.getStatus().phase = "Ignored";
    assertEquals("Ready", client.resource(updated).update().getStatus().phase);
  }

  @Test
  void customResourceInvalid() throws Exception {
    installWidgets();
    var error = assertThrows(KubernetesClientException.class, () -> client.resource(widget("a", "much too long")).create());
    assertEquals(422, error.getCode());
    assertEquals("spec.color", error.getStatus().getDetails().getCauses().get(0).getField());
  }

  @Test
  void customResourceScale() throws Exception {
    installWidgets();
    client.resource(widget("a", "red")).create();
    client.resources(Widget.class).inNamespace(ns).withName("a").scale(4);
    assertEquals(4, client.resources(Widget.class).inNamespace(ns).withName("a").get().getSpec().replicas);
  }

  @Test
  void customResourceInformer() throws Exception {
    installWidgets();
    try (var informer = client.resources(Widget.class).inNamespace(ns).inform()) {
      client.resource(widget("a", "red")).create();
      until(() -> informer.getIndexer().list().size() == 1);
      client.resources(Widget.class).inNamespace(ns).withName("a").delete();
      until(() -> informer.getIndexer().list().isEmpty());
    }
  }

  @Test
  void genericResource() throws Exception {
    installWidgets();
    var generic = new GenericKubernetesResource();
    generic.setApiVersion("fabric8.example.com/v1");
    generic.setKind("Widget");
    generic.setMetadata(widget("g", "x").getMetadata());
    generic.setAdditionalProperty("spec", Map.of("color", "red"));
    var created = client.resource(generic).create();
    assertEquals("red", created.get("spec", "color"));
    assertEquals(1, client.genericKubernetesResources("fabric8.example.com/v1", "Widget").inNamespace(ns).list().getItems().size());
    assertEquals("g", client.genericKubernetesResources("fabric8.example.com/v1", "Widget").inNamespace(ns).withName("g").get().getMetadata().getName());
  }
}
