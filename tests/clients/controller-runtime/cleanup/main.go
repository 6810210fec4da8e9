// Command cleanup deletes the objects that a test package left on the API server of KUBECONFIG, so that the
// next package starts with an empty server. The script `run` builds it within controller-runtime's module.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cfg, err := config.GetConfig()
	if err != nil {
		fmt.Println("cleanup:", err)
		os.Exit(1)
	}
	cfg.ContentType = "application/json"
	cfg.QPS = -1
	api, err := dynamic.NewForConfig(cfg)
	if err != nil {
		fmt.Println("cleanup:", err)
		os.Exit(1)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, resource := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "apps", Version: "v1", Resource: "replicasets"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "nodes"},
		{Version: "v1", Resource: "namespaces"},
	} {
		all := api.Resource(resource)
		list, err := all.List(ctx, metav1.ListOptions{})
		if err != nil {
			fmt.Printf("cleanup: list %s: %v\n", resource.Resource, err)
			continue
		}
		for _, object := range list.Items {
			namespace, name := object.GetNamespace(), object.GetName()
			if strings.HasPrefix(namespace, "kube-") || resource.Resource == "namespaces" && (name == "default" || strings.HasPrefix(name, "kube-")) ||
				resource.Resource == "services" && name == "kubernetes" || resource.Resource == "configmaps" && name == "kube-root-ca.crt" {
				continue
			}
			var one dynamic.ResourceInterface = all
			if namespace != "" {
				one = all.Namespace(namespace)
			}
			if len(object.GetFinalizers()) > 0 {
				if _, err := one.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
					fmt.Printf("cleanup: finalizers of %s %s/%s: %v\n", resource.Resource, namespace, name, err)
				}
			}
			if err := one.Delete(ctx, name, now); err != nil {
				fmt.Printf("cleanup: delete %s %s/%s: %v\n", resource.Resource, namespace, name, err)
			}
			fmt.Printf("cleanup: deleted %s %s/%s\n", resource.Resource, namespace, name)
		}
	}
}
