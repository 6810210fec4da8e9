package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// serve runs etcd and the API server until nobody wants them any more.
func serve(arguments []string) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	dir := flags.String("dir", "", "`directory` for all files: new or empty, removed at the end")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	dirPath, err := newDirectory(*dir)
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
	// The port is ours from here on: nobody can take it between the choice and its use.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	token := rand.Text()
	completed, err := complete(dirPath, etcd, token, listener)
	if err != nil {
		return err
	}
	certificate := completed.SecureServing.ServerCert.CertKey.CertFile
	if err := writeKubeconfig(filepath.Join(dirPath, "kubeconfig"), listener.Addr(), certificate, token); err != nil {
		return err
	}
	return app.Run(context.Background(), completed)
}

// newDirectory makes sure that removing the directory at the end removes nobody's files.
func newDirectory(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("--dir is missing")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty, and it would be removed at the end: %w", dir, fs.ErrExist)
	}
	return dir, nil
}

// complete makes the options of the API server, as its own command does.
func complete(dir, etcd, token string, listener net.Listener) (options.CompletedOptions, error) {
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
	err := flags.Parse([]string{
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
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		// Nothing here makes service accounts, so Pods could not be created.
		"--disable-admission-plugins=ServiceAccount",
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
	})
	if err != nil {
		return options.CompletedOptions{}, err
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return options.CompletedOptions{}, err
	}
	// The server's own requests need no warnings.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := opts.Complete(context.Background())
	if err != nil {
		return options.CompletedOptions{}, err
	}
	return completed, utilerrors.NewAggregate(completed.Validate())
}

// writeKubeconfig appears whole or not at all: who waits for the file can read it at once.
func writeKubeconfig(file string, server net.Addr, certificate, token string) error {
	authority, err := os.ReadFile(certificate)
	if err != nil {
		return err
	}
	const name = "okt"
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
