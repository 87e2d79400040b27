package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// lease is one address in use: a file of that name holds who has it, so that it outlives the agent. It goes with the
// node's /run, as the pods do.
type lease struct {
	IP          string `json:"ip"`
	ContainerID string `json:"containerID"`
	Interface   string `json:"interface"`
	// Port names the logical switch port, Link the host's end of the pair.
	Port string `json:"port"`
	Link string `json:"link"`
}

type store struct {
	directory string
	network   *net.IPNet
	mutex     sync.Mutex
	byIP      map[string]lease
	next      uint32
}

func openStore(directory string, network *net.IPNet) (*store, error) {
	opened := &store{directory: directory, network: network, byIP: map[string]lease{}, next: 2}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		file := filepath.Join(directory, entry.Name())
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var held lease
		if net.ParseIP(entry.Name()) == nil || json.Unmarshal(text, &held) != nil || held.IP != entry.Name() {
			// Cut short while it was written: nobody was told of this address yet.
			if err := os.Remove(file); err != nil {
				return nil, err
			}
			continue
		}
		opened.byIP[held.IP] = held
	}
	return opened, nil
}

// hostAt is the address so many places after the start of a network.
func hostAt(network *net.IPNet, places uint32) net.IP {
	ip := make(net.IP, 4)
	binary.BigEndian.PutUint32(ip, binary.BigEndian.Uint32(network.IP.To4())+places)
	return ip
}

// sizeOf counts the addresses of a network.
func sizeOf(network *net.IPNet) uint32 {
	ones, bits := network.Mask.Size()
	return 1 << (bits - ones)
}

// macOf is the same hardware address for an address each time, so that no neighbour ever holds a wrong one.
func macOf(ip net.IP) string {
	four := ip.To4()
	return fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", four[0], four[1], four[2], four[3])
}

// find answers the lease of a container's interface.
func (s *store) find(containerID, name string) (lease, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, held := range s.byIP {
		if held.ContainerID == containerID && held.Interface == name {
			return held, true
		}
	}
	return lease{}, false
}

// take gives an address that nobody has: the one after the last given, so that a released one rests for a while.
func (s *store) take(wanted lease) (lease, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, held := range s.byIP {
		if held.ContainerID == wanted.ContainerID && held.Interface == wanted.Interface {
			return held, nil
		}
	}
	last := sizeOf(s.network) - 2
	for tried := uint32(0); tried < last-1; tried++ {
		ip := hostAt(s.network, s.next).String()
		s.next++
		if s.next > last {
			s.next = 2
		}
		if _, used := s.byIP[ip]; used {
			continue
		}
		wanted.IP = ip
		text, err := json.Marshal(wanted)
		if err != nil {
			return lease{}, err
		}
		if err := os.WriteFile(filepath.Join(s.directory, ip), text, 0o600); err != nil {
			return lease{}, err
		}
		s.byIP[ip] = wanted
		return wanted, nil
	}
	return lease{}, fmt.Errorf("all addresses of %s are in use", s.network)
}

func (s *store) release(held lease) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := os.Remove(filepath.Join(s.directory, held.IP)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	delete(s.byIP, held.IP)
	return nil
}

func (s *store) all() []lease {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := make([]lease, 0, len(s.byIP))
	for _, held := range s.byIP {
		list = append(list, held)
	}
	return list
}

// portInUse tells whether another lease has the port of this name: a pod of the same name that came after.
func (s *store) portInUse(held lease) bool {
	for _, other := range s.all() {
		if other.Port == held.Port && other.IP != held.IP {
			return true
		}
	}
	return false
}
