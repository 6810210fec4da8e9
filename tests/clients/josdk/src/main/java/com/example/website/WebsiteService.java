package com.example.website;

import io.fabric8.kubernetes.api.model.IntOrString;
import io.fabric8.kubernetes.api.model.Service;
import io.fabric8.kubernetes.api.model.ServiceBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import java.util.Map;

/** The address of the web servers. */
public class WebsiteService extends CRUDKubernetesDependentResource<Service, Website> {
  @Override
  protected Service desired(Website website, Context<Website> context) {
    var labels = Map.of("app", website.getMetadata().getName());
    return new ServiceBuilder()
        .withNewMetadata()
          .withName(website.getMetadata().getName())
          .withNamespace(website.getMetadata().getNamespace())
          .withLabels(labels)
        .endMetadata()
        .withNewSpec()
          .withSelector(labels)
          .addNewPort()
            .withName("http")
            .withPort(website.getSpec().port)
            .withTargetPort(new IntOrString("http"))
            .withProtocol("TCP")
          .endPort()
        .endSpec()
        .build();
  }
}
