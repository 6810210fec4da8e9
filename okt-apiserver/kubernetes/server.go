package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	random "math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// limit is how long a step of the start may take. It takes seconds; a busy machine takes longer.
const limit = 10 * time.Minute

// serve runs etcd and the API server until nobody wants them any more.
func serve(arguments []string) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	dir := flags.String("dir", "", "`directory` for all files: new, empty, or of a killed server; removed at the end")
	gates := flags.String("feature-gates", "", "feature `gates` of the API server, as kube-apiserver takes them")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	dirPath, before, err := directory(*dir)
	if err != nil {
		return err
	}
	cleanUp := func() { _ = os.RemoveAll(dirPath) }
	defer cleanUp()
	untilAbandoned(cleanUp)
	limitMemory(2 << 30)

	etcd, err := startEtcd(dirPath)
	if err != nil {
		return err
	}
	identity := before
	if identity == nil {
		identity = &identityOf{token: rand.Text()}
	}
	// The port is ours from here on: nobody can take it between the choice and its use.
	listener, err := listen(identity.address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	completed, err := complete(dirPath, etcd, identity.token, *gates, listener)
	if err != nil {
		return err
	}
	if before == nil {
		certificate := completed.SecureServing.ServerCert.CertKey.CertFile
		if err := writeKubeconfig(filepath.Join(dirPath, kubeconfig), listener.Addr(), certificate, identity.token); err != nil {
			return err
		}
	}
	return app.Run(context.Background(), completed)
}

// identityOf is what clients know a server by; its certificate is in the directory.
type identityOf struct{ address, token string }

// directory makes sure that removing the directory at the end removes nobody's files. A server that
// was killed has left its own there: then this one takes its place, and its clients go on.
func directory(dir string) (string, *identityOf, error) {
	if dir == "" {
		return "", nil, errors.New("--dir is missing")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	if len(entries) == 0 {
		return dir, nil, nil
	}
	before, err := readKubeconfig(filepath.Join(dir, kubeconfig))
	if err != nil {
		return "", nil, fmt.Errorf("%s is neither empty nor of a killed server, and it would be removed at the end: %w", dir, err)
	}
	return dir, before, nil
}

// listen takes the address of a killed server, and waits where somebody holds it by chance. Without one, it takes a free
// port below those that Linux gives to clients, so that no client holds it while the server is away.
func listen(address string) (net.Listener, error) {
	since := time.Now()
	for {
		tried := address
		if address == "" {
			tried = fmt.Sprintf("127.0.0.1:%d", 16_384+random.IntN(16_384))
		}
		listener, err := net.Listen("tcp", tried)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(since) > limit {
			return listener, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// complete makes the options of the API server, as its own command does.
func complete(dir, etcd, token, gates string, listener net.Listener) (options.CompletedOptions, error) {
	certificates := filepath.Join(dir, "certificates")
	// The key that the server makes for itself also signs the tokens of service accounts.
	key := filepath.Join(certificates, "apiserver.key")
	tokens := filepath.Join(dir, "tokens.csv")
	admin := fmt.Sprintf("%s,admin,admin,%q\n", token, "system:masters")
	if err := os.WriteFile(tokens, []byte(admin), 0o600); err != nil {
		return options.CompletedOptions{}, err
	}
	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	arguments := []string{
		"--feature-gates=" + gates,
		"--etcd-servers=" + etcd,
		// History is dropped after one to two of these, so that long runs stay small.
		"--etcd-compaction-interval=1m",
		"--bind-address=127.0.0.1",
		// Without it a machine without a network cannot start the server.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + certificates,
		"--token-auth-file=" + tokens,
		"--authorization-mode=RBAC",
		// As envtest starts it: node agents run privileged containers.
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		// Nothing here makes service accounts, so Pods could not be created.
		"--disable-admission-plugins=ServiceAccount",
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
	}
	if strings.Contains(gates, "StorageVersionMigrator=true") {
		// The gate alone serves nothing.
		arguments = append(arguments, "--runtime-config=storagemigration.k8s.io/v1beta1=true")
	}
	if err := flags.Parse(arguments); err != nil {
		return options.CompletedOptions{}, err
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return options.CompletedOptions{}, err
	}
	// Its own command lets clients see the gates among the metrics, too.
	registry.FeatureGateFor(compatibility.DefaultKubeComponent).(featuregate.MutableFeatureGate).AddMetrics()
	// The server's own requests need no warnings.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := opts.Complete(context.Background())
	if err != nil {
		return options.CompletedOptions{}, err
	}
	return completed, utilerrors.NewAggregate(completed.Validate())
}

const (
	// kubeconfig is the file that leads to the server.
	kubeconfig = "kubeconfig"
	// name is that of everything in it.
	name = "okt"
)

// readKubeconfig finds out what clients know a killed server by.
func readKubeconfig(file string) (*identityOf, error) {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	cluster, user := config.Clusters[name], config.AuthInfos[name]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("%s was not written by this program", file)
	}
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return nil, err
	}
	return &identityOf{address: server.Host, token: user.Token}, nil
}

// writeKubeconfig appears whole or not at all: who waits for the file can read it at once.
func writeKubeconfig(file string, server net.Addr, certificate, token string) error {
	authority, err := os.ReadFile(certificate)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + server.String(),
		CertificateAuthorityData: authority,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	// WriteToFile gives mode 600.
	if err := clientcmd.WriteToFile(*config, file+".new"); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
