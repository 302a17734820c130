// istiod, as Istio builds it, with one thing of our own: it can be told that the proxies are upstream Envoys.
//
// To waypoints istiod sends filters and factories that only Istio's own build of Envoy has; an upstream Envoy refuses the
// whole listener because of them. With MESHMETER_UPSTREAM_ENVOY=true they are replaced by what upstream has. Without it
// this is istiod unchanged.
//
// What is lost: Istio's telemetry labels of the peer, and the CPU that finding them costs. What several networks
// (AMBIENT_ENABLE_MULTI_NETWORK) and AMBIENT_ENABLE_BAGGAGE add is left as it is; both are off unless asked for.
package main

import (
	"fmt"
	"os"
	"strconv"

	// Keeps Go's heap within the limit of the control group, as Istio's own main does.
	_ "github.com/KimMachineGun/automemlimit"
	setfilterstate "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"istio.io/istio/pilot/cmd/pilot-discovery/app"
	"istio.io/istio/pilot/pkg/util/protoconv"
	"istio.io/istio/pilot/pkg/xds/filters"
	"istio.io/istio/pkg/log"
)

// Whether the proxies are upstream Envoys: a boolean as Go reads them, false where it is not set.
const upstreamEnvoyVariable = "MESHMETER_UPSTREAM_ENVOY"

func main() {
	upstream, err := upstreamEnvoy(os.Getenv(upstreamEnvoyVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if upstream {
		sendOnlyWhatUpstreamHas()
	}
	log.EnableKlogWithCobra()
	if err := app.NewRootCommand().Execute(); err != nil {
		log.Error(err)
		os.Exit(1)
	}
}

func upstreamEnvoy(value string) (bool, error) {
	if value == "" {
		return false, nil
	}
	upstream, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%s: true or false is expected, not %q", upstreamEnvoyVariable, value)
	}
	return upstream, nil
}

// Before istiod starts: from then on it reads these variables from many goroutines.
func sendOnlyWhatUpstreamHas() {
	filters.WaypointDownstreamMetadataFilter = withoutEffect(filters.WaypointDownstreamMetadataFilter.Name)
	filters.WaypointUpstreamMetadataFilter = withoutEffect(filters.WaypointUpstreamMetadataFilter.Name)
	// For proxies before 1.29.2 Istio sends the same with the factory `envoy.string`, which upstream has, in the place of
	// `istio.hashable_string`.
	filters.ConnectAuthorityFilter = filters.ConnectAuthorityFilterPre1_29_2
}

// A filter that sets no filter state: a request passes it untouched.
func withoutEffect(name string) *hcm.HttpFilter {
	return &hcm.HttpFilter{
		Name:       name,
		ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: protoconv.MessageToAny(&setfilterstate.Config{})},
	}
}
