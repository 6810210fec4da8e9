package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd runs the database in this process, on Unix sockets in dir, and returns its address.
func startEtcd(dir string) (string, error) {
	clients := url.URL{Scheme: "unix", Path: filepath.Join(dir, "etcd.sock")}
	peers := url.URL{Scheme: "unix", Path: filepath.Join(dir, "peer.sock")}
	config := embed.NewConfig()
	config.Dir = filepath.Join(dir, "etcd")
	config.ListenClientUrls = []url.URL{clients}
	config.ListenPeerUrls = []url.URL{peers}
	config.LogLevel = "error"
	// The data need not outlive the machine. A process that is killed loses nothing of it: what was
	// answered has been written to the file, though not to the disk.
	config.UnsafeNoFsync = true
	// Room for long tests: the default refuses writes from 2 GiB on.
	config.QuotaBackendBytes = 8 << 30
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return clients.String(), nil
	case err := <-etcd.Err():
		return "", fmt.Errorf("start etcd: %w", err)
	case <-time.After(limit):
		return "", fmt.Errorf("start etcd: not ready within %s", limit)
	}
}
