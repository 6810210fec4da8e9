package com.example.website;

import io.fabric8.kubernetes.api.model.Condition;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.util.ArrayList;
import java.util.List;

/** A web server with a service. */
@Group("web.example.com")
@Version("v1")
public class Website extends CustomResource<Website.Spec, Website.Status> implements Namespaced {
  /** The desired state. */
  public static class Spec {
    public String image;
    public Integer replicas;
    public Integer port;
  }

  /** The observed state. */
  public static class Status {
    public Long observedGeneration;
    public Integer replicas;
    public Integer readyReplicas;
    public String selector;
    public List<Condition> conditions = new ArrayList<>();
  }
}
