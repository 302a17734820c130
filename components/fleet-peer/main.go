// A fleet of simulated sidecars on grpc-go and go-control-plane's types, for the benchmark `fleet_against_peer`.
//
// Each client has a connection of its own, subscribes as a sidecar does (clusters, their endpoints, listeners, their
// routes; delta), decodes every resource whole and acknowledges. Resources are dropped once decoded: thousands of decoded
// configurations fit into no machine. Prints a JSON object when all clients have been complete for a while.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	address string
	clients int
	// Connections begun per second.
	connectRate float64
	// From the last client's completion to the reading of memory; CPU is read at the completion.
	settle time.Duration
	// After which the clients that are not complete are given up.
	timeout time.Duration
}

// What the benchmark reads.
type result struct {
	Clients            int      `json:"clients"`
	Complete           int      `json:"complete"`
	CompleteS          float64  `json:"complete_s"`
	Resources          int64    `json:"resources"`
	ResourceBytes      int64    `json:"resource_bytes"`
	CPUS               float64  `json:"cpu_s"`
	MemorySettledBytes int64    `json:"memory_settled_bytes"`
	MemoryPeakBytes    int64    `json:"memory_peak_bytes"`
	Errors             []string `json:"errors"`
}

func main() {
	var opts options
	flag.StringVar(&opts.address, "address", "", "host:port of the control plane, plaintext")
	flag.IntVar(&opts.clients, "clients", 1, "clients")
	flag.Float64Var(&opts.connectRate, "connect-rate", 1000, "connections begun per second")
	flag.DurationVar(&opts.settle, "settle", 2*time.Second, "from completion to the reading of memory")
	flag.DurationVar(&opts.timeout, "timeout", 10*time.Minute, "after which incomplete clients are given up")
	flag.Parse()
	measured, err := run(opts)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet-peer:", err)
		os.Exit(1)
	}
}

func run(opts options) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), opts.timeout)
	defer cancel()
	started := time.Now()
	clients := connect(ctx, opts)
	measured := result{Clients: opts.clients, Errors: []string{}}
	for _, c := range clients {
		select {
		case <-c.complete:
			measured.Complete++
		case <-c.failed:
			measured.Errors = append(measured.Errors, fmt.Sprintf("%s: %v", c.name, c.err))
		case <-ctx.Done():
			measured.Errors = append(measured.Errors, c.name+": not complete in time")
		}
	}
	measured.CompleteS = time.Since(started).Seconds()
	if err := measured.readCPU(); err != nil {
		return measured, err
	}
	// The runtime gives back what it does not need: the least that a Go client can do with.
	debug.FreeOSMemory()
	time.Sleep(opts.settle)
	for _, c := range clients {
		measured.Resources += c.resources.Load()
		measured.ResourceBytes += c.resourceBytes.Load()
	}
	return measured, measured.readMemory()
}

// Starts clients at the rate that is wanted; returns when the last has started.
func connect(ctx context.Context, opts options) []*client {
	clients := make([]*client, opts.clients)
	begun := time.Now()
	for i := range clients {
		due := begun.Add(time.Duration(float64(i) / opts.connectRate * float64(time.Second)))
		time.Sleep(time.Until(due))
		clients[i] = newClient(i)
		go clients[i].run(ctx, opts.address)
	}
	return clients
}

func (r *result) readCPU() error {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return fmt.Errorf("getrusage: %w", err)
	}
	r.CPUS = seconds(usage.Utime) + seconds(usage.Stime)
	return nil
}

func (r *result) readMemory() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if r.MemorySettledBytes, err = statusBytes(string(status), "VmRSS"); err != nil {
		return err
	}
	r.MemoryPeakBytes, err = statusBytes(string(status), "VmHWM")
	return err
}

func seconds(t syscall.Timeval) float64 {
	return float64(t.Sec) + float64(t.Usec)/1e6
}

// A field of /proc/self/status, which counts in KiB.
func statusBytes(status, field string) (int64, error) {
	for line := range strings.Lines(status) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s", field)
}
