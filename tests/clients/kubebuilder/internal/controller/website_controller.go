// Package controller has the reconciler of websites.
package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/website/api/v1"
)

// Finalizer is on each website until the operator has recorded its deletion.
const Finalizer = "web.example.com/finalizer"

// WebsiteReconciler reconciles a website.
type WebsiteReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

// Reconcile brings the Deployment and the Service of a website to the desired state.
func (r *WebsiteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	logger := log.FromContext(ctx)
	website := &webv1.Website{}
	if err := r.Get(ctx, req.NamespacedName, website); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !website.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(website, Finalizer) {
			return ctrl.Result{}, nil
		}
		// An outer resource, which the garbage collector does not know.
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: website.Name + "-deleted", Namespace: website.Namespace}}
		if err := r.Create(ctx, record); err != nil && !errors.IsAlreadyExists(err) {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(website, Finalizer)
		if err := r.Update(ctx, website); err != nil {
			return ctrl.Result{}, err
		}
		logger.Info("finalized")
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(website, Finalizer) {
		if err := r.Update(ctx, website); err != nil {
			return ctrl.Result{}, err
		}
	}

	labels := map[string]string{"app": website.Name}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: website.Name, Namespace: website.Namespace}}
	changed, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		deployment.Labels = labels
		deployment.Spec.Replicas = website.Spec.Replicas
		if deployment.CreationTimestamp.IsZero() {
			deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) != 1 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web"}}
		}
		container := &deployment.Spec.Template.Spec.Containers[0]
		container.Image = website.Spec.Image
		container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: website.Spec.Port, Protocol: corev1.ProtocolTCP}}
		return controllerutil.SetControllerReference(website, deployment, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("deployment: %w", err)
	}
	if changed != controllerutil.OperationResultNone {
		logger.Info("deployment", "result", changed)
		r.Recorder.Eventf(website, deployment, corev1.EventTypeNormal, "Deployment", "Reconcile", "deployment %s", changed)
	}

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: website.Name, Namespace: website.Namespace}}
	changed, err = controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		service.Labels = labels
		service.Spec.Selector = labels
		if len(service.Spec.Ports) != 1 {
			service.Spec.Ports = []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP}}
		}
		service.Spec.Ports[0].Port = website.Spec.Port
		service.Spec.Ports[0].TargetPort = intstr.FromString("http")
		return controllerutil.SetControllerReference(website, service, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("service: %w", err)
	}
	if changed != controllerutil.OperationResultNone {
		logger.Info("service", "result", changed)
		r.Recorder.Eventf(website, service, corev1.EventTypeNormal, "Service", "Reconcile", "service %s", changed)
	}

	before := website.DeepCopy()
	website.Status.ObservedGeneration = website.Generation
	website.Status.Replicas = *website.Spec.Replicas
	website.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	website.Status.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
	meta.SetStatusCondition(&website.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Reconciled",
		Message: "image " + website.Spec.Image, ObservedGeneration: website.Generation,
	})
	if err := r.Status().Patch(ctx, website, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, fmt.Errorf("status: %w", err)
	}
	return ctrl.Result{}, nil
}

// SetupWithManager adds the controller to the manager.
func (r *WebsiteReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&webv1.Website{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Named("website").
		Complete(r)
}
