// Command check starts the operator against the API server of KUBECONFIG and checks its work from outside.
//
// It prints one line for each check: "pass NAME" or "fail NAME". The reason of a failure goes to stderr.
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	webv1 "example.com/website/api/v1"
	"example.com/website/internal/controller"
	"example.com/website/internal/webhook"
)

const (
	namespace = "websites"
	leaseName = "website.web.example.com"
	// A check polls for this time at most.
	patience = 15 * time.Second
)

var (
	ctx  = context.Background()
	api  client.Client
	work string
	// listOnly prints the names of the checks instead of running them.
	listOnly bool
)

// check runs one check and prints its result.
func check(name string, f func() error) {
	if listOnly {
		fmt.Println(name)
		return
	}
	if err := f(); err != nil {
		fmt.Printf("fail %s\n", name)
		fmt.Fprintf(os.Stderr, "FAIL %s: %v\n", name, err)
		return
	}
	fmt.Printf("pass %s\n", name)
}

// eventually polls until f returns no error.
func eventually(f func() error) error {
	end := time.Now().Add(patience)
	for {
		err := f()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func website(name, image string, replicas *int32, port int32) *webv1.Website {
	return &webv1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       webv1.WebsiteSpec{Image: image, Replicas: replicas, Port: port},
	}
}

// start starts one replica of the operator.
func start(operator, name, certs string, port int) (*exec.Cmd, error) {
	log, err := os.Create(filepath.Join(work, name+".log"))
	if err != nil {
		return nil, err
	}
	arguments := []string{"--leader-election-namespace", namespace}
	if certs != "" {
		arguments = append(arguments, "--webhook-cert-dir", certs, "--webhook-port", fmt.Sprint(port))
	}
	command := exec.Command(operator, arguments...)
	command.Stdout, command.Stderr = log, log
	return command, command.Start()
}

func stop(command *exec.Cmd) error {
	if command == nil || command.Process == nil {
		return fmt.Errorf("the operator was not started")
	}
	_ = command.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		_ = command.Process.Kill()
		return fmt.Errorf("the operator did not end within %s of SIGTERM", patience)
	}
}

// writeCertificate writes a self-signed certificate for 127.0.0.1 and returns it in PEM.
func writeCertificate(folder string) ([]byte, error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		return nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600); err != nil {
		return nil, err
	}
	return certificate, os.WriteFile(filepath.Join(folder, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600)
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 19443
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func installCRD(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096).Decode(crd); err != nil {
		return err
	}
	if err := api.Create(ctx, crd); err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	return eventually(func() error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the CRD is not established: %v", crd.Status.Conditions)
	})
}

func installWebhooks(certificate []byte, port int) error {
	url := func(kind string) *string {
		return new(fmt.Sprintf("https://127.0.0.1:%d/%s-web-example-com-v1-website", port, kind))
	}
	rules := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"web.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"websites"}},
	}}
	if err := api.Create(ctx, &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "website"},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "default.web.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: url("mutate"), CABundle: certificate},
			Rules: rules, SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}); err != nil {
		return err
	}
	return api.Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "website"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "validate.web.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: url("validate"), CABundle: certificate},
			Rules: rules, SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	})
}

func owned(object client.Object, by *webv1.Website) error {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.UID != by.UID || owner.Kind != "Website" || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
		return fmt.Errorf("the controller of %s is %v", object.GetName(), owner)
	}
	return nil
}

// expectInvalid returns an error if err is not the answer 422 with the text.
func expectInvalid(err error, text string) error {
	if err == nil {
		return fmt.Errorf("the API server accepted the object")
	}
	if !errors.IsInvalid(err) || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("want Invalid with %q, got: %v", text, err)
	}
	return nil
}

func holder() (string, *coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := api.Get(ctx, key(leaseName), lease); err != nil {
		return "", nil, err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", lease, fmt.Errorf("the lease has no holder")
	}
	return *lease.Spec.HolderIdentity, lease, nil
}

func gone(object client.Object, name string) error {
	return eventually(func() error {
		err := api.Get(ctx, key(name), object)
		if errors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%T %s is still there, deletionTimestamp %v, finalizers %v", object, name, object.GetDeletionTimestamp(), object.GetFinalizers())
	})
}

