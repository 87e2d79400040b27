package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const commandLimit = 15 * time.Second

// command is a program to run to its end.
type command struct {
	argv  []string
	input string
	// file becomes descriptor 3 of the program.
	file *os.File
}

func run(ctx context.Context, argv ...string) (string, error) {
	return command{argv: argv}.run(ctx)
}

func (c command) run(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	program := exec.CommandContext(limited, c.argv[0], c.argv[1:]...)
	program.Stdin = strings.NewReader(c.input)
	if c.file != nil {
		program.ExtraFiles = []*os.File{c.file}
	}
	var out, errors bytes.Buffer
	program.Stdout, program.Stderr = &out, &errors
	if err := program.Run(); err != nil {
		if limited.Err() != nil {
			err = fmt.Errorf("no end after %s", commandLimit)
		}
		return "", fmt.Errorf("%s: %v: %s", strings.Join(c.argv, " "), err, strings.TrimSpace(errors.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// ipBatch runs lines of `ip` in one process, inside the namespace of the file if one is given.
func ipBatch(ctx context.Context, netns *os.File, lines ...string) error {
	argv := []string{"ip", "-batch", "-"}
	if netns != nil {
		argv = append([]string{"nsenter", "--net=/proc/self/fd/3"}, argv...)
	}
	_, err := command{argv: argv, input: strings.Join(lines, "\n") + "\n", file: netns}.run(ctx)
	if err != nil {
		return fmt.Errorf("%w (%s)", err, strings.Join(lines, "; "))
	}
	return nil
}

func vsctl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, append([]string{"ovs-vsctl", "--timeout=10"}, args...)...)
}

// nbctl writes to the northbound database that OVN_NB_DB names.
func nbctl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, append([]string{"ovn-nbctl", "--timeout=10"}, args...)...)
}
