package com.example;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

/** A custom resource with a spec and a status. */
@Group("fabric8.example.com")
@Version("v1")
public class Widget extends CustomResource<Widget.Spec, Widget.Status> implements Namespaced {
  public static class Spec {
    public String color;
    public Integer replicas;
  }

  public static class Status {
    public String phase;
    public Long observedGeneration;
    public Integer replicas;
  }

  @Override
  protected Spec initSpec() {
    return new Spec();
  }
}
