package main

import (
	"context"
	"errors"
	"flag"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	workers = 10
	// How soon the garbage collector knows a new kind. kube-controller-manager takes 30 s, which
	// no test waits for; this is why the two controllers are started here and not by it.
	lookForKinds = time.Second
	resync       = 12 * time.Hour
)

// control runs the controllers without which deletion ends half way.
func control(arguments []string) error {
	flags := flag.NewFlagSet("controllers", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "`file` that leads to the server")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *kubeconfig == "" {
		return errors.New("--kubeconfig is missing")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	// The server is ours alone; limits would only slow tests down.
	config.QPS, config.Burst = 1000, 2000
	untilAbandoned(func() {})
	limitMemory(1 << 30)
	return runControllers(context.Background(), config)
}

func runControllers(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	typed := informers.NewSharedInformerFactory(client, resync)
	untyped := metadatainformer.NewSharedInformerFactory(metadataClient, resync)
	started := make(chan struct{})

	graph := garbagecollector.NewDependencyGraphBuilder(
		ctx, metadataClient, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(typed, untyped), started,
	)
	collector, err := garbagecollector.NewComposedGarbageCollector(ctx, client, metadataClient, mapper, graph)
	if err != nil {
		return err
	}
	migrators, err := storageVersionMigrators(ctx, config, client, metadataClient, typed, mapper, graph)
	if err != nil {
		return err
	}
	namespaces := namespace.NewNamespaceController(
		ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		typed.Core().V1().Namespaces(), resync, corev1.FinalizerKubernetes,
	)
	typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	close(started)

	var running sync.WaitGroup
	running.Go(func() { namespaces.Run(ctx, workers) })
	running.Go(func() { collector.Run(ctx, workers, 30*time.Second) })
	running.Go(func() { collector.Sync(ctx, client.Discovery(), lookForKinds) })
	for _, run := range migrators {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
	return nil
}
