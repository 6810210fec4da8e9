// Package v1 has the API of the group web.example.com.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "web.example.com", Version: "v1"}

// SchemeBuilder adds the types to a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds the types to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// WebsiteSpec is the desired state of a website.
type WebsiteSpec struct {
	// Image is the image of the web server. The mutating webhook sets a default.
	Image string `json:"image,omitempty"`
	// Replicas is the number of web servers. The schema sets the default 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// Port is the port of the service.
	Port int32 `json:"port"`
}

// WebsiteStatus is the observed state of a website.
type WebsiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	Selector           string             `json:"selector,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Website is a web server with a service.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec   `json:"spec"`
	Status            WebsiteStatus `json:"status,omitempty"`
}

// WebsiteList is a list of websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}
