// Command achilles does with the Achilles SDK what the bench `passes` does with OKT.
package main

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/reddit/achilles-sdk/pkg/fsm/metrics"
	"github.com/reddit/achilles-sdk/pkg/ratelimiter"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the controller in one namespace, until the process is ended by what reads its figures.
func run(arguments []string) error {
	if len(arguments) != 5 {
		return fmt.Errorf("wanted: a kubeconfig, a namespace, a number of turns, `plain` or `map`, `any` or `json`")
	}
	kubeconfig, namespace, withMap := arguments[0], arguments[1], arguments[3] == "map"
	expected, err := strconv.ParseUint(arguments[2], 10, 64)
	if err != nil {
		return err
	}
	tally := newTally(expected)
	go tally.answer()

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// No limit: the default is 20 requests a second.
	config.QPS = -1
	if arguments[4] == "json" {
		config.ContentType = runtime.ContentTypeJSON
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{tally, next} })

	scheme := runtime.NewScheme()
	if err := clientgo.AddToScheme(scheme); err != nil {
		return err
	}
	addToScheme(scheme)
	ctrl.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	setUp := charts{tally, withMap}.controller(scheme)
	limit := ratelimiter.NewGlobal(math.MaxInt32)
	if err := setUp(manager, zap.NewNop().Sugar(), limit, metrics.MustMakeMetrics(scheme, registry.Registry)); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
