package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	integrationBridge = "br-int"
	// nodePort is the node's own door to the pod network: an internal port of br-int on the join switch.
	nodePort = "ovn0"
	// A tunnel adds 58 bytes to a packet of at most 1500.
	podMTU = "1400"
)

type agent struct {
	node, nodeIP        string
	api                 *api
	pods                *net.IPNet
	router, join        string
	joinIP, joinGateway net.IP
	joinBits            int
	leases              *store
	others              []string
	// ports keeps a repair from plugging in what is being removed.
	ports     sync.Mutex
	readyFile string
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// runAgent keeps the node joined to the pod network and serves the plugin, until the context ends.
func runAgent(ctx context.Context, args []string) error {
	a := &agent{
		node:      os.Getenv("NODE_NAME"),
		nodeIP:    os.Getenv("POD_IP"),
		router:    env("CLUSTER_ROUTER", "ovn-cluster"),
		join:      "join",
		readyFile: env("READY_FILE", "/tmp/cni-ready"),
	}
	for _, arg := range args {
		if name, found := strings.CutPrefix(arg, "--node-switch="); found {
			a.join = name
		}
	}
	if a.node == "" || a.nodeIP == "" {
		return fmt.Errorf("NODE_NAME and POD_IP have to name this node")
	}
	var err error
	if a.api, err = openAPI(); err != nil {
		return err
	}
	socket := env("CNI_SOCKET", defaultSocket)
	if err := a.prepare(ctx); err != nil {
		return err
	}
	listener, err := listen(socket)
	if err != nil {
		return err
	}
	defer listener.Close()
	go a.serve(ctx, listener)
	said("node %s has its network: pods in %s, itself at %s", a.node, a.pods, a.joinIP)
	a.keep(ctx, socket)
	return nil
}

// prepare does, as often as it takes, what must be before the first pod: range, logical network, the node's own port, and
// nothing of pods that are gone.
func (a *agent) prepare(ctx context.Context) error {
	last := ""
	for {
		err := a.connected(ctx)
		if err == nil {
			err = a.readNodes(ctx)
		}
		if err == nil && a.leases == nil {
			a.leases, err = openStore(env("CNI_LEASES", "/run/openvswitch/kube-ovn-cni"), a.pods)
		}
		if err == nil {
			err = a.ensureLogical(ctx)
		}
		if err == nil {
			err = a.ensureNodePort(ctx)
		}
		if err == nil {
			err = a.collect(ctx)
		}
		if err == nil {
			return nil
		}
		if err.Error() != last {
			said("waits: %v", err)
			last = err.Error()
		}
		if !pause(ctx, time.Second) {
			return fmt.Errorf("stopped while it waited: %v", err)
		}
	}
}

// pause answers false when the context has ended.
func pause(ctx context.Context, length time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(length):
		return true
	}
}

// keep repairs what others take away: the node's port and routes at once, since they go with every restart of
// ovs-vswitchd, ports of pods and logical objects a little later.
func (a *agent) keep(ctx context.Context, socket string) {
	told := map[string]string{}
	tell := func(what string, err error) {
		text := ""
		if err != nil {
			text = err.Error()
		}
		if told[what] != text {
			told[what] = text
			if text == "" {
				text = "as it should be again"
			}
			said("%s: %s", what, text)
		}
	}
	for round := 0; ; round++ {
		if round%3 == 0 {
			err := a.connected(ctx)
			tell("chassis", err)
			if err == nil && env("NON_PRIMARY_CNI", "false") != "true" {
				err = a.writeConfiguration(socket)
				tell("configuration", err)
			}
			if err == nil {
				tell("ready file", touch(a.readyFile))
			}
		}
		if round%3 == 1 {
			tell("neighbours", greetNeighbours(ctx))
		}
		if !a.nodePortStands() || round%10 == 0 {
			tell("port of the node", a.ensureNodePort(ctx))
		}
		if round%10 == 5 {
			tell("nodes", a.readNodes(ctx))
			tell("ports of pods", a.repairPods(ctx))
		}
		if round%30 == 29 {
			tell("logical network", a.ensureLogical(ctx))
		}
		if !pause(ctx, time.Second) {
			return
		}
	}
}

func touch(file string) error {
	opened, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	opened.Close()
	now := time.Now()
	return os.Chtimes(file, now, now)
}

// connected is an error while the node's ovn-controller has no connection to the southbound database.
func (a *agent) connected(ctx context.Context) error {
	directory := env("OVN_RUNDIR", "/var/run/ovn")
	pid, err := os.ReadFile(filepath.Join(directory, "ovn-controller.pid"))
	if err != nil {
		return fmt.Errorf("the chassis of the node is not connected: no ovn-controller")
	}
	control := filepath.Join(directory, "ovn-controller."+strings.TrimSpace(string(pid))+".ctl")
	status, err := run(ctx, "ovs-appctl", "-T", "5", "-t", control, "connection-status")
	if err != nil || status != "connected" {
		return fmt.Errorf("the chassis of the node is not connected: %s%v", status, err)
	}
	return nil
}