func main() {
	var operator, crd string
	flag.StringVar(&operator, "operator", "", "the program of the operator")
	flag.StringVar(&crd, "crd", "", "the file of the CRD")
	flag.StringVar(&work, "work", ".", "folder for logs and certificates")
	flag.BoolVar(&listOnly, "list", false, "print the names of the checks")
	flag.Parse()
	if listOnly {
		checks(&replicas{})
		return
	}

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	var err error
	if api, err = client.New(ctrl.GetConfigOrDie(), client.Options{Scheme: scheme}); err != nil {
		fmt.Fprintf(os.Stderr, "cannot create the client: %v\n", err)
		os.Exit(2)
	}
	if err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		fmt.Fprintf(os.Stderr, "cannot create the namespace: %v\n", err)
		// A later check reports the same error. The JSON client is a second try, so that the other checks can run.
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("v1")
		object.SetKind("Namespace")
		object.SetName(namespace)
		if err := api.Create(ctx, object); err != nil {
			fmt.Fprintf(os.Stderr, "cannot create the namespace as JSON: %v\n", err)
		}
	}

	r := &replicas{operator: operator, crd: crd, certs: filepath.Join(work, "certs"), port: freePort()}
	if r.certificate, err = writeCertificate(r.certs); err != nil {
		fmt.Fprintf(os.Stderr, "cannot write the certificate: %v\n", err)
		os.Exit(2)
	}
	defer func() {
		for _, command := range []*exec.Cmd{r.first, r.second} {
			if command != nil && command.ProcessState == nil {
				_ = command.Process.Kill()
			}
		}
	}()
	checks(r)
}

// replicas has the two replicas of the operator.
type replicas struct {
	operator, crd, certs string
	certificate          []byte
	port                 int
	first, second        *exec.Cmd
}

