// Command operator runs the website operator.
package main

import (
	"flag"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webv1 "example.com/website/api/v1"
	"example.com/website/internal/controller"
	webwebhook "example.com/website/internal/webhook"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
}

func main() {
	var probeAddress, certDir, leaseNamespace string
	var webhookPort int
	flag.StringVar(&probeAddress, "health-probe-bind-address", "127.0.0.1:0", "address of the probes")
	flag.StringVar(&leaseNamespace, "leader-election-namespace", "default", "namespace of the lease")
	flag.StringVar(&certDir, "webhook-cert-dir", "", "folder of tls.crt and tls.key; empty: no webhooks")
	flag.IntVar(&webhookPort, "webhook-port", 0, "port of the webhooks")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	logger := ctrl.Log.WithName("setup")

	options := ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        probeAddress,
		LeaderElection:                true,
		LeaderElectionID:              "website.web.example.com",
		LeaderElectionNamespace:       leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(6 * time.Second),
		RenewDeadline:                 new(4 * time.Second),
		RetryPeriod:                   new(1 * time.Second),
	}
	if certDir != "" {
		options.WebhookServer = webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: webhookPort, CertDir: certDir})
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	if err != nil {
		logger.Error(err, "cannot create the manager")
		os.Exit(1)
	}
	if err := (&controller.WebsiteReconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), Recorder: mgr.GetEventRecorder("website-controller"),
	}).SetupWithManager(mgr); err != nil {
		logger.Error(err, "cannot create the controller")
		os.Exit(1)
	}
	if certDir != "" {
		if err := webwebhook.SetupWithManager(mgr); err != nil {
			logger.Error(err, "cannot create the webhooks")
			os.Exit(1)
		}
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		logger.Error(err, "cannot add the health check")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		logger.Error(err, "the manager ended with an error")
		os.Exit(1)
	}
}
