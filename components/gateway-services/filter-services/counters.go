package main

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// counters of requests that were checked. Every check is either allowed or denied.
type counters struct {
	allowed, denied atomic.Uint64
}

func (c *counters) count(allowed bool) {
	if allowed {
		c.allowed.Add(1)
	} else {
		c.denied.Add(1)
	}
}

func (c *counters) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /counters", func(response http.ResponseWriter, _ *http.Request) {
		allowed, denied := c.allowed.Load(), c.denied.Load()
		response.Header().Set("Content-Type", "application/json")
		// A client that has gone needs no answer.
		_ = json.NewEncoder(response).Encode(map[string]uint64{
			"checks": allowed + denied, "allowed": allowed, "denied": denied,
		})
	})
	return mux
}
