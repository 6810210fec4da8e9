package com.example;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinitionBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.JSONSchemaPropsBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import com.fasterxml.jackson.databind.node.IntNode;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Gives each test a client and a namespace of its own. */
abstract class Base {
  KubernetesClient client;
  String ns;

  @BeforeEach
  void open() {
    client = new KubernetesClientBuilder().build();
    ns = "fabric8-" + UUID.randomUUID().toString().substring(0, 8);
    client.resource(new NamespaceBuilder().withNewMetadata().withName(ns).endMetadata().build()).create();
  }

  @AfterEach
  void close() {
    client.namespaces().withName(ns).delete();
    client.close();
  }

  static void until(Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!condition.call()) {
      if (System.nanoTime() > end) {
        throw new AssertionError("the condition was not met within 20 seconds");
      }
      Thread.sleep(100);
    }
  }

  ConfigMap configMap(String name, String... data) {
    var builder = new ConfigMapBuilder().withNewMetadata().withName(name).withNamespace(ns).addToLabels("app", "test").endMetadata();
    for (int i = 0; i + 1 < data.length; i += 2) {
      builder.addToData(data[i], data[i + 1]);
    }
    return builder.build();
  }

  Deployment deployment(String name) {
    return new DeploymentBuilder()
        .withNewMetadata().withName(name).withNamespace(ns).endMetadata()
        .withNewSpec().withReplicas(1)
        .withNewSelector().withMatchLabels(Map.of("app", name)).endSelector()
        .withNewTemplate().withNewMetadata().withLabels(Map.of("app", name)).endMetadata()
        .withNewSpec().addNewContainer().withName("web").withImage("nginx:1.29").endContainer().endSpec()
        .endTemplate().endSpec().build();
  }

  static CustomResourceDefinition widgets() {
    var color = new JSONSchemaPropsBuilder().withType("string").withMaxLength(10L).build();
    var replicas = new JSONSchemaPropsBuilder().withType("integer").withMinimum(0.0).withDefault(IntNode.valueOf(1)).build();
    var text = new JSONSchemaPropsBuilder().withType("string").build();
    var number = new JSONSchemaPropsBuilder().withType("integer").build();
    var spec = new JSONSchemaPropsBuilder().withType("object").withRequired("color").withProperties(Map.of("color", color, "replicas", replicas)).build();
    var status = new JSONSchemaPropsBuilder().withType("object").withProperties(Map.of("phase", text, "observedGeneration", number, "replicas", number)).build();
    return new CustomResourceDefinitionBuilder()
        .withNewMetadata().withName("widgets.fabric8.example.com").endMetadata()
        .withNewSpec().withGroup("fabric8.example.com").withScope("Namespaced")
        .withNewNames().withPlural("widgets").withSingular("widget").withKind("Widget").endNames()
        .addNewVersion().withName("v1").withServed(true).withStorage(true)
        .withNewSubresources().withNewStatus().endStatus()
        .withNewScale().withSpecReplicasPath(".spec.replicas").withStatusReplicasPath(".status.replicas").endScale().endSubresources()
        .withNewSchema().withNewOpenAPIV3Schema().withType("object").withProperties(Map.of("spec", spec, "status", status)).endOpenAPIV3Schema().endSchema()
        .endVersion().endSpec().build();
  }

  void installWidgets() throws Exception {
    if (client.apiextensions().v1().customResourceDefinitions().withName("widgets.fabric8.example.com").get() == null) {
      client.resource(widgets()).create();
    }
    until(() -> client.apiextensions().v1().customResourceDefinitions().withName("widgets.fabric8.example.com").get()
        .getStatus() != null && client.apiextensions().v1().customResourceDefinitions().withName("widgets.fabric8.example.com").get()
        .getStatus().getConditions().stream().anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True")));
    // The endpoint is served a moment after that.
    until(() -> client.getApiResources("fabric8.example.com/v1") != null);
  }

  Widget widget(String name, String color) {
    var widget = new Widget();
    widget.getMetadata().setName(name);
    widget.getMetadata().setNamespace(ns);
    widget.getSpec().color = color;
    return widget;
  }
}
