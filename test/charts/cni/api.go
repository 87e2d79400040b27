package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// api is the API server as the pod's account sees it.
type api struct {
	base    string
	account string
	client  *http.Client
}

func openAPI() (*api, error) {
	account := os.Getenv("ACCOUNT_DIR")
	if account == "" {
		account = "/var/run/secrets/kubernetes.io/serviceaccount"
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, fmt.Errorf("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this runs in a pod")
	}
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s/ca.crt holds no certificate", account)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return &api{"https://" + net.JoinHostPort(host, port), account, &http.Client{Transport: transport}}, nil
}

func (a *api) request(ctx context.Context, path string) (*http.Response, error) {
	// Read each time: the kubelet renews it.
	token, err := os.ReadFile(filepath.Join(a.account, "token"))
	if err != nil {
		return nil, err
	}
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, err
	}
	asked.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	asked.Header.Set("User-Agent", "podnetwork")
	given, err := a.client.Do(asked)
	if err != nil {
		return nil, err
	}
	if given.StatusCode != http.StatusOK {
		given.Body.Close()
		return nil, fmt.Errorf("GET %s: the API server answered %s", path, given.Status)
	}
	return given, nil
}

// get reads one object or list.
func (a *api) get(ctx context.Context, path string, into any) error {
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	given, err := a.request(limited, path)
	if err != nil {
		return err
	}
	defer given.Body.Close()
	return json.NewDecoder(given.Body).Decode(into)
}

// watch calls `changed` for every event after a resource version, until the server ends the watch or an error.
func (a *api) watch(ctx context.Context, path, version string, changed func()) error {
	limited, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	given, err := a.request(limited, path+"?watch=1&timeoutSeconds=300&resourceVersion="+version)
	if err != nil {
		return err
	}
	defer given.Body.Close()
	lines := bufio.NewScanner(given.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var event struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.Type == "ERROR" {
			return fmt.Errorf("the watch of %s ended with %.200s", path, lines.Bytes())
		}
		changed()
	}
	return lines.Err()
}
