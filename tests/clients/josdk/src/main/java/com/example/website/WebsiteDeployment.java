package com.example.website;

import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import java.util.Map;

/** The web servers. */
public class WebsiteDeployment extends CRUDKubernetesDependentResource<Deployment, Website> {
  @Override
  protected Deployment desired(Website website, Context<Website> context) {
    var labels = Map.of("app", website.getMetadata().getName());
    return new DeploymentBuilder()
        .withNewMetadata()
          .withName(website.getMetadata().getName())
          .withNamespace(website.getMetadata().getNamespace())
          .withLabels(labels)
        .endMetadata()
        .withNewSpec()
          .withReplicas(website.getSpec().replicas)
          .withNewSelector().withMatchLabels(labels).endSelector()
          .withNewTemplate()
            .withNewMetadata().withLabels(labels).endMetadata()
            .withNewSpec()
              .addNewContainer()
                .withName("web")
                .withImage(website.getSpec().image)
                .addNewPort().withName("http").withContainerPort(website.getSpec().port).withProtocol("TCP").endPort()
              .endContainer()
            .endSpec()
          .endTemplate()
        .endSpec()
        .build();
  }
}
