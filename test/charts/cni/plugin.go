package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	defaultSocket = "/run/openvswitch/kube-ovn-daemon.sock"
	// An agent that is being replaced is waited for, since a runtime that is refused tries again only after seconds.
	agentWait = 20 * time.Second
	// Longer than all that the agent's own limits for one request add up to.
	answerWait = 60 * time.Second
)

// Codes of CNI's well-known errors.
const (
	codeVersion  = 1
	codeVariable = 4
	codeConfig   = 6
	codeLater    = 11
	codeFailed   = 999
)

type networkConfig struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Socket     string `json:"server_socket"`
}

// request is what the plugin passes on. The network namespace itself travels beside it as an open file.
type request struct {
	Command     string `json:"command"`
	ContainerID string `json:"containerID"`
	Interface   string `json:"interface"`
	Arguments   string `json:"arguments"`
	Netns       string `json:"netns"`
}

type cniError struct {
	Code    int    `json:"code"`
	Message string `json:"msg"`
}

func (e *cniError) Error() string { return e.Message }

// address is what the agent gave an interface.
type address struct {
	IP      string `json:"ip"`
	Gateway string `json:"gateway"`
	MAC     string `json:"mac"`
}

type answer struct {
	Address *address  `json:"address,omitempty"`
	Error   *cniError `json:"error,omitempty"`
}

var versions = []string{"0.4.0", "1.0.0"}

// plugin runs one CNI command and answers the exit code.
func plugin(command string, in io.Reader, out io.Writer) int {
	version := "1.0.0"
	fail := func(err *cniError) int {
		json.NewEncoder(out).Encode(map[string]any{"cniVersion": version, "code": err.Code, "msg": err.Message})
		return 1
	}
	var config networkConfig
	if err := json.NewDecoder(in).Decode(&config); err != nil {
		return fail(&cniError{codeConfig, fmt.Sprintf("the configuration on standard input is no JSON: %v", err)})
	}
	if command == "VERSION" {
		json.NewEncoder(out).Encode(map[string]any{"cniVersion": version, "supportedVersions": versions})
		return 0
	}
	if config.CNIVersion != versions[0] && config.CNIVersion != versions[1] {
		return fail(&cniError{codeVersion, fmt.Sprintf("cniVersion %q: this plugin speaks %v", config.CNIVersion, versions)})
	}
	version = config.CNIVersion
	if config.Socket == "" {
		config.Socket = defaultSocket
	}
	asked := request{
		Command:     command,
		ContainerID: os.Getenv("CNI_CONTAINERID"),
		Interface:   os.Getenv("CNI_IFNAME"),
		Arguments:   os.Getenv("CNI_ARGS"),
		Netns:       os.Getenv("CNI_NETNS"),
	}
	got, err := ask(config.Socket, asked)
	if err != nil {
		return fail(&cniError{codeLater, fmt.Sprintf("the agent of this node at %s: %v", config.Socket, err)})
	}
	if got.Error != nil {
		return fail(got.Error)
	}
	if command == "ADD" {
		json.NewEncoder(out).Encode(result(version, asked, *got.Address))
	}
	return 0
}

func result(version string, asked request, given address) map[string]any {
	ip := map[string]any{"interface": 0, "address": given.IP, "gateway": given.Gateway}
	if version == "0.4.0" {
		ip["version"] = "4"
	}
	return map[string]any{
		"cniVersion": version,
		"interfaces": []any{map[string]any{"name": asked.Interface, "mac": given.MAC, "sandbox": asked.Netns}},
		"ips":        []any{ip},
		"routes":     []any{map[string]any{"dst": "0.0.0.0/0", "gw": given.Gateway}},
	}
}

// ask sends one request to the agent and waits for the answer. For ADD and CHECK the namespace's file goes along, because
// the agent lives in a container where its path means nothing.
func ask(socket string, asked request) (answer, error) {
	var got answer
	connection, err := dial(socket)
	if err != nil {
		return got, err
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(answerWait))
	var rights []byte
	if asked.Netns != "" && asked.Command != "DEL" {
		file, err := os.Open(asked.Netns)
		if err != nil {
			return got, err
		}
		defer file.Close()
		rights = syscall.UnixRights(int(file.Fd()))
	}
	text, err := json.Marshal(asked)
	if err != nil {
		return got, err
	}
	if _, _, err := connection.WriteMsgUnix(append(text, '\n'), rights, nil); err != nil {
		return got, err
	}
	return got, json.NewDecoder(connection).Decode(&got)
}

func dial(socket string) (*net.UnixConn, error) {
	end := time.Now().Add(agentWait)
	for {
		connection, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
		if err == nil || time.Now().After(end) {
			return connection, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}
