package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Marks rows of both databases that agents wrote.
const vendor = "external_ids:vendor=podnetwork"

func (a *agent) podSwitch() string { return "pods-" + a.node }

// ensureLogical writes the node's part of the logical network: a switch for its pods behind the cluster's router, the node
// itself on the join switch, and two routes. What pods of this node send out of the cluster leaves through this node, and
// what is for the node's own door goes there, whoever sends it.
func (a *agent) ensureLogical(ctx context.Context) error {
	joinRouterPort := a.router + "-" + a.join
	networks, err := nbctl(ctx, "--bare", "--columns=networks", "find", "Logical_Router_Port", "name="+joinRouterPort)
	if err != nil {
		return err
	}
	for _, text := range strings.Fields(networks) {
		gateway, network, err := net.ParseCIDR(text)
		if err == nil && gateway.To4() != nil {
			a.joinGateway = gateway
			a.joinBits, _ = network.Mask.Size()
			// Ranges of nodes differ in their last sixteen bits, so these addresses do too.
			four := a.pods.IP.To4()
			a.joinIP = hostAt(network, uint32(four[2])<<8+uint32(four[3])+2)
		}
	}
	if a.joinIP == nil {
		return fmt.Errorf("the router port %s does not exist yet", joinRouterPort)
	}
	gateway := hostAt(a.pods, 1)
	bits, _ := a.pods.Mask.Size()
	name, node := a.podSwitch(), "node-"+a.node
	up, down := name+"-"+a.router, a.router+"-"+name
	_, err = nbctl(ctx,
		"--may-exist", "ls-add", name,
		"--", "set", "Logical_Switch", name, vendor,
		"--", "--may-exist", "lrp-add", a.router, down, macOf(gateway), gateway.String()+"/"+strconv.Itoa(bits),
		"--", "--may-exist", "lsp-add", name, up,
		"--", "set", "Logical_Switch_Port", up, "type=router", "addresses=router", "options:router-port="+down,
		"--", "--may-exist", "lsp-add", a.join, node,
		"--", "lsp-set-addresses", node, macOf(a.joinIP)+" "+a.joinIP.String(),
		"--", "--may-exist", "--policy=src-ip", "lr-route-add", a.router, a.pods.String(), a.joinIP.String(),
		"--", "--may-exist", "lr-route-add", a.router, a.joinIP.String()+"/32", a.joinIP.String(),
	)
	return err
}

// nodePortStands is a cheap look at the one thing that goes with every restart of ovs-vswitchd.
func (a *agent) nodePortStands() bool {
	link, err := net.InterfaceByName(nodePort)
	if err != nil || link.Flags&net.FlagUp == 0 {
		return false
	}
	addresses, err := link.Addrs()
	if err != nil {
		return false
	}
	for _, held := range addresses {
		if network, found := held.(*net.IPNet); found && network.IP.Equal(a.joinIP) {
			return true
		}
	}
	return false
}

// ensureNodePort gives the node its port, the address and the routes to all pods, and translates what has to come back the
// way it went: connections from the node's own address, and those of pods that the node passes on, to a Service's
// endpoint or out of the cluster.
func (a *agent) ensureNodePort(ctx context.Context) error {
	if _, err := net.InterfaceByName(nodePort); err != nil {
		_, err := vsctl(ctx, "--may-exist", "add-port", integrationBridge, nodePort,
			"--", "set", "Interface", nodePort, "type=internal", "mtu_request="+podMTU,
			`mac="`+macOf(a.joinIP)+`"`, "external_ids:iface-id=node-"+a.node, vendor)
		if err != nil {
			return err
		}
	}
	lines := []string{
		"link set " + nodePort + " up",
		fmt.Sprintf("address replace %s/%d dev %s", a.joinIP, a.joinBits, nodePort),
	}
	for _, network := range append([]string{a.pods.String()}, a.others...) {
		lines = append(lines, fmt.Sprintf("route replace %s via %s dev %s", network, a.joinGateway, nodePort))
	}
	if err := ipBatch(ctx, nil, lines...); err != nil {
		return err
	}
	return a.ensureTranslation(ctx)
}

// greetNeighbours makes the switch learn where its tunnels lead before pods need them: it looks for a neighbour with the
// first packet that it drops, and a pair of such losses costs a new connection seconds. What the kernel sends to the other
// ends makes it ask for them through the bridge, which listens to the answers.
func greetNeighbours(ctx context.Context) error {
	options, err := vsctl(ctx, "--bare", "--columns=options", "find", "Interface", "type=geneve")
	if err != nil {
		return err
	}
	for _, option := range strings.Fields(options) {
		remote, found := strings.CutPrefix(option, "remote_ip=")
		if !found {
			continue
		}
		// Discard: nobody answers, and nobody needs to.
		if connection, err := net.Dial("udp", net.JoinHostPort(strings.Trim(remote, `"`), "9")); err == nil {
			connection.Write([]byte{0})
			connection.Close()
		}
	}
	return nil
}

const translation = "PODNETWORK-POSTROUTING"

func (a *agent) ensureTranslation(ctx context.Context) error {
	rules := strings.Join([]string{
		"*nat",
		":" + translation + " - [0:0]",
		fmt.Sprintf("-A %s -s %s -j MASQUERADE", translation, a.pods),
		fmt.Sprintf("-A %s -s %s -o %s -j MASQUERADE", translation, a.nodeIP, nodePort),
		"COMMIT", "",
	}, "\n")
	if _, err := (command{argv: []string{"iptables-restore", "--wait", "5", "--noflush"}, input: rules}).run(ctx); err != nil {
		return err
	}
	jump := []string{"POSTROUTING", "-j", translation}
	if _, err := run(ctx, append([]string{"iptables", "--wait", "5", "-t", "nat", "-C"}, jump...)...); err == nil {
		return nil
	}
	_, err := run(ctx, append([]string{"iptables", "--wait", "5", "-t", "nat", "-A"}, jump...)...)
	return err
}
