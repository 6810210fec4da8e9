package main

import (
	"github.com/reddit/achilles-sdk-api/api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Chart is the same resource as that of the other side, with the status that Achilles asks for.
type Chart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ChartSpec   `json:"spec,omitempty"`
	Status ChartStatus `json:"status,omitempty"`
}

// ChartSpec is what a user asks for.
type ChartSpec struct {
	Text string `json:"text,omitempty"`
}

// ChartStatus is how it is.
type ChartStatus struct {
	api.ConditionedStatus `json:",inline"`

	ResourceRefs []api.TypedObjectRef `json:"resourceRefs,omitempty"`
}

// ChartList is many of them.
type ChartList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Chart `json:"items"`
}

func addToScheme(scheme *runtime.Scheme) {
	version := schema.GroupVersion{Group: "bench.okt.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Chart{}, &ChartList{})
	metav1.AddToGroupVersion(scheme, version)
}

func (c *Chart) GetConditions() []api.Condition { return c.Status.Conditions }

func (c *Chart) SetConditions(all ...api.Condition) { c.Status.SetConditions(all...) }

func (c *Chart) GetCondition(kind api.ConditionType) api.Condition {
	return c.Status.GetCondition(kind)
}

func (c *Chart) GetManagedResources() []api.TypedObjectRef { return c.Status.ResourceRefs }

func (c *Chart) SetManagedResources(refs []api.TypedObjectRef) { c.Status.ResourceRefs = refs }

func (c *Chart) DeepCopyObject() runtime.Object { return c.copied() }

func (c *Chart) copied() *Chart {
	copied := &Chart{TypeMeta: c.TypeMeta, Spec: c.Spec}
	c.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	c.Status.ConditionedStatus.DeepCopyInto(&copied.Status.ConditionedStatus)
	if c.Status.ResourceRefs != nil {
		// An empty list says that there are none any more, none says nothing.
		copied.Status.ResourceRefs = append([]api.TypedObjectRef{}, c.Status.ResourceRefs...)
	}
	return copied
}

func (l *ChartList) DeepCopyObject() runtime.Object {
	copied := &ChartList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	for _, chart := range l.Items {
		copied.Items = append(copied.Items, *chart.copied())
	}
	return copied
}
