package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

type service struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		ClusterIPs      []string `json:"clusterIPs"`
		SessionAffinity string   `json:"sessionAffinity"`
		Ports           []struct {
			Name     string `json:"name"`
			Protocol string `json:"protocol"`
			Port     int    `json:"port"`
		} `json:"ports"`
	} `json:"spec"`
}

type endpointSlice struct {
	Metadata struct {
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	AddressType string `json:"addressType"`
	Endpoints   []struct {
		Addresses  []string `json:"addresses"`
		Conditions struct {
			Ready *bool `json:"ready"`
		} `json:"conditions"`
	} `json:"endpoints"`
	Ports []struct {
		Name     string `json:"name"`
		Protocol string `json:"protocol"`
		Port     int    `json:"port"`
	} `json:"ports"`
}

// balancer is one row: a Service's ports of one protocol. VIPs are address:port to a list of the same.
type balancer struct {
	protocol string
	affinity bool
	vips     map[string]string
}

// balancersOf is what OVN has to hold, by name. A port without a ready endpoint is left out: what is sent there goes on to
// the node, which refuses it.
func balancersOf(services []service, slices []endpointSlice) map[string]balancer {
	endpoints := map[string][]string{}
	for _, slice := range slices {
		owner := slice.Metadata.Namespace + "/" + slice.Metadata.Labels["kubernetes.io/service-name"]
		for _, port := range slice.Ports {
			key := strings.Join([]string{owner, slice.AddressType, port.Protocol, port.Name}, " ")
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
					continue
				}
				for _, ip := range endpoint.Addresses {
					endpoints[key] = append(endpoints[key], net.JoinHostPort(ip, strconv.Itoa(port.Port)))
				}
			}
		}
	}
	wanted := map[string]balancer{}
	for _, each := range services {
		owner := each.Metadata.Namespace + "/" + each.Metadata.Name
		for _, ip := range each.Spec.ClusterIPs {
			family := familyOf(ip)
			if family == "" {
				continue
			}
			for _, port := range each.Spec.Ports {
				backends := endpoints[strings.Join([]string{owner, family, port.Protocol, port.Name}, " ")]
				if len(backends) == 0 {
					continue
				}
				protocol := strings.ToLower(port.Protocol)
				name := owner + "/" + protocol
				row, found := wanted[name]
				if !found {
					row = balancer{protocol, each.Spec.SessionAffinity == "ClientIP", map[string]string{}}
					wanted[name] = row
				}
				row.vips[net.JoinHostPort(ip, strconv.Itoa(port.Port))] = joined(backends)
			}
		}
	}
	return wanted
}

func familyOf(ip string) string {
	parsed := net.ParseIP(ip)
	switch {
	case parsed == nil:
		return ""
	case parsed.To4() != nil:
		return "IPv4"
	}
	return "IPv6"
}

// joined is the same text for the same set of backends.
func joined(backends []string) string {
	sorted := slices.Clone(backends)
	slices.Sort(sorted)
	return strings.Join(slices.Compact(sorted), ",")
}

func (b balancer) equal(other balancer) bool {
	return b.protocol == other.protocol && b.affinity == other.affinity && maps.Equal(b.vips, other.vips)
}

// runServices keeps one load balancer per Service and protocol, in the group that every switch of pods has, until the
// context ends. Every replica of the controller may run it: a row is made only while none of its name exists.
func runServices(ctx context.Context) error {
	api, err := openAPI()
	if err != nil {
		return err
	}
	nb := northbound{os.Getenv("OVN_NB_DB"), strings.Fields(os.Getenv("OVN_NBCTL_OPTIONS"))}
	changed := make(chan struct{}, 1)
	mark := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, path := range []string{servicesPath, slicesPath} {
		go follow(ctx, api, path, mark)
	}
	last := "-"
	for {
		text := ""
		if err := synchronise(ctx, api, nb); err != nil {
			text = err.Error()
		}
		if text != last {
			last = text
			if text == "" {
				text = "load balancers are as the Services are"
			}
			said("%s", text)
		}
		// Also from time to time: rows can be lost, and switches come with nodes.
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			// Events come in groups.
			pause(ctx, 100*time.Millisecond)
		case <-time.After(next(last == "")):
		}
	}
}

func next(good bool) time.Duration {
	if good {
		return 5 * time.Second
	}
	return time.Second
}

const (
	servicesPath = "/api/v1/services"
	slicesPath   = "/apis/discovery.k8s.io/v1/endpointslices"
)

// follow marks a change for every event of a kind, and one whenever it has to begin anew.
func follow(ctx context.Context, api *api, path string, mark func()) {
	for ctx.Err() == nil {
		var list struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		}
		err := api.get(ctx, path+"?limit=1", &list)
		mark()
		if err == nil {
			err = api.watch(ctx, path, list.Metadata.ResourceVersion, mark)
		}
		if err != nil && !pause(ctx, time.Second) {
			return
		}
	}
}

