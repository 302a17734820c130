package main

import (
	"context"
	"fmt"
	"sync/atomic"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

const (
	typePrefix    = "type.googleapis.com/"
	clusterType   = typePrefix + "envoy.config.cluster.v3.Cluster"
	endpointType  = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType  = typePrefix + "envoy.config.listener.v3.Listener"
	routeType     = typePrefix + "envoy.config.route.v3.RouteConfiguration"
	maxReceived   = 64 << 20
	clustersFirst = 2 // clusters and listeners: what is asked for without a name
)

type client struct {
	name     string
	complete chan struct{}
	failed   chan struct{}
	// Why it failed; read after failed is closed.
	err           error
	resources     atomic.Int64
	resourceBytes atomic.Int64
}

// What one client still waits for.
type subscription struct {
	wildcards int
	endpoints map[string]struct{}
	routes    map[string]struct{}
}

func newClient(number int) *client {
	return &client{
		name:     fmt.Sprintf("peer-%05d", number),
		complete: make(chan struct{}),
		failed:   make(chan struct{}),
	}
}

func (c *client) run(ctx context.Context, address string) {
	c.err = c.subscribe(ctx, address)
	close(c.failed)
}

// Returns when the stream ends.
func (c *client) subscribe(ctx context.Context, address string) error {
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceived)))
	if err != nil {
		return err
	}
	defer connection.Close()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	node := &core.Node{Id: fmt.Sprintf("sidecar~127.0.0.1~%s.default~default.svc.cluster.local", c.name)}
	for _, typeURL := range []string{clusterType, listenerType} {
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: typeURL}); err != nil {
			return err
		}
		node = nil
	}
	waiting := &subscription{wildcards: clustersFirst}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := c.receive(stream, response, waiting); err != nil {
			return err
		}
	}
}

func (c *client) receive(stream grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse],
	response *discovery.DeltaDiscoveryResponse, waiting *subscription) error {
	var endpoints, routes []string
	for _, resource := range response.GetResources() {
		decoded, err := resource.GetResource().UnmarshalNew()
		if err != nil {
			return fmt.Errorf("%s: %w", resource.GetName(), err)
		}
		c.resources.Add(1)
		c.resourceBytes.Add(int64(len(resource.GetResource().GetValue())))
		switch decoded := decoded.(type) {
		case *cluster.Cluster:
			if decoded.GetType() == cluster.Cluster_EDS {
				endpoints = append(endpoints, endpointsName(decoded))
			}
		case *endpoint.ClusterLoadAssignment:
			delete(waiting.endpoints, decoded.GetClusterName())
		case *listener.Listener:
			named, err := routeNames(decoded)
			if err != nil {
				return err
			}
			routes = append(routes, named...)
		case *route.RouteConfiguration:
			delete(waiting.routes, decoded.GetName())
		}
	}
	acknowledgement := &discovery.DeltaDiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()}
	if err := stream.Send(acknowledgement); err != nil {
		return err
	}
	switch response.GetTypeUrl() {
	case clusterType:
		if waiting.endpoints == nil {
			waiting.wildcards--
			waiting.endpoints = map[string]struct{}{}
		}
		if err := ask(stream, endpointType, endpoints, waiting.endpoints); err != nil {
			return err
		}
	case listenerType:
		if waiting.routes == nil {
			waiting.wildcards--
			waiting.routes = map[string]struct{}{}
		}
		if err := ask(stream, routeType, routes, waiting.routes); err != nil {
			return err
		}
	}
	if waiting.wildcards == 0 && len(waiting.endpoints) == 0 && len(waiting.routes) == 0 {
		c.setComplete()
	}
	return nil
}

// Called by the client's own goroutine alone.
func (c *client) setComplete() {
	select {
	case <-c.complete:
	default:
		close(c.complete)
	}
}

// Subscribes to names and waits for them.
func ask(stream grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse],
	typeURL string, names []string, waiting map[string]struct{}) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		waiting[name] = struct{}{}
	}
	return stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names})
}

func endpointsName(decoded *cluster.Cluster) string {
	if name := decoded.GetEdsClusterConfig().GetServiceName(); name != "" {
		return name
	}
	return decoded.GetName()
}

// Names of the routes that a listener's HTTP connection managers ask for.
func routeNames(decoded *listener.Listener) ([]string, error) {
	var names []string
	for _, chain := range decoded.GetFilterChains() {
		for _, filter := range chain.GetFilters() {
			if !filter.GetTypedConfig().MessageIs((*manager.HttpConnectionManager)(nil)) {
				continue
			}
			http := &manager.HttpConnectionManager{}
			if err := proto.Unmarshal(filter.GetTypedConfig().GetValue(), http); err != nil {
				return nil, fmt.Errorf("%s: %w", decoded.GetName(), err)
			}
			if name := http.GetRds().GetRouteConfigName(); name != "" {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
