package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.config.LeaderElectionConfigurationBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.api.reconciler.Workflow;
import io.javaoperatorsdk.operator.api.reconciler.dependent.Dependent;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** An operator of the Java Operator SDK with a ConfigMap as dependent resource. */
class OperatorTest extends Base {
  public static class Config extends CRUDKubernetesDependentResource<ConfigMap, Widget> {
    @Override
    protected ConfigMap desired(Widget widget, Context<Widget> context) {
      return new ConfigMapBuilder().withNewMetadata().withName(widget.getMetadata().getName()).withNamespace(widget.getMetadata().getNamespace()).endMetadata()
          .withData(Map.of("color", widget.getSpec().color)).build();
    }
  }

  @Workflow(dependents = @Dependent(type = Config.class))
  @ControllerConfiguration(name = "widget", finalizerName = "fabric8.example.com/finalizer")
  public static class WidgetReconciler implements Reconciler<Widget>, Cleaner<Widget> {
    final List<String> cleaned = new CopyOnWriteArrayList<>();

    @Override
    public UpdateControl<Widget> reconcile(Widget widget, Context<Widget> context) {
      if (widget.getStatus() == null) {
        widget.setStatus(new Widget.Status());
      }
      widget.getStatus().phase = "Ready " + context.getSecondaryResource(ConfigMap.class).orElseThrow().getData().get("color");
      widget.getStatus().observedGeneration = widget.getMetadata().getGeneration();
      return UpdateControl.patchStatus(widget);
    }

    @Override
    public DeleteControl cleanup(Widget widget, Context<Widget> context) {
      cleaned.add(widget.getMetadata().getName());
      return DeleteControl.defaultDelete();
    }
  }

  Operator operator;
  WidgetReconciler reconciler;

  @BeforeEach
  void start() throws Exception {
    installWidgets();
    reconciler = new WidgetReconciler();
    operator = new Operator(o -> o.withKubernetesClient(client).withCloseClientOnStop(false).withCacheSyncTimeout(Duration.ofSeconds(10))
        // By default the operator ends the process when an informer stops.
        .withInformerStoppedHandler((informer, error) -> {
        })
        
        // By default the operator ends the process when it stops leading.
        .withLeaderElectionConfiguration(LeaderElectionConfigurationBuilder.aLeaderElectionConfiguration("widget-operator")
            .withLeaseNamespace(ns).withIdentity("me").withExitOnStopLeading(false).build()));
    operator.register(reconciler, o -> o.settingNamespace(ns));
    operator.start();
  }

  @AfterEach
  void stop() {
    if (operator != null) {
      operator.stop();
    }
    for (var widget : client.resources(Widget.class).inNamespace(ns).list().getItems()) {
      client.resource(widget).edit(w -> {
        w.getMetadata().setFinalizers(List.of());
        return w;
      });
    }
  }

  Widget current() {
    return client.resources(Widget.class).inNamespace(ns).withName("w").get();
  }

  ConfigMap config() {
    return client.configMaps().inNamespace(ns).withName("w").get();
  }

  void created() throws Exception {
    client.resource(widget("w", "red")).create();
    until(() -> current().getStatus() != null && "Ready red".equals(current().getStatus().phase));
  }

  @Test
  void takesTheLease() throws Exception {
    until(() -> {
      var lease = client.leases().inNamespace(ns).withName("widget-operator").get();
      return lease != null && "me".equals(lease.getSpec().getHolderIdentity());
    });
  }

  @Test
  void createsTheDependentAndTheStatus() throws Exception {
    created();
    assertEquals("red", config().getData().get("color"));
    assertEquals("Widget", config().getMetadata().getOwnerReferences().get(0).getKind());
    assertEquals(List.of("fabric8.example.com/finalizer"), current().getMetadata().getFinalizers());
  }

  @Test
  void updatesTheDependentAndTheStatus() throws Exception {
    created();
    client.resources(Widget.class).inNamespace(ns).withName("w").edit(w -> {
      w.getSpec().color = "blue";
      return w;
    });
    until(() -> "Ready blue".equals(current().getStatus().phase) && current().getStatus().observedGeneration.equals(current().getMetadata().getGeneration()));
    assertEquals("blue", config().getData().get("color"));
  }

  @Test
  void revertsAChangeOfTheDependent() throws Exception {
    created();
    client.configMaps().inNamespace(ns).withName("w").edit(c -> new ConfigMapBuilder(c).addToData("color", "wrong").build());
    until(() -> "red".equals(config().getData().get("color")));
  }

  @Test
  void createsADeletedDependentAgain() throws Exception {
    created();
    String uid = config().getMetadata().getUid();
    client.configMaps().inNamespace(ns).withName("w").delete();
    until(() -> config() != null && !config().getMetadata().getUid().equals(uid));
  }

  @Test
  void cleansUpOnDeletion() throws Exception {
    created();
    client.resources(Widget.class).inNamespace(ns).withName("w").delete();
    until(() -> current() == null);
    assertTrue(reconciler.cleaned.contains("w"));
    until(() -> config() == null);
  }
}