func synchronise(ctx context.Context, api *api, nb northbound) error {
	var services struct {
		Items []service `json:"items"`
	}
	var slices struct {
		Items []endpointSlice `json:"items"`
	}
	if err := api.get(ctx, servicesPath, &services); err != nil {
		return err
	}
	if err := api.get(ctx, slicesPath, &slices); err != nil {
		return err
	}
	wanted := balancersOf(services.Items, slices.Items)
	if err := nb.ensureGroup(ctx); err != nil {
		return err
	}
	held, err := nb.balancers(ctx)
	if err != nil {
		return err
	}
	for name, row := range wanted {
		if is, found := held[name]; found && is.equal(row) {
			continue
		} else if err := nb.write(ctx, name, row, found); err != nil {
			return err
		}
	}
	for name := range held {
		if _, found := wanted[name]; !found {
			if err := nb.delete(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// northbound speaks OVSDB through ovsdb-client, whose transactions hold only while their conditions do.
type northbound struct {
	remotes string
	options []string
}

type object = map[string]any
type list = []any

func (n northbound) transact(ctx context.Context, operations ...object) ([]object, error) {
	sent := list{"OVN_Northbound"}
	for _, operation := range operations {
		sent = append(sent, operation)
	}
	text, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	argv := append([]string{"ovsdb-client", "-vconsole:warn", "--timeout=10"}, n.options...)
	out, err := run(ctx, append(argv, "transact", n.remotes, string(text))...)
	if err != nil {
		return nil, err
	}
	var results []object
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		return nil, fmt.Errorf("the northbound database answered %.200s", out)
	}
	for _, result := range results {
		// What a condition stopped, another replica did.
		if failed, found := result["error"]; found && failed != nil && failed != "timed out" {
			return nil, fmt.Errorf("the northbound database answered %v: %v", failed, result["details"])
		}
	}
	return results, nil
}

const groupName = "cluster"

var marked = list{list{"external_ids", "includes", list{"map", list{list{"vendor", "podnetwork"}}}}}

func named(name string) list { return list{list{"name", "==", name}} }

func absent(table, name string) object {
	return object{"op": "wait", "timeout": 0, "table": table, "where": named(name), "columns": list{"name"}, "until": "==", "rows": list{}}
}

// ensureGroup keeps the group, and gives it to every switch of pods.
func (n northbound) ensureGroup(ctx context.Context) error {
	const table = "Load_Balancer_Group"
	found, err := n.transact(ctx, object{"op": "select", "table": table, "where": named(groupName), "columns": list{"_uuid"}})
	if err != nil {
		return err
	}
	rows, _ := found[0]["rows"].(list)
	if len(rows) == 0 {
		_, err := n.transact(ctx, absent(table, groupName), object{"op": "insert", "table": table, "row": object{"name": groupName}})
		if err != nil {
			return err
		}
		// Whoever of the replicas made it, it is there now.
		return n.ensureGroup(ctx)
	}
	row, _ := rows[0].(object)
	_, err = n.transact(ctx, object{"op": "mutate", "table": "Logical_Switch", "where": marked,
		"mutations": list{list{"load_balancer_group", "insert", row["_uuid"]}}})
	return err
}

func ovsdbMap(values map[string]string) list {
	pairs := list{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, list{key, values[key]})
	}
	return list{"map", pairs}
}

func (b balancer) row(name string) object {
	options := map[string]string{}
	if b.affinity {
		// Kubernetes' own three hours.
		options["affinity_timeout"] = "10800"
	}
	return object{"name": name, "protocol": b.protocol, "vips": ovsdbMap(b.vips), "options": ovsdbMap(options),
		"external_ids": ovsdbMap(map[string]string{"vendor": "podnetwork"})}
}

func (n northbound) write(ctx context.Context, name string, wanted balancer, exists bool) error {
	const table = "Load_Balancer"
	if exists {
		_, err := n.transact(ctx, object{"op": "update", "table": table, "where": named(name), "row": wanted.row(name)})
		return err
	}
	_, err := n.transact(ctx, absent(table, name),
		object{"op": "insert", "table": table, "uuid-name": "fresh", "row": wanted.row(name)},
		object{"op": "mutate", "table": "Load_Balancer_Group", "where": named(groupName),
			"mutations": list{list{"load_balancer", "insert", list{"named-uuid", "fresh"}}}})
	return err
}

func (n northbound) delete(ctx context.Context, name string) error {
	_, err := n.transact(ctx, object{"op": "delete", "table": "Load_Balancer", "where": named(name)})
	return err
}

// balancers reads the rows that this program wrote.
func (n northbound) balancers(ctx context.Context) (map[string]balancer, error) {
	found, err := n.transact(ctx, object{"op": "select", "table": "Load_Balancer", "where": marked,
		"columns": list{"name", "protocol", "vips", "options"}})
	if err != nil {
		return nil, err
	}
	rows, _ := found[0]["rows"].(list)
	held := map[string]balancer{}
	for _, each := range rows {
		row, _ := each.(object)
		name, _ := row["name"].(string)
		protocol, _ := row["protocol"].(string)
		_, affinity := plainMap(row["options"])["affinity_timeout"]
		held[name] = balancer{protocol, affinity, plainMap(row["vips"])}
	}
	return held, nil
}

func plainMap(value any) map[string]string {
	plain := map[string]string{}
	outer, _ := value.(list)
	if len(outer) == 2 {
		pairs, _ := outer[1].(list)
		for _, each := range pairs {
			if pair, _ := each.(list); len(pair) == 2 {
				key, _ := pair[0].(string)
				text, _ := pair[1].(string)
				plain[key] = text
			}
		}
	}
	return plain
}
