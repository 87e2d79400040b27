package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// podOf reads namespace and name out of CNI_ARGS.
func podOf(arguments string) (namespace, name string, err error) {
	for _, pair := range strings.Split(arguments, ";") {
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "K8S_POD_NAMESPACE":
			namespace = value
		case "K8S_POD_NAME":
			name = value
		}
	}
	if namespace == "" || name == "" {
		return "", "", &cniError{codeVariable, "CNI_ARGS names no pod"}
	}
	return namespace, name, nil
}

// linkOf names the host's end of a pair; a device name has at most 15 characters.
func linkOf(containerID, name string) string {
	sum := sha256.Sum256([]byte(containerID + "/" + name))
	return "pod" + hex.EncodeToString(sum[:6])
}

func (a *agent) describe(held lease) *address {
	bits, _ := a.pods.Mask.Size()
	return &address{
		IP:      held.IP + "/" + strconv.Itoa(bits),
		Gateway: hostAt(a.pods, 1).String(),
		MAC:     macOf(net.ParseIP(held.IP)),
	}
}

// add makes a pod a port of OVN. It answers when the port works, and leaves nothing when it does not come to that.
func (a *agent) add(ctx context.Context, asked request, netns *os.File) (*address, error) {
	namespace, name, err := podOf(asked.Arguments)
	if err != nil {
		return nil, err
	}
	held, err := a.leases.take(lease{
		ContainerID: asked.ContainerID,
		Interface:   asked.Interface,
		Port:        name + "." + namespace,
		Link:        linkOf(asked.ContainerID, asked.Interface),
	})
	if err != nil {
		return nil, err
	}
	if err := a.connect(ctx, held, netns); err != nil {
		if undone := a.remove(context.WithoutCancel(ctx), asked); undone != nil {
			return nil, fmt.Errorf("%w; and it could not be undone: %v", err, undone)
		}
		return nil, err
	}
	return a.describe(held), nil
}

