package com.example.website;

import io.fabric8.kubernetes.api.model.Condition;
import io.fabric8.kubernetes.api.model.ConditionBuilder;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.api.reconciler.Workflow;
import io.javaoperatorsdk.operator.api.reconciler.dependent.Dependent;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;

/** Reports the state of a website, whose Deployment and Service the workflow brings to the desired state. */
@Workflow(dependents = {@Dependent(type = WebsiteDeployment.class), @Dependent(type = WebsiteService.class)})
@ControllerConfiguration(name = "website", finalizerName = "web.example.com/finalizer")
public class WebsiteReconciler implements Reconciler<Website>, Cleaner<Website> {
  @Override
  public UpdateControl<Website> reconcile(Website website, Context<Website> context) {
    var deployment = context.getSecondaryResource(Deployment.class).orElseThrow();
    var ready = deployment.getStatus() == null ? null : deployment.getStatus().getReadyReplicas();
    var status = new Website.Status();
    status.observedGeneration = website.getMetadata().getGeneration();
    status.replicas = website.getSpec().replicas;
    status.readyReplicas = ready == null ? 0 : ready;
    status.selector = "app=" + website.getMetadata().getName();
    status.conditions = List.of(readyCondition(website));

    // A server-side apply has the fields of the operator only.
    var patch = new Website();
    patch.setMetadata(new ObjectMetaBuilder()
        .withName(website.getMetadata().getName())
        .withNamespace(website.getMetadata().getNamespace())
        .build());
    patch.setStatus(status);
    return UpdateControl.patchStatus(patch);
  }

  @Override
  public DeleteControl cleanup(Website website, Context<Website> context) {
    // An outer resource, which the garbage collector does not know.
    var record = new ConfigMapBuilder()
        .withNewMetadata()
          .withName(website.getMetadata().getName() + "-deleted")
          .withNamespace(website.getMetadata().getNamespace())
        .endMetadata()
        .build();
    context.getClient().resource(record).serverSideApply();
    return DeleteControl.defaultDelete();
  }

  private static Condition readyCondition(Website website) {
    var now = Instant.now().truncatedTo(ChronoUnit.SECONDS).toString();
    var conditions = website.getStatus() == null ? List.<Condition>of() : website.getStatus().conditions;
    var since = conditions.stream()
        .filter(condition -> condition.getType().equals("Ready"))
        .map(Condition::getLastTransitionTime)
        .findFirst();
    return new ConditionBuilder()
        .withType("Ready")
        .withStatus("True")
        .withReason("Reconciled")
        .withMessage("image " + website.getSpec().image)
        .withObservedGeneration(website.getMetadata().getGeneration())
        .withLastTransitionTime(since.orElse(now))
        .build();
  }
}