func checks(r *replicas) {
	check("crd is established", func() error { return installCRD(r.crd) })
	check("operator starts", func() (err error) {
		if r.first, err = start(r.operator, "operator-1", r.certs, r.port); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		// Signal 0 only asks whether the process is there.
		return r.first.Process.Signal(syscall.Signal(0))
	})
	var leader string
	check("operator takes its lease", func() error {
		return eventually(func() error {
			identity, lease, err := holder()
			if err != nil {
				return err
			}
			if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil || *lease.Spec.LeaseDurationSeconds != 6 {
				return fmt.Errorf("the lease is incomplete: %+v", lease.Spec)
			}
			leader = identity
			return nil
		})
	})
	check("operator renews its lease", func() error {
		_, before, err := holder()
		if err != nil {
			return err
		}
		return eventually(func() error {
			identity, lease, err := holder()
			if err != nil {
				return err
			}
			if identity != leader || !lease.Spec.RenewTime.After(before.Spec.RenewTime.Time) {
				return fmt.Errorf("the lease of %s was not renewed: %+v", leader, lease.Spec)
			}
			return nil
		})
	})
	check("schema sets a default", func() error {
		site := website("defaults", "nginx:1.29", nil, 80)
		if err := api.Create(ctx, site); err != nil {
			return err
		}
		if site.Spec.Replicas == nil || *site.Spec.Replicas != 1 {
			return fmt.Errorf("spec.replicas is %v", site.Spec.Replicas)
		}
		return nil
	})
	check("schema refuses a value out of range", func() error {
		return expectInvalid(api.Create(ctx, website("invalid", "nginx", new(int32(21)), 80)),
			"spec.replicas: Invalid value: 21: spec.replicas in body should be less than or equal to 20")
	})
	check("CEL rule refuses an object", func() error {
		return expectInvalid(api.Create(ctx, website("invalid", "nginx", new(int32(10)), 80)), "port 80 has fewer than 10 replicas")
	})

	check("webhook configurations are created", func() error { return installWebhooks(r.certificate, r.port) })
	check("mutating webhook sets a default", func() error {
		return eventually(func() error {
			site := website("mutated", "", nil, 8080)
			if err := api.Create(ctx, site, client.DryRunAll); err != nil {
				return err
			}
			if site.Spec.Image != webhook.DefaultImage {
				return fmt.Errorf("spec.image is %q", site.Spec.Image)
			}
			return nil
		})
	})
	check("validating webhook refuses an object", func() error {
		return eventually(func() error {
			err := api.Create(ctx, website("refused", "nginx:forbidden", nil, 8080), client.DryRunAll)
			if err == nil {
				return fmt.Errorf("the API server accepted the object")
			}
			want := `admission webhook "validate.web.example.com" denied the request: image nginx:forbidden is forbidden`
			if !errors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("want Forbidden with %q, got: %v", want, err)
			}
			return nil
		})
	})

	// The controllers of a double may fill in the status of the Deployment: only the spec counts here.
	site := website("shop", "nginx:1.28", new(int32(2)), 8080)
	check("object is created", func() error { return api.Create(ctx, site) })
	deployment := &appsv1.Deployment{}
	check("operator creates the Deployment", func() error {
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), deployment); err != nil {
				return err
			}
			if *deployment.Spec.Replicas != 2 || deployment.Spec.Template.Spec.Containers[0].Image != "nginx:1.28" {
				return fmt.Errorf("the Deployment is not the desired one: %+v", deployment.Spec)
			}
			return nil
		})
	})
	check("Deployment has the defaults of the API", func() error {
		container := corev1.Container{}
		if len(deployment.Spec.Template.Spec.Containers) > 0 {
			container = deployment.Spec.Template.Spec.Containers[0]
		}
		if deployment.Spec.Strategy.RollingUpdate == nil || deployment.Spec.ProgressDeadlineSeconds == nil || deployment.Spec.RevisionHistoryLimit == nil ||
			container.ImagePullPolicy != corev1.PullIfNotPresent || container.TerminationMessagePath == "" || deployment.Spec.Template.Spec.DNSPolicy != corev1.DNSClusterFirst {
			return fmt.Errorf("%+v", deployment.Spec)
		}
		return nil
	})
	check("Deployment is owned by the object", func() error { return owned(deployment, site) })
	service := &corev1.Service{}
	check("operator creates the Service", func() error {
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), service); err != nil {
				return err
			}
			if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 8080 || service.Spec.Ports[0].TargetPort.StrVal != "http" {
				return fmt.Errorf("the Service is not the desired one: %+v", service.Spec)
			}
			return nil
		})
	})
	check("Service has a cluster IP", func() error {
		if net.ParseIP(service.Spec.ClusterIP) == nil || len(service.Spec.ClusterIPs) != 1 || service.Spec.Type != corev1.ServiceTypeClusterIP || service.Spec.SessionAffinity != corev1.ServiceAffinityNone {
			return fmt.Errorf("%+v", service.Spec)
		}
		return nil
	})
	check("Service is owned by the object", func() error { return owned(service, site) })
	ready := func(message string) func() error {
		return func() error {
			return eventually(func() error {
				if err := api.Get(ctx, key("shop"), site); err != nil {
					return err
				}
				condition := meta.FindStatusCondition(site.Status.Conditions, "Ready")
				if condition == nil || condition.Status != metav1.ConditionTrue || condition.Message != message || site.Status.ObservedGeneration != site.Generation {
					return fmt.Errorf("generation %d, status %+v", site.Generation, site.Status)
				}
				return nil
			})
		}
	}
	check("operator sets the status conditions", ready("image nginx:1.28"))
	check("operator adds its finalizer", func() error {
		if len(site.Finalizers) != 1 || site.Finalizers[0] != controller.Finalizer {
			return fmt.Errorf("finalizers are %v", site.Finalizers)
		}
		return nil
	})
	check("status is a subresource", func() error {
		// The status in an update of the object is ignored, and a status update leaves the generation.
		generation := site.Generation
		changed := site.DeepCopy()
		changed.Status.Replicas = 99
		changed.Annotations = map[string]string{"note": "1"}
		if err := api.Update(ctx, changed); err != nil {
			return err
		}
		if changed.Status.Replicas == 99 || changed.Generation != generation {
			return fmt.Errorf("replicas %d, generation %d after %d", changed.Status.Replicas, changed.Generation, generation)
		}
		return nil
	})
	check("operator settles", func() error {
		// Without defaults or with a changing managed field the operator updates forever.
		resourceVersion := ""
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), deployment); err != nil {
				return err
			}
			if deployment.Generation != 1 {
				return nil
			}
			if resourceVersion == deployment.ResourceVersion {
				return nil
			}
			resourceVersion = deployment.ResourceVersion
			time.Sleep(2 * time.Second)
			return fmt.Errorf("the Deployment changes all the time")
		})
	})
	check("operator reports events", func() error {
		return eventually(func() error {
			list := &eventsv1.EventList{}
			if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			found := map[string]bool{}
			for _, event := range list.Items {
				if event.Regarding.UID == site.UID && event.Regarding.Kind == "Website" {
					found[event.Reason+" "+event.Action+" "+event.Note] = true
				}
			}
			if !found["Deployment Reconcile deployment created"] || !found["Service Reconcile service created"] {
				return fmt.Errorf("the events are %v", found)
			}
			return nil
		})
	})
	check("events are in the core group too", func() error {
		return eventually(func() error {
			list := &corev1.EventList{}
			if err := api.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": "shop"}); err != nil {
				return err
			}
			for _, event := range list.Items {
				if event.InvolvedObject.UID == site.UID && event.Message == "deployment created" && event.ReportingController == "website-controller" {
					return nil
				}
			}
			return fmt.Errorf("%d events, none of them as expected", len(list.Items))
		})
	})

	change := func(f func(*webv1.Website)) error {
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), site); err != nil {
				return err
			}
			f(site)
			return api.Update(ctx, site)
		})
	}
	check("operator updates the Deployment", func() error {
		if err := change(func(site *webv1.Website) { site.Spec.Image, site.Spec.Replicas = "nginx:1.29", new(int32(3)) }); err != nil {
			return err
		}
		if site.Generation != 2 {
			return fmt.Errorf("the generation is %d", site.Generation)
		}
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), deployment); err != nil {
				return err
			}
			if *deployment.Spec.Replicas != 3 || deployment.Spec.Template.Spec.Containers[0].Image != "nginx:1.29" {
				return fmt.Errorf("the Deployment was not updated: %+v", deployment.Spec)
			}
			return nil
		})
	})
	check("operator updates the Service", func() error {
		if err := change(func(site *webv1.Website) { site.Spec.Port = 9090 }); err != nil {
			return err
		}
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), service); err != nil {
				return err
			}
			if service.Spec.Ports[0].Port != 9090 {
				return fmt.Errorf("the Service was not updated: %+v", service.Spec)
			}
			return nil
		})
	})
	check("operator updates the status conditions", ready("image nginx:1.29"))
	check("scale subresource changes the object", func() error {
		if err := api.Get(ctx, key("shop"), site); err != nil {
			return err
		}
		scale := &autoscalingv1.Scale{}
		if err := api.SubResource("scale").Get(ctx, site, scale); err != nil {
			return err
		}
		if scale.Spec.Replicas != 3 || scale.Status.Replicas != 3 || scale.Status.Selector != "app=shop" {
			return fmt.Errorf("the scale is %+v %+v", scale.Spec, scale.Status)
		}
		scale.Spec.Replicas = 4
		if err := api.SubResource("scale").Update(ctx, site, client.WithSubResourceBody(scale)); err != nil {
			return err
		}
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), deployment); err != nil {
				return err
			}
			if *deployment.Spec.Replicas != 4 {
				return fmt.Errorf("the Deployment has %d replicas", *deployment.Spec.Replicas)
			}
			return nil
		})
	})
	check("operator creates a deleted Service again", func() error {
		before := &corev1.Service{}
		if err := api.Get(ctx, key("shop"), before); err != nil {
			return err
		}
		if err := api.Delete(ctx, before); err != nil {
			return err
		}
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), service); err != nil {
				return err
			}
			if service.UID == before.UID {
				return fmt.Errorf("the Service has the same UID")
			}
			return nil
		})
	})
	check("operator reverts a changed Deployment", func() error {
		if err := api.Get(ctx, key("shop"), deployment); err != nil {
			return err
		}
		if err := api.Patch(ctx, deployment, client.RawPatch(types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"other"}]}}}}`))); err != nil {
			return err
		}
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), deployment); err != nil {
				return err
			}
			if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "nginx:1.29" {
				return fmt.Errorf("the image is %s", image)
			}
			return nil
		})
	})
	check("server-side apply reports a conflict", func() error {
		patch := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "web.example.com/v1", "kind": "Website",
			"metadata": map[string]any{"name": "shop", "namespace": namespace},
			"spec":     map[string]any{"image": "applied:1"},
		}}
		err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch.DeepCopy()), client.FieldOwner("other"))
		if !errors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.image") {
			return fmt.Errorf("want a conflict at .spec.image, got: %v", err)
		}
		if err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner("other"), client.ForceOwnership); err != nil {
			return err
		}
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), deployment); err != nil {
				return err
			}
			if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "applied:1" {
				return fmt.Errorf("the image is %s", image)
			}
			return nil
		})
	})
	check("objects are selected by a field of the CRD", func() error {
		list := &webv1.WebsiteList{}
		if err := api.List(ctx, list, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.image", "applied:1")}); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Name != "shop" {
			return fmt.Errorf("%d objects", len(list.Items))
		}
		return nil
	})
	check("second replica does not lead", func() error {
		var err error
		if r.second, err = start(r.operator, "operator-2", "", 0); err != nil {
			return err
		}
		time.Sleep(8 * time.Second)
		identity, _, err := holder()
		if err != nil {
			return err
		}
		if identity != leader {
			return fmt.Errorf("%s leads, not %s", identity, leader)
		}
		if r.second.ProcessState != nil {
			return fmt.Errorf("the second replica ended")
		}
		return nil
	})
	check("webhook configurations are deleted", func() error {
		if err := api.Delete(ctx, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "website"}}); err != nil {
			return err
		}
		return api.Delete(ctx, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "website"}})
	})
	check("operator ends on SIGTERM", func() error {
		err := stop(r.first)
		r.first = nil
		return err
	})
	check("second replica takes over", func() error {
		return eventually(func() error {
			identity, _, err := holder()
			if err != nil {
				return err
			}
			if identity == leader {
				return fmt.Errorf("%s still leads", identity)
			}
			return nil
		})
	})
	check("foreign finalizer holds the deletion", func() error {
		if err := api.Get(ctx, key("shop"), site); err != nil {
			return err
		}
		site.Finalizers = append(site.Finalizers, "example.com/hold")
		if err := api.Update(ctx, site); err != nil {
			return err
		}
		if err := api.Delete(ctx, site); err != nil {
			return err
		}
		return eventually(func() error {
			if err := api.Get(ctx, key("shop"), site); err != nil {
				return err
			}
			if site.DeletionTimestamp == nil || len(site.Finalizers) != 1 || site.Finalizers[0] != "example.com/hold" {
				return fmt.Errorf("deletionTimestamp %v, finalizers %v", site.DeletionTimestamp, site.Finalizers)
			}
			return nil
		})
	})
	check("finalizer runs on deletion", func() error {
		return eventually(func() error { return api.Get(ctx, key("shop-deleted"), &corev1.ConfigMap{}) })
	})
	check("object goes when its finalizers are gone", func() error {
		if err := api.Patch(ctx, site, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`))); err != nil {
			return err
		}
		return gone(&webv1.Website{}, "shop")
	})
	check("owned Deployment goes", func() error { return gone(&appsv1.Deployment{}, "shop") })
	check("owned Service goes", func() error { return gone(&corev1.Service{}, "shop") })
	check("second replica ends on SIGTERM", func() error {
		err := stop(r.second)
		r.second = nil
		return err
	})
	check("crd deletion removes the objects", func() error {
		// One object is left, whose finalizer the operator would remove.
		left := &webv1.Website{}
		if err := api.Get(ctx, key("defaults"), left); err != nil {
			return err
		}
		if err := api.Patch(ctx, left, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			return err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "websites.web.example.com"}}
		if err := api.Delete(ctx, definition); err != nil {
			return err
		}
		return eventually(func() error {
			err := api.Get(ctx, client.ObjectKeyFromObject(definition), definition)
			if errors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("the CRD is still there: %v", err)
		})
	})
	check("namespace goes", func() error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if err := api.Delete(ctx, ns); err != nil {
			return err
		}
		return eventually(func() error {
			err := api.Get(ctx, client.ObjectKeyFromObject(ns), ns)
			if errors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("the namespace is still there: %v %v", err, ns.Status)
		})
	})
}
