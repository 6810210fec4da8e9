//go:build before_1_36

// What older releases of Kubernetes lack, for .ci/window.
package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

// storageVersionMigrators are none: StorageVersionMigration is an alpha there.
func storageVersionMigrators(
	context.Context, *rest.Config, kubernetes.Interface, metadata.Interface,
	informers.SharedInformerFactory, meta.ResettableRESTMapper, *garbagecollector.GraphBuilder,
) ([]func(context.Context), error) {
	return nil, nil
}

// setVerbosity leaves the verbosity as it is: kubectl sets it by itself.
func setVerbosity([]string) error { return nil }
