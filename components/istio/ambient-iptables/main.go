// ambient-iptables installs the redirect rules of Istio's ambient mode into the network namespace that it is started in.
//
// Istio's CNI agent does this from within, for every pod of its node, and has no command for it. This is such a command
// and no more: rules, routes and their order are those of istio.io/istio/cni/pkg/iptables, with the addresses and the
// settings that the agent has by default. IPv6 is left alone: pods of a lab have none.
package main

import (
	"fmt"
	"net/netip"
	"os"

	"istio.io/istio/cni/pkg/config"
	"istio.io/istio/cni/pkg/iptables"
	"istio.io/istio/pkg/log"
	"istio.io/istio/pkg/version"
	"istio.io/istio/tools/istio-iptables/pkg/dependencies"
)

// The source address of a kubelet's probes, which pass ztunnel by: cni/pkg/nodeagent's DefaultHostProbeSNATIP and
// DefaultHostProbeSNATIPV6. Written out, since that package needs much that nothing here does.
var (
	probeSource   = netip.MustParseAddr("169.254.7.127")
	probeSourceV6 = netip.MustParseAddr("fd16:9254:7127:1337:ffff:ffff:ffff:ffff")
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println(version.Info.LongForm())
		return
	}
	if len(os.Args) != 1 {
		fmt.Fprintln(os.Stderr, "`ambient-iptables` installs rules into its own network namespace, `ambient-iptables version` says its version")
		os.Exit(2)
	}
	if err := installRules(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func installRules() error {
	settings := config.AmbientConfig{
		// As Istio's chart has it (ambient.dnsCapture).
		RedirectDNS:            true,
		HostProbeSNATAddress:   probeSource,
		HostProbeV6SNATAddress: probeSourceV6,
	}
	inPod := &dependencies.RealDependencies{}
	_, pod, err := iptables.NewIptablesConfigurator(&settings, &settings, inPod, inPod, iptables.RealNlDeps())
	if err != nil {
		return fmt.Errorf("find iptables: %w", err)
	}
	if err := pod.CreateInpodRules(log.FindScope(log.DefaultScopeName), config.PodLevelOverrides{}); err != nil {
		return fmt.Errorf("install the rules of ambient mode: %w", err)
	}
	return nil
}
