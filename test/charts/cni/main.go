// Command podnetwork makes the pods of the local cluster ports of OVN. It is three programs in one file: the CNI plugin
// that a container runtime starts (told by CNI_COMMAND), the agent of a node that the plugin asks, and the writer of load
// balancers for Services.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// said is where programs that run for long tell what they do.
func said(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "%s %s: %s\n", time.Now().UTC().Format("2006-01-02T15:04:05Z"), filepath.Base(os.Args[0]), fmt.Sprintf(format, values...))
}

func main() {
	if command := os.Getenv("CNI_COMMAND"); command != "" {
		os.Exit(plugin(command, os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var err error
	switch {
	case len(os.Args) < 2:
		err = fmt.Errorf("usage: %s agent|services [--node-switch=NAME]; as a CNI plugin it needs CNI_COMMAND", os.Args[0])
	case os.Args[1] == "agent":
		err = runAgent(ctx, os.Args[2:])
	case os.Args[1] == "services":
		err = runServices(ctx)
	default:
		err = fmt.Errorf("%s: no such role; there are agent and services", os.Args[1])
	}
	if err != nil {
		said("%v", err)
		os.Exit(1)
	}
}
