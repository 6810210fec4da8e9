//go:build !before_1_36

package main

import (
	"context"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/storageversionmigrator"
)

// storageVersionMigrators are the controllers of StorageVersionMigration, if the server has that kind.
func storageVersionMigrators(
	ctx context.Context, config *rest.Config, client kubernetes.Interface, metadataClient metadata.Interface,
	typed informers.SharedInformerFactory, mapper meta.ResettableRESTMapper, graph *garbagecollector.GraphBuilder,
) ([]func(context.Context), error) {
	_, err := client.Discovery().ServerResourcesForGroupVersion("storagemigration.k8s.io/v1beta1")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	untypedClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := typed.Storagemigration().V1beta1().StorageVersionMigrations()
	return []func(context.Context){
		storageversionmigrator.NewSVMController(
			ctx, client, untypedClient, informer, "storage-version-migrator-controller", mapper, graph).Run,
		storageversionmigrator.NewResourceVersionController(
			ctx, client, client.Discovery(), metadataClient, informer, mapper).Run,
		storageversionmigrator.NewCustomResourceController(
			ctx, client, informer, definitions.ApiextensionsV1().CustomResourceDefinitions()).Run,
	}, nil
}

// setVerbosity makes kubectl's messages as detailed as its arguments say.
func setVerbosity(arguments []string) error {
	_, err := logs.GlogSetter(cmd.GetLogVerbosity(arguments))
	return err
}
