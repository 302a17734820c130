// The rate limit service of Envoy's authors, and a store in memory for it to count in.
//
//	ratelimit service --counters ADDRESS [--limit DOMAIN.KEY]...
//	ratelimit store --listen ADDRESS
//
// The service is configured by its environment, as its authors document it. Besides, it serves what it has counted at
// http://ADDRESS/counters, as JSON: calls, and those that were over a named limit. The store speaks Redis's protocol and
// keeps its data in memory; it stands in where there is no Redis.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/envoyproxy/ratelimit/src/service_cmd/runner"
	"github.com/envoyproxy/ratelimit/src/settings"
	gostats "github.com/lyft/gostats"
)

// The store's clock stands unless it is moved: keys would never expire.
const clockInterval = time.Second

const usage = "usage: ratelimit service|store OPTION..., or ratelimit --version"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ratelimit:", err)
		os.Exit(1)
	}
}

type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(name string) error {
	*n = append(*n, name)
	return nil
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	name, options := arguments[0], flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	listen := options.String("listen", "", "store: `address` to serve at")
	countersAt := options.String("counters", "", "service: `address` to serve counters at")
	var limits names
	options.Var(&limits, "limit", "service: `name` of a limit, whose refusals are counted")
	if name == "--version" {
		fmt.Println("ratelimit", version())
		return nil
	}
	if err := options.Parse(arguments[1:]); err != nil {
		return err
	}
	switch {
	case name == "service" && *countersAt != "":
		return service(*countersAt, limits)
	case name == "store" && *listen != "":
		return store(*listen)
	default:
		return errors.New(usage)
	}
}

// service runs until a signal, which the service itself takes.
func service(countersAt string, limits names) error {
	listener, err := net.Listen("tcp", countersAt)
	if err != nil {
		return err
	}
	runner := runner.NewRunner(settings.NewSettings())
	counters := &http.Server{Handler: handler(runner.GetStatsStore(), limits), ReadHeaderTimeout: time.Minute}
	go func() { _ = counters.Serve(listener) }()
	runner.Run()
	return nil
}

func handler(stats gostats.Store, limits names) http.Handler {
	value := func(name string) uint64 { return stats.NewCounter(name).Value() }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /counters", func(response http.ResponseWriter, _ *http.Request) {
		var denied uint64
		for _, limit := range limits {
			denied += value("ratelimit.service.rate_limit." + limit + ".over_limit")
		}
		checks := value("ratelimit_server.ShouldRateLimit.total_requests")
		response.Header().Set("Content-Type", "application/json")
		// A client that has gone needs no answer.
		_ = json.NewEncoder(response).Encode(map[string]uint64{
			"checks": checks, "allowed": checks - min(denied, checks), "denied": denied,
		})
	})
	return mux
}

func store(listen string) error {
	store := miniredis.NewMiniRedis()
	if err := store.StartAddr(listen); err != nil {
		return err
	}
	defer store.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	clock := time.NewTicker(clockInterval)
	defer clock.Stop()
	for {
		select {
		case <-signals:
			return nil
		case <-clock.C:
			store.FastForward(clockInterval)
		}
	}
}

// version is that of the service's module: it has no releases with a number of their own.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/envoyproxy/ratelimit" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "unknown"
}
