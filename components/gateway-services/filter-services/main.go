// Services behind the filters of a gateway: external authorisation, and a web application firewall.
//
//	filter-services ext-authz --protocol grpc|http --listen ADDRESS --counters ADDRESS
//	filter-services waf --listen ADDRESS --counters ADDRESS
//
// Each serves what it has counted at http://ADDRESS/counters, as JSON. SIGTERM and SIGINT end it once calls under way are
// answered.
package main

import (
	"context"
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

	"google.golang.org/grpc"
)

// Time for calls under way at the end.
const stopTimeout = 2 * time.Second

// Headers of a request that a proxy sends by HTTP. Messages by gRPC have at most 4 MiB, its default: a proxy buffers less.
const maxHeaderBytes = 1 << 20

const usage = "usage: filter-services ext-authz|waf OPTION..., or filter-services --version"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "filter-services:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	name, options := arguments[0], flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	listen := options.String("listen", "", "`address` to serve proxies at")
	countersAt := options.String("counters", "", "`address` to serve counters at")
	protocol := options.String("protocol", "grpc", "ext-authz: grpc or http")
	if name == "--version" {
		fmt.Println("filter-services", version())
		return nil
	}
	if err := options.Parse(arguments[1:]); err != nil {
		return err
	}
	if *listen == "" || *countersAt == "" || options.NArg() > 0 {
		return errors.New(usage)
	}
	counters := &counters{}
	server, err := newServer(name, *protocol, counters)
	if err != nil {
		return err
	}
	return serve(server, *listen, counters, *countersAt)
}

func newServer(name, protocol string, counters *counters) (server, error) {
	switch name {
	case "ext-authz":
		credential := os.Getenv(credentialVariable)
		if credential == "" {
			return nil, fmt.Errorf("%s: the credential of allowed requests is not set", credentialVariable)
		}
		return newAuthorization(credential, counters).server(protocol)
	case "waf":
		firewall, err := newFirewall(counters)
		if err != nil {
			return nil, err
		}
		return firewall.server(), nil
	default:
		return nil, fmt.Errorf("%s: there is no such service; %s", name, usage)
	}
}

// A server of proxies, of either protocol.
type server interface {
	Serve(net.Listener) error
	// stop lets calls under way end, and makes Serve return.
	stop(context.Context)
}

type grpcServer struct{ *grpc.Server }

func newGRPCServer() grpcServer {
	return grpcServer{grpc.NewServer()}
}

func (s grpcServer) stop(limit context.Context) {
	ended := make(chan struct{})
	go func() {
		s.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
	case <-limit.Done():
		s.Server.Stop()
	}
}

type httpServer struct{ *http.Server }

func newHTTPServer(handler http.Handler) httpServer {
	return httpServer{&http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: maxHeaderBytes}}
}

func (s httpServer) stop(limit context.Context) {
	if s.Shutdown(limit) != nil {
		_ = s.Close()
	}
}

// serve serves proxies, and what is counted, until a signal or an error.
func serve(proxies server, listen string, counters *counters, countersAt string) error {
	signalled, release := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer release()
	ended := make(chan error, 2)
	servers := []server{newHTTPServer(counters.handler()), proxies}
	for i, address := range []string{countersAt, listen} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		go func() { ended <- servers[i].Serve(listener) }()
	}
	select {
	case err := <-ended:
		return err
	case <-signalled.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, server := range servers {
		server.stop(limit)
	}
	return nil
}

// version is the version of Coraza and that of its rules.
func version() string {
	info, _ := debug.ReadBuildInfo()
	of := func(path string) string {
		for _, module := range info.Deps {
			if module.Path == path {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
		return "unknown"
	}
	return of("github.com/corazawaf/coraza/v3") + "-crs-" + of("github.com/corazawaf/coraza-coreruleset/v4")
}