type nodeObject struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		PodCIDR string `json:"podCIDR"`
	} `json:"spec"`
}

// readNodes learns the node's own range and those of the others.
func (a *agent) readNodes(ctx context.Context) error {
	var list struct {
		Items []nodeObject `json:"items"`
	}
	if err := a.api.get(ctx, "/api/v1/nodes", &list); err != nil {
		return err
	}
	others := []string{}
	for _, node := range list.Items {
		if node.Metadata.Name != a.node {
			if node.Spec.PodCIDR != "" {
				others = append(others, node.Spec.PodCIDR)
			}
			continue
		}
		_, network, err := net.ParseCIDR(node.Spec.PodCIDR)
		if err != nil || network.IP.To4() == nil {
			return fmt.Errorf("node %s has no IPv4 pod range yet", a.node)
		}
		if a.pods != nil && a.pods.String() != network.String() {
			return fmt.Errorf("the pod range of the node was %s and is %s now; pods would have to go first", a.pods, network)
		}
		if a.pods == nil {
			a.pods = network
		}
	}
	if a.pods == nil {
		return fmt.Errorf("there is no node %s", a.node)
	}
	a.others = others
	return nil
}

// writeConfiguration lets the runtime use the plugin. It reads every *.conflist at once: the file appears whole or not at
// all. The file stays when the agent goes, as the plugin waits for the next one.
func (a *agent) writeConfiguration(socket string) error {
	directory := env("CNI_CONF_DIR", "/etc/cni/net.d")
	target := filepath.Join(directory, env("CNI_CONFIG_PRIORITY", "01")+"-kube-ovn.conflist")
	plugin := map[string]any{"type": "kube-ovn", "server_socket": env("CNI_SOCKET_ON_NODE", socket)}
	text, err := json.MarshalIndent(map[string]any{"cniVersion": "1.0.0", "name": "kube-ovn", "plugins": []any{plugin}}, "", "  ")
	if err != nil {
		return err
	}
	if held, err := os.ReadFile(target); err == nil && string(held) == string(text)+"\n" {
		return nil
	}
	if err := os.WriteFile(target+".tmp", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(target+".tmp", target)
}

func listen(socket string) (*net.UnixListener, error) {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return listener, os.Chmod(socket, 0o600)
}

func (a *agent) serve(ctx context.Context, listener *net.UnixListener) {
	for {
		connection, err := listener.AcceptUnix()
		if err != nil {
			if ctx.Err() == nil {
				said("no more requests: %v", err)
			}
			return
		}
		go a.answer(ctx, connection)
	}
}

func (a *agent) answer(ctx context.Context, connection *net.UnixConn) {
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(answerWait))
	asked, netns, err := receive(connection)
	if netns != nil {
		defer netns.Close()
	}
	var got answer
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, answerWait)
		defer cancel()
		got.Address, err = a.handle(limited, asked, netns)
	}
	if err != nil {
		said("%s %.12s: %v", asked.Command, asked.ContainerID, err)
		got = answer{Error: &cniError{codeFailed, err.Error()}}
	}
	json.NewEncoder(connection).Encode(got)
}

// receive reads one request with the file that came along.
func receive(connection *net.UnixConn) (request, *os.File, error) {
	var asked request
	text, rights := make([]byte, 64<<10), make([]byte, 128)
	length, rightsLength, _, _, err := connection.ReadMsgUnix(text, rights)
	if err != nil {
		return asked, nil, err
	}
	var netns *os.File
	if messages, err := syscall.ParseSocketControlMessage(rights[:rightsLength]); err == nil {
		for _, message := range messages {
			if files, err := syscall.ParseUnixRights(&message); err == nil && len(files) == 1 {
				syscall.CloseOnExec(files[0])
				netns = os.NewFile(uintptr(files[0]), "netns")
			}
		}
	}
	return asked, netns, json.Unmarshal(text[:length], &asked)
}

func (a *agent) handle(ctx context.Context, asked request, netns *os.File) (*address, error) {
	if asked.ContainerID == "" || asked.Interface == "" {
		return nil, &cniError{codeVariable, "CNI_CONTAINERID and CNI_IFNAME are not set"}
	}
	switch asked.Command {
	case "ADD":
		if netns == nil {
			return nil, &cniError{codeVariable, "CNI_NETNS names no network namespace"}
		}
		return a.add(ctx, asked, netns)
	case "CHECK":
		return nil, a.check(ctx, asked)
	case "DEL":
		return nil, a.remove(ctx, asked)
	}
	return nil, &cniError{codeVariable, "CNI_COMMAND " + asked.Command + " is not known"}
}