func (a *agent) connect(ctx context.Context, held lease, netns *os.File) error {
	given := a.describe(held)
	run(ctx, "ip", "link", "delete", held.Link)
	other := held.Link[:len(held.Link)-1] + "p"
	steps := []func() error{
		func() error { return a.writePort(ctx, held) },
		func() error {
			lines := []string{
				fmt.Sprintf("link add %s mtu %s type veth peer name %s mtu %s address %s", held.Link, podMTU, other, podMTU, given.MAC),
				fmt.Sprintf("link set %s netns /proc/self/fd/3", other),
				"link set " + held.Link + " up",
			}
			_, err := command{argv: []string{"ip", "-batch", "-"}, input: strings.Join(lines, "\n") + "\n", file: netns}.run(ctx)
			return err
		},
		func() error {
			return ipBatch(ctx, netns,
				fmt.Sprintf("link set %s name %s", other, held.Interface),
				fmt.Sprintf("address add %s dev %s", given.IP, held.Interface),
				fmt.Sprintf("link set %s up", held.Interface),
				"route add default via "+given.Gateway)
		},
		// Nothing completes checksums on the way through a switch in user space.
		func() error {
			argv := []string{"nsenter", "--net=/proc/self/fd/3", "ethtool", "-K", held.Interface, "tx", "off"}
			_, err := command{argv: argv, file: netns}.run(ctx)
			return err
		},
		func() error { return plug(ctx, held) },
		func() error {
			_, err := run(ctx, "ovs-vsctl", "--timeout=12", "wait-until", "Interface", held.Link, "external_ids:ovn-installed=true")
			if err != nil {
				return fmt.Errorf("ovn-controller did not install the port of the pod: %w", err)
			}
			return nil
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writePort makes the logical port of a lease, or takes over the one of an earlier pod of the same name.
func (a *agent) writePort(ctx context.Context, held lease) error {
	_, err := nbctl(ctx,
		"--may-exist", "lsp-add", a.podSwitch(), held.Port,
		"--", "lsp-set-addresses", held.Port, macOf(net.ParseIP(held.IP))+" "+held.IP,
		"--", "set", "Logical_Switch_Port", held.Port, vendor, "external_ids:node="+a.node,
		"external_ids:container="+held.ContainerID)
	return err
}

// plug makes the host's end a port of the integration bridge.
func plug(ctx context.Context, held lease) error {
	_, err := vsctl(ctx, "--may-exist", "add-port", integrationBridge, held.Link,
		"--", "set", "Interface", held.Link, "external_ids:iface-id="+held.Port, vendor)
	return err
}

func (a *agent) check(ctx context.Context, asked request) error {
	held, found := a.leases.find(asked.ContainerID, asked.Interface)
	if !found {
		return fmt.Errorf("container %s has no address here", asked.ContainerID)
	}
	installed, err := vsctl(ctx, "--if-exists", "get", "Interface", held.Link, "external_ids:ovn-installed")
	if err == nil && installed != `"true"` {
		err = fmt.Errorf("the port of container %s is not installed", asked.ContainerID)
	}
	return err
}

// remove takes back what add did, whatever of it is there, and gives the address free last. It waits for no ovs-vswitchd:
// a pod can go while that hangs.
func (a *agent) remove(ctx context.Context, asked request) error {
	a.ports.Lock()
	defer a.ports.Unlock()
	held, found := a.leases.find(asked.ContainerID, asked.Interface)
	if !found {
		return nil
	}
	if _, err := vsctl(ctx, "--no-wait", "--if-exists", "del-port", integrationBridge, held.Link); err != nil {
		return err
	}
	if _, err := net.InterfaceByName(held.Link); err == nil {
		if _, err := run(ctx, "ip", "link", "delete", held.Link); err != nil && !strings.Contains(err.Error(), "Cannot find device") {
			return err
		}
	}
	if !a.leases.portInUse(held) {
		if _, err := nbctl(ctx, "--if-exists", "lsp-del", held.Port); err != nil {
			return err
		}
	}
	return a.leases.release(held)
}

// collect removes ports that no lease stands behind: those of pods that ended with the node.
func (a *agent) collect(ctx context.Context) error {
	links, ports := map[string]bool{nodePort: true}, map[string]bool{}
	for _, held := range a.leases.all() {
		links[held.Link], ports[held.Port] = true, true
	}
	found, err := vsctl(ctx, "--bare", "--columns=name", "find", "Interface", vendor)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(found) {
		if !links[name] {
			if _, err := vsctl(ctx, "--no-wait", "--if-exists", "del-port", name); err != nil {
				return err
			}
		}
	}
	found, err = nbctl(ctx, "--bare", "--columns=name", "find", "Logical_Switch_Port", vendor, "external_ids:node="+a.node)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(found) {
		if !ports[name] {
			if _, err := nbctl(ctx, "--if-exists", "lsp-del", name); err != nil {
				return err
			}
		}
	}
	return nil
}

// repairPods plugs pods in again whose ports went with their bridge, and writes logical ports that are gone.
func (a *agent) repairPods(ctx context.Context) error {
	listed, err := vsctl(ctx, "list-ports", integrationBridge)
	if err != nil {
		return err
	}
	plugged := map[string]bool{}
	for _, name := range strings.Fields(listed) {
		plugged[name] = true
	}
	written, err := nbctl(ctx, "--bare", "--columns=name", "find", "Logical_Switch_Port", vendor, "external_ids:node="+a.node)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, name := range strings.Fields(written) {
		known[name] = true
	}
	for _, held := range a.leases.all() {
		if plugged[held.Link] && known[held.Port] {
			continue
		}
		if err := a.repairPod(ctx, held); err != nil {
			return err
		}
	}
	return nil
}

func (a *agent) repairPod(ctx context.Context, held lease) error {
	a.ports.Lock()
	defer a.ports.Unlock()
	_, found := a.leases.find(held.ContainerID, held.Interface)
	if _, err := net.InterfaceByName(held.Link); err != nil || !found {
		// Its pod has gone meanwhile, or is just being made.
		return nil
	}
	if err := plug(ctx, held); err != nil {
		return err
	}
	return a.writePort(ctx, held)
}
